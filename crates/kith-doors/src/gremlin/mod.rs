//! The door for Gremlin drivers: the WebSocket protocol of Gremlin Server 3.8 (`docs/design/0020-gremlin.md`).
//!
//! A connection begins with an HTTP request for [`PATH`] (`upgrade`). One task reads requests, a second sends answers, and each
//! request is served by a task of its own, so the answers to different requests may be mixed (`connection`).

mod answer;
mod connection;
mod failure;
mod incoming;
mod inlet;
mod introduction;
mod outbox;
mod question;
mod results;
#[cfg(test)]
mod tests;
mod upgrade;

use crate::{Door, DoorNames, Guest, Stream};
use futures::{FutureExt, future::BoxFuture};
use std::{io, sync::Arc};

/// The path at which drivers connect.
pub const PATH: &str = "/gremlin";
/// The longest request in bytes.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;
/// As many requests of one connection may be under way at once. The next one is read when one of them has ended.
pub const UNDER_WAY_MAX: usize = 16;

const NAMES: DoorNames = DoorNames {
    name: "gremlin",
    protocol: "gremlin",
    client: "a Gremlin client",
    no_room: b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: 69\r\n\r\ntoo_many_connections: this process has no room for another connection",
    tls_required: b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: 74\r\n\r\ntls_required: this port takes TLS only; connect to wss://HOST:PORT/gremlin",
};

/// The door for Gremlin drivers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gremlin;

impl Door for Gremlin {
    fn names(&self) -> DoorNames {
        NAMES
    }

    fn serve<'a>(self: Arc<Self>, stream: &'a mut Stream, guest: Guest) -> BoxFuture<'a, io::Result<()>> {
        connection::serve(stream, guest).boxed()
    }
}
