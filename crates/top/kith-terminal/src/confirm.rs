//! Asks before something is dropped, and prints afterwards what was dropped.

use crate::{
    failure::Failure,
    output::{self, Format},
};
use anyhow::Context;
use kith_types::ErrorCode;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

#[derive(Clone, Debug, PartialEq, Serialize)]
struct DropReply {
    dropped: String,
    /// The fate of its rows, if it was a live graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<String>,
}

/// Prints what was dropped, and what happened to the rows of a live graph.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_dropped(format: Format, dropped: String, rows: Option<String>) -> anyhow::Result<()> {
    output::print(format, &DropReply { dropped, rows }, |reply| match &reply.rows {
        None => format!("dropped {}\n", reply.dropped),
        Some(rows) => format!("dropped {}; {rows}\n", reply.dropped),
    })
}

/// Asks whether `what` should be dropped, unless `--yes` was given.
///
/// # Errors
/// Returns `usage` if there is no terminal to ask on, and `not_confirmed` if the answer is no.
pub fn confirm_drop(what: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        let message = format!("{what} was not dropped: there is no terminal to ask for confirmation");
        return Err(Failure::usage(message, "--yes drops without asking").into());
    }
    eprint!("drop {what} from the cluster? [y/N] ");
    io::stderr().flush().context("write standard error")?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("read standard input")?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => {
            Err(Failure::new(ErrorCode::NotConfirmed, "nothing was dropped", "--yes drops without asking")
                .into())
        }
    }
}
