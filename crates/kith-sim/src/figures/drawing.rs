//! What a figure consists of, before it is paper.

/// What is measured along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// With its unit.
    pub label: &'static str,
    /// Its name in the CSV.
    pub column: &'static str,
    /// Whether equal distances are equal ratios.
    pub logarithmic: bool,
}

impl Axis {
    /// Equal distances are equal differences.
    pub const fn linear(label: &'static str, column: &'static str) -> Self {
        Self { label, column, logarithmic: false }
    }

    /// Equal distances are equal ratios.
    pub const fn logarithmic(label: &'static str, column: &'static str) -> Self {
        Self { label, column, logarithmic: true }
    }
}

/// How a panel shows its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// One line each.
    Lines,
    /// One bar per x, each series on top of the one before.
    StackedBars,
}

/// One line of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// In ascending order of x.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// The value at the point nearest to `x`.
    pub fn at(&self, x: f64) -> f64 {
        let nearest = self.points.iter().min_by(|a, b| (a.0 - x).abs().total_cmp(&(b.0 - x).abs()));
        nearest.map_or(f64::NAN, |(_, y)| *y)
    }
}

/// One coordinate system.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// How.
    pub style: Style,
    /// The lines to draw.
    pub series: Vec<Series>,
}

impl Panel {
    /// The series of a name.
    ///
    /// # Panics
    /// If there is none.
    pub fn series(&self, name: &str) -> &Series {
        let found = self.series.iter().find(|series| series.name == name);
        found.unwrap_or_else(|| panic!("{} has no series {name:?}", self.title))
    }
}

/// Numbers that are better read than seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its file is `<figure>-<name>.csv`.
    pub name: &'static str,
    /// Names of the columns.
    pub columns: Vec<&'static str>,
    /// One cell per column.
    pub rows: Vec<Vec<String>>,
}

/// A figure, ready to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// From top to bottom.
    pub panels: Vec<Panel>,
    /// Beside them.
    pub tables: Vec<Table>,
}

impl Drawing {
    /// One panel and nothing else.
    pub fn of(panel: Panel) -> Self {
        Self { panels: vec![panel], tables: Vec::new() }
    }
}
