//! Inspects what nodes hold of a store: where a key is, whether every byte is correct, and all records.
//!
//! Each node is asked directly, because a router's view of a node would hide the faults to be found.

pub mod export;
mod lines;
pub mod place;
mod replicas;
mod sink;
mod throttle;
pub mod verify;
