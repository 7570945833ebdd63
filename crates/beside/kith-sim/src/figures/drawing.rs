//! The parts of a figure, independent of any file format.

/// An axis of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The label, including the unit.
    pub label: &'static str,
    /// The name of the axis's column in the CSV file.
    pub column: &'static str,
    /// Whether equal distances stand for equal ratios, not for equal differences.
    pub logarithmic: bool,
}

impl Axis {
    /// Returns a linear axis, on which equal distances stand for equal differences.
    pub const fn linear(label: &'static str, column: &'static str) -> Self {
        Self { label, column, logarithmic: false }
    }

    /// Returns a logarithmic axis, on which equal distances stand for equal ratios.
    pub const fn logarithmic(label: &'static str, column: &'static str) -> Self {
        Self { label, column, logarithmic: true }
    }
}

/// The way in which a panel shows its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// One line per series.
    Lines,
    /// One bar per x value, in which the series are stacked.
    StackedBars,
}

/// One series of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name of the series in the legend.
    pub name: String,
    /// The points (x, y), in ascending order of x.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Returns the value at the point nearest to `x`.
    pub fn at(&self, x: f64) -> f64 {
        let nearest = self.points.iter().min_by(|a, b| (a.0 - x).abs().total_cmp(&(b.0 - x).abs()));
        nearest.map_or(f64::NAN, |(_, y)| *y)
    }
}

/// One coordinate system.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The title above the panel.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The style in which the series are drawn.
    pub style: Style,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
}

impl Panel {
    /// Returns the series with the given name.
    ///
    /// # Panics
    /// If there is no such series.
    pub fn series(&self, name: &str) -> &Series {
        let found = self.series.iter().find(|series| series.name == name);
        found.unwrap_or_else(|| panic!("{} has no series {name:?}", self.title))
    }
}

/// Results as a table, for numbers that a panel does not show well.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The name; the file is called `<figure>-<name>.csv`.
    pub name: &'static str,
    /// The names of the columns.
    pub columns: Vec<&'static str>,
    /// The rows, with one cell per column.
    pub rows: Vec<Vec<String>>,
}

/// A figure that is ready to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// The panels, from top to bottom.
    pub panels: Vec<Panel>,
    /// The tables, each of which becomes a CSV file.
    pub tables: Vec<Table>,
}

impl Drawing {
    /// Returns a drawing that consists of one panel.
    pub fn of(panel: Panel) -> Self {
        Self { panels: vec![panel], tables: Vec::new() }
    }
}
