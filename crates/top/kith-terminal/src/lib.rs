//! The parts that all commands of the terminal share. `kith` uses it. [`top`] and, with the feature `bench`, `bench`
//! are the two commands that are here whole.
//!
//! - [`connect`]: finds the cluster (`--router`, `--ready-file`, `KITH_ROUTER`, a running `kith dev`) and connects to
//!   it.
//! - [`failure`]: errors as users see them, with a stable code and help, and the exit codes.
//! - [`reply`]: answers as JSON. [`table`]: answers as text for people, in columns.
//! - [`output`], [`out`], [`progress`]: standard output and error, files that appear when they are complete, and
//!   progress.
//! - [`names`], [`keys`], [`ids`]: parsing of names, sizes, times and keys, and how ids are printed.
//! - [`controllers`]: fan-out controllers of a fast client, from flags.
//! - [`gremlin`]: the prompt and the results of traversals.
//! - [`order`]: the lines of `kith run` that have to follow one another.
//! - [`confirm`], [`signals`]: questions before something is dropped, Ctrl-C and SIGTERM.
//!
//! ```text
//! command ─► connect ─► Service::call ─► Reply ─► reply (--output json) or table ─► output
//!                                      └─ QueryError ─► failure ─► standard error, exit code
//! ```
//!
//! The fields of JSON, error codes and exit codes are contracts (`docs/queries.md`, `docs/errors.md`). Standard output
//! has only answers, so that it can be piped.
//!
//! To print a new kind of answer, add its JSON in `reply` and its text in `table`; tables of what operates
//! clusters are in `kith/src/table`.

#[cfg(feature = "bench")]
pub mod bench;
pub mod confirm;
pub mod connect;
pub mod controllers;
pub mod failure;
pub mod gremlin;
pub mod ids;
pub mod keys;
pub mod names;
pub mod order;
pub mod out;
pub mod output;
pub mod progress;
pub mod reply;
pub mod signals;
pub mod table;
pub mod top;
mod units;
