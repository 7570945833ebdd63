//! Output for people: plain tables without frames, with numbers aligned to the right. The output is also suitable for a
//! pipe.

pub mod answer;
pub mod compute;
mod fit;
pub mod graphs;
pub mod plan;
pub mod stores;
pub mod values;

pub use fit::{filled, fitted, fitted_with_note, screen_width, wrapped};

pub use crate::units::{bytes, count, date, micros, plural, time};

use comfy_table::{CellAlignment, ContentArrangement, Table};

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The alignment of names.
    Left,
    /// The alignment of numbers.
    Right,
}

/// Returns a table with a heading for each column.
pub fn table(columns: &[(&str, Side)], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().map(|(name, _)| *name));
    for row in rows {
        table.add_row(row);
    }
    for (column, (_, side)) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, 2));
        column.set_cell_alignment(match side {
            Side::Left => CellAlignment::Left,
            Side::Right => CellAlignment::Right,
        });
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
