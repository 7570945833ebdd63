//! Scenario scripts: pages of commands with the expected output of each, for tests of decisions.
//!
//! A script is a title, an explanation, a line `---`, and commands with the lines that they print:
//!
//! ```text
//! A dead node's keys go to another group
//!
//! Two groups hold each partition once. Node n0 dies. Its partition is read from the other group, and
//! nothing else changes.
//! ---
//! n0 loses its connection
//! > n0 is down
//! ask p0 p1
//! > n2: p0
//! > n1: p1
//! ```
//!
//! A crate provides a [`Player`], which carries out the commands of the crate's own small language on its decisions,
//! and one test that calls [`check`]. This module reads the scripts, compares the output, shows differences, and
//! rewrites the expected lines if `BLESS` is set.
//!
//! - `script`, `command`, `read`: a parsed script, its commands, and parsers for their words.
//! - `runner`, `diff`: playing all scripts of a folder, and the difference of two pages.
//! - `blocks`: pages of blocks, for inputs of several lines and tables of cases.
//! - [`cluster`], `layout`: the cluster with which many scripts begin, and groups as text.
//!
//! `docs/testing.md` explains how to write a script.

mod blocks;
pub mod cluster;
mod command;
mod diff;
mod layout;
mod read;
mod runner;
mod script;

pub use blocks::{check_blocks, check_inputs};
pub use command::Command;
pub use diff::difference;
pub use layout::{Group, Owner, group};
pub use read::{duration, millis, number, numbered, partitions};
pub use runner::{Area, check, play};
pub use script::{Script, ScriptFault, Step};

/// Carries out the commands of a script. Each script has a new player.
pub trait Player {
    /// Carries out one command. Returns the lines that it prints.
    ///
    /// # Errors
    /// If the command is unknown or invalid. The script is wrong then, and the test fails at this line.
    fn play(&mut self, command: &Command<'_>) -> Result<Vec<String>, String>;
}
