//! Draws figures as SVG.

use crate::figures::{Axis, Drawing, Panel, Series, Style};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::ops::Range;

const WIDTH: u32 = 900;
const PANEL_HEIGHT: u32 = 440;

/// The approximate height of a panel without its axes, their labels and the caption.
const PLOT_HEIGHT: f64 = 350.0;

/// The colours of Okabe and Ito, which most people can distinguish.
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

/// The index of the last colour, which is drawn with a wide line. Where this line coincides with another, as those of naive
/// and Moolle (10) do in figure 7a, both remain visible.
const WIDE: usize = COLOURS.len() - 1;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A line in the coordinates of its panel. Values on logarithmic axes are logarithms.
struct Placed {
    name: String,
    points: Vec<(f64, f64)>,
}

/// Draws all panels below one title.
pub(super) fn svg(title: &str, drawing: &Drawing) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    {
        let panels = drawing.panels.len();
        let root = SVGBackend::with_string(&mut text, (WIDTH, 40 + PANEL_HEIGHT * panels as u32));
        let root = root.into_drawing_area();
        root.fill(&WHITE)?;
        let root = root.titled(title, ("sans-serif", 20))?;
        for (panel, area) in drawing.panels.iter().zip(root.split_evenly((panels, 1))) {
            draw_panel(panel, &area)?;
        }
        root.present()?;
    }
    Ok(text)
}

fn draw_panel(panel: &Panel, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
    let lines = place(panel);
    let bars = panel.style == Style::StackedBars;
    let x = range(&panel.x, lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)), bars);
    let y = range(&panel.y, lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)), true);
    let (legend, y) = make_room(&lines, &x, y);
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 16))
        .margin(14)
        .margin_right(30)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(x, y.clone())?;
    let (x_axis, y_axis) = (panel.x, panel.y);
    let (x_text, y_text) = (move |v: &f64| tick(&x_axis, *v), move |v: &f64| tick(&y_axis, *v));
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(panel.x.label).y_desc(panel.y.label).x_label_formatter(&x_text).y_label_formatter(&y_text);
    mesh.label_style(("sans-serif", 14)).axis_desc_style(("sans-serif", 15));
    mesh.light_line_style(WHITE).bold_line_style(BLACK.mix(0.12));
    mesh.x_labels(12).y_labels(10).draw()?;
    // Series are drawn from the last to the first, so that lower bars cover higher ones, and earlier lines cover later ones.
    for (index, line) in lines.iter().enumerate().rev() {
        let (points, colour) = (line.points.iter().copied(), colour(panel.style, index));
        if bars {
            let bar = |(at, height)| [(at - 0.35, y.start), (at + 0.35, height)];
            chart.draw_series(points.map(|point| Rectangle::new(bar(point), colour.filled())))?;
        } else {
            let width = if index == WIDE { 7 } else { 2 };
            chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(width)))?;
            chart.draw_series(points.map(|point| Circle::new(point, 3, colour.filled())))?;
        }
    }
    // The legend is drawn separately, so that it keeps the order of the series.
    for (index, line) in lines.into_iter().enumerate() {
        let colour = colour(panel.style, index);
        let swatch = move |(x, y)| Rectangle::new([(x, y - 3), (x + 18, y + 3)], colour.filled());
        chart.draw_series(std::iter::empty::<Circle<(f64, f64), i32>>())?.label(line.name).legend(swatch);
    }
    let mut labels = chart.configure_series_labels();
    labels.position(legend).label_font(("sans-serif", 14));
    labels.border_style(BLACK.mix(0.3)).background_style(WHITE.mix(0.85)).draw()?;
    Ok(())
}

fn colour(style: Style, index: usize) -> RGBColor {
    let first = match style {
        Style::Lines => 0,
        Style::StackedBars => 3,
    };
    COLOURS[(first + index) % COLOURS.len()]
}

fn place(panel: &Panel) -> Vec<Placed> {
    let series = match panel.style {
        Style::Lines => panel.series.clone(),
        Style::StackedBars => stacked(&panel.series),
    };
    let on = |axis: &Axis, value: f64| if axis.logarithmic { value.max(1e-12).log10() } else { value };
    let point = |(x, y): &(f64, f64)| (on(&panel.x, *x), on(&panel.y, *y));
    let line =
        |series: Series| Placed { name: series.name, points: series.points.iter().map(point).collect() };
    series.into_iter().map(line).collect()
}

/// Returns the running sums of the series: each is the sum of itself and all series before it.
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

fn range(axis: &Axis, values: impl Iterator<Item = f64>, from_zero: bool) -> Range<f64> {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    if high < low {
        return 0.0..1.0;
    }
    let low = if from_zero && !axis.logarithmic { low.min(0.0) } else { low };
    let margin = ((high - low) * 0.04).max(1e-9);
    if from_zero && !axis.logarithmic { low..high + margin } else { low - margin..high + margin }
}

/// Returns the upper corner in which the legend hides less, and a range of y that leaves enough room for the legend there.
fn make_room(lines: &[Placed], x: &Range<f64>, y: Range<f64>) -> (SeriesLabelPosition, Range<f64>) {
    let width = x.end - x.start;
    let highest = |part: Range<f64>| {
        let points = lines.iter().flat_map(|line| &line.points);
        let within = points.filter(|point| part.contains(&((point.0 - x.start) / width)));
        within.map(|point| point.1).fold(y.start, f64::max)
    };
    let (left, right) = (highest(0.0..0.36), highest(0.64..1.0));
    let (corner, obstacle) = match right < left {
        true => (SeriesLabelPosition::UpperRight, right),
        false => (SeriesLabelPosition::UpperLeft, left),
    };
    let legend = (30.0 + 18.0 * lines.len() as f64) / PLOT_HEIGHT;
    let needed = y.start + (obstacle - y.start) / (1.0 - legend).max(0.3);
    (corner, y.start..y.end.max(needed))
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
