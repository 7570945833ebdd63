//! Prints to standard output and standard error.

use crate::{failure::ErrorReport, ids};
use anyhow::Context;
use clap::ValueEnum;
use console::Term;
use serde::Serialize;
use std::io::{self, Write};

/// The output format of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For scripts: one JSON object on one line
    Json,
    /// For people
    #[default]
    Table,
}

/// Prints `value` as JSON, or as the text that `table` makes of it.
///
/// # Errors
/// If standard output cannot be written.
pub fn print<T: Serialize>(
    format: Format,
    value: &T,
    table: impl FnOnce(&T) -> String,
) -> anyhow::Result<()> {
    let text = match format {
        Format::Json => json_line(value),
        Format::Table => table(value),
    };
    print_bytes(text.as_bytes())
}

/// Prints bytes unchanged.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).context("write standard output")
}

/// Returns a value as one line of JSON.
pub fn json_line<T: Serialize>(value: &T) -> String {
    let mut line = ids::to_json(value).expect("replies hold only strings, numbers and lists");
    line.push('\n');
    line
}

/// Returns a line of JSON for each item, and one for `last`.
pub fn json_lines<T: Serialize>(items: &[T], last: &impl Serialize) -> String {
    items.iter().map(json_line).chain([json_line(last)]).collect()
}

/// Prints an error for people and, if the format is JSON, for scripts too. It is coloured if the terminal supports colours,
/// unless `NO_COLOR` is set.
pub fn fail(format: Format, report: &ErrorReport) {
    eprintln!("{}", report.text(Term::stderr().features().colors_supported()));
    if format == Format::Json {
        // If this fails too, there is nowhere left to report it.
        let _ = print_bytes(json_line(report).as_bytes());
    }
}

/// Whether an error only means that the reader of the output closed it.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
