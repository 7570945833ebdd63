//! Support for tests of this crate and of others, and for the simulator: types, rows in memory, and TAO's operations without
//! partitions.
//!
//! Nothing here is fast, and functions panic where production code would return an error.

#![allow(clippy::unwrap_used, reason = "only tests and the simulator use this module")]

mod check;
pub mod fixture;
mod model;
mod tables;

pub use check::faults_of;
pub use model::{Edge, EdgeName, Model, object_fields};
pub use tables::{Tables, taken};
