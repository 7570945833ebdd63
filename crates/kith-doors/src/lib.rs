//! The doors of a serving process: the protocols in which clients send requests, besides gRPC and frames
//! (`docs/design/0017-doors.md`).
//!
//! A [`Door`] is a protocol: it turns bytes into requests and replies into bytes. A [`Backend`] answers the requests: a
//! router, or a node for the partitions that it holds. [`spawn`] puts a door in front of a backend, and gives each
//! connection a [`Guest`], through which the door sends its requests.

mod bounded;
mod door;
mod doors;
pub mod gremlin;
mod guest;
mod listener;
mod parting;
pub mod resp;
#[cfg(test)]
mod tests;
mod visitor;

pub use door::{Backend, Door, DoorNames, Stream};
pub use doors::{DoorAt, Doors, OpenDoors};
pub use guest::{Charged, Guest};
pub use listener::{CONNECTIONS_MAX, spawn};
pub use visitor::{AuthError, DEFAULT_USER, Visitor};
