//! The `kith` command line: loads graphs, asks questions, operates clusters, and starts the processes of a cluster. It
//! is the topmost crate: it depends on nearly all crates, and nothing depends on it. A command parses its flags, calls
//! a crate, and prints. The library beside this program (`lib.rs`) puts the roles of a cluster together.
//!
//! - `cli`: all commands, and the flags that all of them share.
//! - `graph`, `ask`, `explain`, `gremlin`, `run`: questions about graphs.
//! - `read`, `stream`, `compute`: keys and records of stores.
//! - `write`, `schema`, `import`, `export`: live graphs.
//! - `load`, `store`, `publish`: building and pushing versions, and their progress.
//! - `cluster`: its state and its shape.
//! - `serve`: `kith dev`, `node`, `router` and `database`; `serve/config.rs` reads the file of a cluster.
//! - `table`: text for people about operating clusters; other tables, and all JSON, are in `kith-terminal`.
//!   `flag_error`: errors of flags.
//!
//! ```text
//! kith graph distance … ─► cli ─► ask ─► kith-query: fields ─► kith-terminal: connect ─► Service::call ─► JSON or table
//! ```
//!
//! Each flag is defined once, beside the command or the group of commands that has it. JSON fields, error codes and
//! exit codes are contracts.
//!
//! To add a command, add a variant of `Command` in `cli`, its arm in `run`, and a module.

mod ask;
mod cli;
mod cluster;
mod compute;
mod explain;
mod export;
#[cfg(test)]
mod fake;
mod flag_error;
#[cfg(test)]
mod golden;
mod graph;
mod gremlin;
mod import;
mod load;
mod publish;
mod read;
mod run;
mod schema;
mod serve;
#[cfg(feature = "sim")]
mod sim;
mod store;
mod stream;
mod table;
mod who;
mod write;

use clap::Parser;
use failure::{ErrorReport, Exit};
use kith_terminal::{confirm, connect, failure, names, order, out, output, reply, signals};
use std::process::ExitCode;

/// Many threads allocate many small lists, which the system's allocator handles more slowly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::try_parse().unwrap_or_else(|error| flag_error::explain::<cli::Cli>(error).exit());
    let format = cli.global.output;
    let exit = cli::run(cli).unwrap_or_else(|error| {
        if output::is_closed_pipe(&error) {
            // The reader of the output has closed the pipe, which is not a failure.
            return Exit::Done;
        }
        let report = ErrorReport::of(&error);
        output::fail(format, &report);
        report.exit()
    });
    exit.into()
}
