//! The door for Gremlin drivers: the WebSocket protocol of Gremlin Server 3.8 (`docs/design/0020-gremlin.md`).
//!
//! A connection begins with an HTTP request (`http`). It may be a traversal, which is answered (`exchange`), or begin a WebSocket at
//! [`PATH`]. Then one task reads requests, a second sends answers, and each request is served by a task of its own, so the answers
//! to different requests may be mixed (`connection`).

mod answer;
mod connection;
mod exchange;
mod failure;
mod frames;
mod http;
mod incoming;
mod inlet;
mod introduction;
mod outbox;
mod question;
mod results;
#[cfg(test)]
mod tests;

use crate::{Door, DoorCaller, DoorNames, Stream};
use futures::{FutureExt, future::BoxFuture};
use std::{io, sync::Arc, time::Duration};

/// The path at which drivers connect.
pub const PATH: &str = "/gremlin";
/// The longest request in bytes.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;
/// As many requests of one connection may be evaluated at once. Further ones wait.
pub const UNDER_WAY_MAX: usize = 64;
/// As many requests of one connection may wait, besides those that are evaluated. Further ones are refused.
pub const WAITING_MAX: usize = 256;
/// A request that has waited for this long is refused.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(1);

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

    fn serve<'a>(
        self: Arc<Self>,
        stream: &'a mut Stream,
        caller: DoorCaller,
    ) -> BoxFuture<'a, io::Result<()>> {
        connection::serve(stream, caller).boxed()
    }
}
