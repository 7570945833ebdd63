//! Tests of live graphs on a node, with real databases.

mod indexes;
mod open;
mod replaced;
mod shared;
