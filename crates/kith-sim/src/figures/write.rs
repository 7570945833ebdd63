//! Drawings become files: `<name>.csv` with every point, `<name>.svg` to look at, and one
//! `<name>-<table>.csv` per table.

use crate::figures::{Axis, Drawing, Figure, Panel, Series, Style, Table};
use plotters::prelude::*;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use thiserror::Error;

const WIDTH: u32 = 900;
const PANEL_HEIGHT: u32 = 440;

/// Okabe and Ito's colours, which most people can tell apart.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(185, 185, 185),
];

/// The last colour is drawn wide: where its line coincides with another, as naive and
/// Moolle (10) do in figure 7a, both are seen.
const WIDE: usize = COLOURS.len() - 1;

/// A figure could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A file or its folder cannot be written.
    #[error("cannot write {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The figure cannot be drawn, as when it has no finite point.
    #[error("cannot draw figure {name}: {reason}")]
    Draw {
        /// Which.
        name: &'static str,
        /// Why.
        reason: String,
    },
}

/// Writes a figure's files into `dir`, which is made if need be; the paths written.
///
/// # Errors
/// If a file cannot be written.
pub fn write(figure: &Figure, drawing: &Drawing, dir: &Path) -> Result<Vec<PathBuf>, WriteError> {
    let mut written = Vec::new();
    let mut put = |name: String, text: &str| {
        let path = dir.join(name);
        let made = std::fs::create_dir_all(dir).and_then(|()| std::fs::write(&path, text));
        made.map_err(|source| WriteError::File { path: path.clone(), source })?;
        written.push(path);
        Ok(())
    };
    put(format!("{}.csv", figure.name), &points_csv(drawing))?;
    for table in &drawing.tables {
        put(format!("{}-{}.csv", figure.name, table.name), &table_csv(table))?;
    }
    let svg = svg(figure, drawing)
        .map_err(|error| WriteError::Draw { name: figure.name, reason: error.to_string() })?;
    put(format!("{}.svg", figure.name), &svg)?;
    Ok(written)
}

/// Long format, which every tool reads: one line per point. The third column is called
/// after what lies across, if that is the same in all panels.
fn points_csv(drawing: &Drawing) -> String {
    let mut columns = drawing.panels.iter().map(|panel| panel.x.column);
    let first = columns.next().unwrap_or("x");
    let x = if columns.all(|column| column == first) { first } else { "x" };
    let mut text = format!("quantity,series,{x},value\n");
    for panel in &drawing.panels {
        for series in &panel.series {
            for (x, y) in &series.points {
                let (quantity, name) = (cell(panel.y.column), cell(&series.name));
                writeln!(text, "{quantity},{name},{x},{y:.6}").expect("a String takes everything");
            }
        }
    }
    text
}

fn table_csv(table: &Table) -> String {
    let mut text = table.columns.join(",") + "\n";
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
        text += &(cells.join(",") + "\n");
    }
    text
}

fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

type DrawResult = Result<(), Box<dyn std::error::Error>>;

fn svg(figure: &Figure, drawing: &Drawing) -> Result<String, Box<dyn std::error::Error>> {
    let mut text = String::new();
    {
        let panels = drawing.panels.len();
        let root = SVGBackend::with_string(&mut text, (WIDTH, 40 + PANEL_HEIGHT * panels as u32));
        let root = root.into_drawing_area();
        root.fill(&WHITE)?;
        let title = match figure.name.starts_with(|c: char| c.is_ascii_digit()) {
            true => format!("Moolle, figure {}: {}", figure.name, figure.title),
            false => figure.title.to_owned(),
        };
        let root = root.titled(&title, ("sans-serif", 20))?;
        for (panel, area) in drawing.panels.iter().zip(root.split_evenly((panels, 1))) {
            draw_panel(panel, &area)?;
        }
        root.present()?;
    }
    Ok(text)
}

fn draw_panel(panel: &Panel, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> DrawResult {
    let series = match panel.style {
        Style::Lines => panel.series.clone(),
        Style::StackedBars => stacked(&panel.series),
    };
    let all = || series.iter().flat_map(|series| &series.points);
    let zero = matches!(panel.style, Style::StackedBars);
    let x = range(&panel.x, all().map(|point| point.0), zero);
    let y = range(&panel.y, all().map(|point| point.1), true);
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 16))
        .margin(14)
        .margin_right(30)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(x.clone(), y.clone())?;
    let (x_axis, y_axis) = (panel.x, panel.y);
    let (x_text, y_text) = (move |v: &f64| tick(&x_axis, *v), move |v: &f64| tick(&y_axis, *v));
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(panel.x.label).y_desc(panel.y.label).x_label_formatter(&x_text).y_label_formatter(&y_text);
    mesh.label_style(("sans-serif", 14)).axis_desc_style(("sans-serif", 15));
    mesh.light_line_style(WHITE).bold_line_style(BLACK.mix(0.12));
    mesh.x_labels(12).y_labels(10).draw()?;
    // From the last to the first: higher bars are seen above lower ones, first lines over later ones.
    for index in (0..series.len()).rev() {
        let colour = match panel.style {
            Style::Lines => COLOURS[index % COLOURS.len()],
            Style::StackedBars => COLOURS[(index + 3) % COLOURS.len()],
        };
        let points = place(panel, &series[index]);
        let name = series[index].name.clone();
        let drawn = match panel.style {
            Style::Lines => {
                let width = if index == WIDE { 7 } else { 2 };
                chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
                chart.draw_series(LineSeries::new(points, colour.stroke_width(width)))?
            }
            Style::StackedBars => chart.draw_series(points.into_iter().map(|(at, height)| {
                Rectangle::new([(at - 0.35, y.start), (at + 0.35, height)], colour.mix(0.85).filled())
            }))?,
        };
        drawn
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 3), (x + 18, y + 3)], colour.filled()));
    }
    let mut labels = chart.configure_series_labels();
    labels.position(legend_place(&series, &panel.style)).label_font(("sans-serif", 14));
    labels.border_style(BLACK.mix(0.3)).background_style(WHITE.mix(0.85)).draw()?;
    Ok(())
}

/// Where the legend hides least: at the upper left, unless a line begins high there.
fn legend_place(series: &[Series], style: &Style) -> SeriesLabelPosition {
    let most = |share: Range<f64>| {
        let heights = series.iter().flat_map(|series| {
            let count = series.points.len() as f64;
            let (from, to) = ((count * share.start) as usize, (count * share.end).ceil() as usize);
            series.points[from..to].iter().map(|point| point.1)
        });
        heights.fold(f64::MIN, f64::max)
    };
    let starts_high = most(0.6..1.0) < most(0.0..0.4);
    if starts_high && *style == Style::Lines {
        SeriesLabelPosition::UpperRight
    } else {
        SeriesLabelPosition::UpperLeft
    }
}

/// Sums from the first series up.
fn stacked(series: &[Series]) -> Vec<Series> {
    let mut sums: Vec<Series> = Vec::new();
    for next in series {
        let mut next = next.clone();
        if let Some(below) = sums.last() {
            next.points.iter_mut().zip(&below.points).for_each(|(point, below)| point.1 += below.1);
        }
        sums.push(next);
    }
    sums
}

/// The coordinates of a series: logarithms on logarithmic axes.
fn place(panel: &Panel, series: &Series) -> Vec<(f64, f64)> {
    let on = |axis: &Axis, value: f64| if axis.logarithmic { value.max(1e-12).log10() } else { value };
    series.points.iter().map(|(x, y)| (on(&panel.x, *x), on(&panel.y, *y))).collect()
}

fn range(axis: &Axis, values: impl Iterator<Item = f64>, from_zero: bool) -> Range<f64> {
    let finite = values.filter(|value| value.is_finite() && (!axis.logarithmic || 0.0 < *value));
    let (low, high) = finite.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    if high < low {
        return 0.0..1.0;
    }
    if axis.logarithmic {
        return low.log10() - 0.05..high.log10() + 0.05;
    }
    let low = if from_zero { low.min(0.0) } else { low };
    let margin = (high - low).max(1e-9);
    // Upwards there is room for the legend.
    if from_zero { low..high + margin * 0.3 } else { low - margin * 0.04..high + margin * 0.04 }
}

fn tick(axis: &Axis, value: f64) -> String {
    let value = if axis.logarithmic { 10f64.powf(value) } else { value };
    match value.abs() {
        size if size == 0.0 || 100.0 <= size => format!("{value:.0}"),
        size if 0.01 <= size => {
            let text = if 10.0 <= size { format!("{value:.1}") } else { format!("{value:.2}") };
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{value:.0e}"),
    }
}
