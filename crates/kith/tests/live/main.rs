//! Live graphs, end to end: real clusters and databases against models, through lines of `kith run`.
//!
//! `KITH_SEED` repeats a random program, `KITH_PROGRAM_OPERATIONS` makes it longer, and `KITH_FAULT_SECONDS` brings more faults
//! about.

mod bad_input;
mod drop;
mod faults;
mod handover;
mod import;
mod ldbc;
#[path = "../../../kith-database/tests/support/mariadb.rs"]
mod mariadb;
mod model;
mod older_copy;
mod order;
mod program;
mod semantics;
mod site;
#[path = "../support/mod.rs"]
mod support;
mod tickets;
mod trimmed;
