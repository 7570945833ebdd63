//! End-to-end tests of live graphs: real clusters and databases are compared with models, through lines of `kith run`.
//!
//! `KITH_SEED` reproduces a random program, `KITH_PROGRAM_OPERATIONS` sets its length, and `KITH_FAULT_SECONDS` sets the
//! duration of the fault tests in seconds.

mod bad_input;
mod cold;
mod drop;
mod faults;
mod gremlin;
mod gremlin_counts;
mod gremlin_hub;
mod gremlin_races;
mod gremlin_twin;
mod handover;
mod import;
mod indexes;
mod ldbc;
mod model;
mod older_copy;
mod open;
mod order;
mod program;
mod semantics;
mod site;
mod text_ids;
mod tickets;
mod trimmed;
mod unusable;
use crate::support::{self, driver};
