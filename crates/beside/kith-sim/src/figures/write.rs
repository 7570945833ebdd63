//! Writes drawings to files: `<name>.csv` with all points, `<name>.svg` with the picture, and one `<name>-<table>.csv` per
//! table.

use crate::figures::svg::svg;
use crate::figures::{Drawing, Figure, Table};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An error while writing a figure.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum WriteError {
    /// A file or its folder cannot be written.
    #[error("cannot write {}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// The figure cannot be drawn, for example because it has no finite point.
    #[error("cannot draw figure {name}: {reason}")]
    Draw { name: String, reason: String },
}

/// Writes a figure's files into `dir`, which is created if necessary. Returns the paths of the files.
///
/// # Errors
/// If a file cannot be written, or the figure cannot be drawn.
pub fn write(figure: &Figure, drawing: &Drawing, dir: &Path) -> Result<Vec<PathBuf>, WriteError> {
    let title = match figure.name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("Moolle, figure {}: {}", figure.name, figure.title),
        false => figure.title.to_owned(),
    };
    write_drawing(figure.name, &title, drawing, dir)
}

/// Writes the files of a drawing that is not one of the figures, such as measurements, with the given name and title.
///
/// # Errors
/// The errors are those of [`write()`].
pub fn write_drawing(
    name: &str,
    title: &str,
    drawing: &Drawing,
    dir: &Path,
) -> Result<Vec<PathBuf>, WriteError> {
    let mut written = Vec::new();
    let mut put = |name: String, text: &str| {
        let path = dir.join(name);
        let made = std::fs::create_dir_all(dir).and_then(|()| std::fs::write(&path, text));
        made.map_err(|source| WriteError::File { path: path.clone(), source })?;
        written.push(path);
        Ok(())
    };
    put(format!("{name}.csv"), &points_csv(drawing))?;
    for table in &drawing.tables {
        put(format!("{name}-{}.csv", table.name), &table_csv(table))?;
    }
    let svg = svg(title, drawing)
        .map_err(|error| WriteError::Draw { name: name.to_owned(), reason: error.to_string() })?;
    put(format!("{name}.svg"), &svg)?;
    Ok(written)
}

/// Returns all points in long format, which every tool can read: one line per point. The third column is named after the x
/// axis if all panels have the same x axis.
fn points_csv(drawing: &Drawing) -> String {
    let mut columns = drawing.panels.iter().map(|panel| panel.x.column);
    let first = columns.next().unwrap_or("x");
    let x = if columns.all(|column| column == first) { first } else { "x" };
    let mut text = format!("quantity,series,{x},value\n");
    for panel in &drawing.panels {
        for series in &panel.series {
            for (x, y) in &series.points {
                let (quantity, name) = (cell(panel.y.column), cell(&series.name));
                writeln!(text, "{quantity},{name},{x},{y:.6}").expect("writing to a String never fails");
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
