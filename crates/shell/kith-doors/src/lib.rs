//! The doors of a serving process: the protocols in which clients send requests, besides gRPC and frames
//! (`docs/design/0017-doors.md`). Routers and nodes open them. A door decides nothing about data: it decodes, asks and
//! encodes.
//!
//! ```text
//! Redis client, Gremlin driver ─► listener: limits, TLS, authentication ─► Door ─► DoorCaller::call ─► Backend (router, node)
//! ```
//!
//! A [`Door`] turns bytes into requests and replies into bytes. A [`Backend`] answers. Each connection has a [`DoorCaller`],
//! which checks the rights of its peer and counts its requests.
//!
//! - `door`, `door_caller`, `caller_rights`: the traits, and the peer with its rights.
//! - `listener`, `doors`, `bounded`, `parting`: accepting connections, all doors of a process, their limits and their
//!   end.
//! - [`resp`]: the Redis protocol. `commands` lists the commands, `dialogue` interprets them, `reads` and `gather` join
//!   reads.
//! - [`gremlin`]: the WebSocket protocol and the HTTP requests of Gremlin drivers; `inlet` charges what arrives, and
//!   `answer` runs a request and bounds its messages.
//!
//! A backend that does not know never answers "none".
//!
//! To add a door, implement [`Door`] as `examples/line.rs` does, and name it in `RouterOptions::doors` or
//! `NodeOptions::doors`. To add a Redis command, add its line in `resp/commands.rs` and its arm in `resp/dialogue.rs`.

mod bounded;
mod caller_rights;
mod door;
mod door_caller;
mod doors;
pub mod gremlin;
mod listener;
mod parting;
pub mod resp;
#[cfg(test)]
mod tests;

pub use caller_rights::{AuthError, CallerRights, DEFAULT_USER};
pub use door::{Backend, Door, DoorNames, Stream};
pub use door_caller::{ChargedReply, DoorCaller};
pub use doors::{DoorAt, Doors, OpenDoors};
pub use listener::{CONNECTIONS_MAX, spawn};
