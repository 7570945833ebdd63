//! The decoders of bytes that come over the network.

pub mod bodies;
pub mod frames;
pub mod messages;
pub mod resp;
