//! The adjacency of live graphs: against naive twins, against graphs in memory, and while others write.

#![allow(clippy::unwrap_used, reason = "a test fails where something is wrong")]

mod dice;
mod examples;
mod graphs;
mod random;
mod threads;
mod twin;
