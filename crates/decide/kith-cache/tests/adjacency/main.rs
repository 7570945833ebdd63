//! Tests the adjacency of live graphs: against simple twins, against graphs in memory, and with concurrent writes.

#![allow(clippy::unwrap_used, reason = "a test fails where something is wrong")]

mod dice;
mod examples;
mod graphs;
mod random;
mod threads;
mod twin;
