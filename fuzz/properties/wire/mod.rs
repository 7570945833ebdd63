//! What comes over the network.

pub mod bodies;
pub mod frames;
pub mod messages;
pub mod resp;
