//! Looking at what nodes hold of a store: where a key lies, whether every byte is right, and all records out of it.
//!
//! Each node is asked itself: a router's word about a node would hide what is to be found.

pub mod export;
mod lines;
pub mod place;
mod replicas;
mod sink;
mod throttle;
pub mod verify;
