//! The door for Redis clients: RESP on a port of its own, in front of a router or of the partitions of a node
//! (`docs/design/0011-resp.md`, `docs/redis.md`).

mod answer;
mod clients;
mod commands;
mod connection;
mod describe;
mod dialogue;
mod endpoint;
mod gather;
mod host;
mod info;
mod introduction;
mod keys;
mod reads;
mod refused;
mod resp_rights;
mod round;
#[cfg(test)]
mod tests;
mod tracking;

use crate::{Backend, Door, DoorCaller, DoorNames, Stream};
use endpoint::Endpoint;
use futures::{FutureExt, future::BoxFuture};
use std::{io, net::SocketAddr, sync::Arc};

/// The names of this door, and its replies to clients that are refused.
const WORDS: DoorNames = DoorNames {
    name: "resp",
    protocol: "redis",
    client: "a Redis client",
    no_room: b"-ERR max number of clients reached\r\n",
    tls_required: b"-ERR tls_required: this port takes TLS only (redis-cli --tls --cacert FILE; redis-py ssl=True, ssl_ca_certs=FILE)\r\n",
};

/// The door for Redis clients at `addr`. It sends reads to `backend` itself, because it reads the keys of several
/// connections together.
pub fn door(backend: Arc<dyn Backend>, addr: SocketAddr) -> Arc<dyn Door> {
    Arc::new(Resp(Endpoint::new(backend, addr)))
}

#[derive(Debug)]
struct Resp(Arc<Endpoint>);

impl Door for Resp {
    fn names(&self) -> DoorNames {
        WORDS
    }

    fn serve<'a>(
        self: Arc<Self>,
        stream: &'a mut Stream,
        caller: DoorCaller,
    ) -> BoxFuture<'a, io::Result<()>> {
        let listed = self.0.connect(caller.peer());
        let (connected, rights) = (Arc::clone(caller.connected()), caller.rights().clone().into());
        let (endpoint, stop) = (Arc::clone(&self.0), caller.end().clone());
        connection::serve(stream, listed, connected, endpoint, rights, stop).boxed()
    }

    /// The connection enforces its own limits, because it says why in error replies of Redis.
    fn bounds_itself(&self) -> bool {
        true
    }
}
