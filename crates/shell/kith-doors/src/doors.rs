//! The doors of one process: the Redis door, the Gremlin door, and those that a program adds.

use crate::{Backend, Door, gremlin::Gremlin, resp, spawn};
use futures::future::join_all;
use kith_net::server::{self, BoundListener, ListenError, connections::Connections, security::Security};
use std::{net::SocketAddr, sync::Arc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A door and the address on which it listens; port 0 chooses a free port.
pub type DoorAt = (SocketAddr, Arc<dyn Door>);

/// Doors that are bound to their ports, but accept no connections yet.
pub struct Doors {
    redis: Option<BoundListener>,
    gremlin: Option<BoundListener>,
    others: Vec<(BoundListener, Arc<dyn Door>)>,
}

/// Doors that accept connections.
#[derive(Debug)]
pub struct OpenDoors {
    /// The addresses of the doors that the program has added, in its order. Port 0 is replaced by the port that was chosen.
    pub addresses: Vec<SocketAddr>,
    connections: Vec<TaskTracker>,
}

impl Doors {
    /// Binds the doors that a program adds to their ports. The ports for Redis clients and Gremlin drivers are already bound.
    ///
    /// # Errors
    /// [`ListenError`] if the process cannot listen on an address.
    pub async fn bind(
        redis: Option<BoundListener>,
        gremlin: Option<BoundListener>,
        others: Vec<DoorAt>,
        connections: &Connections,
    ) -> Result<Self, ListenError> {
        let mut bound = Vec::new();
        for (addr, door) in others {
            bound.push((server::bind(addr, connections).await?, door));
        }
        Ok(Self { redis, gremlin, others: bound })
    }

    /// Opens the doors in front of `backend`, until `stop` is cancelled.
    pub fn open(
        self,
        backend: &Arc<dyn Backend>,
        security: &Security,
        stop: &CancellationToken,
    ) -> OpenDoors {
        let addresses = self.others.iter().map(|(bound, _)| bound.addr).collect();
        let redis = self.redis.map(|bound| {
            let door = resp::door(Arc::clone(backend), bound.addr);
            (bound, door)
        });
        let gremlin = self.gremlin.map(|bound| (bound, Arc::new(Gremlin) as Arc<dyn Door>));
        let all = redis.into_iter().chain(gremlin).chain(self.others);
        let spawn = |(bound, door)| spawn(bound, door, Arc::clone(backend), security, stop.clone());
        OpenDoors { addresses, connections: all.map(spawn).collect() }
    }
}

impl OpenDoors {
    /// Waits, for a limited time, until the clients of doors that are stopping have their replies.
    pub async fn ended(&self) {
        join_all(self.connections.iter().map(server::ended)).await;
    }
}
