//! The doors of one process: that of Redis clients, and those that a program brings.

use crate::{Backend, Door, resp, spawn};
use futures::future::join_all;
use kith_net::server::{self, Bound, ListenError, connections::Connections, security::Security};
use std::{net::SocketAddr, sync::Arc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A door and where it listens; port 0 takes a free one.
pub type DoorAt = (SocketAddr, Arc<dyn Door>);

/// Doors that are bound to their ports, and closed.
pub struct Doors {
    redis: Option<Bound>,
    others: Vec<(Bound, Arc<dyn Door>)>,
}

/// Doors that are open.
#[derive(Debug)]
pub struct OpenDoors {
    /// Where those that a program brings listen, their ports chosen, in their order.
    pub addresses: Vec<SocketAddr>,
    connections: Vec<TaskTracker>,
}

impl Doors {
    /// Binds those that a program brings; that of Redis clients is bound already.
    ///
    /// # Errors
    /// [`ListenError`]: an address cannot be listened on.
    pub async fn bind(
        redis: Option<Bound>,
        others: Vec<DoorAt>,
        connections: &Connections,
    ) -> Result<Self, ListenError> {
        let mut bound = Vec::new();
        for (addr, door) in others {
            bound.push((server::bind(addr, connections).await?, door));
        }
        Ok(Self { redis, others: bound })
    }

    /// Opens them in front of `backend` until `stop`.
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
        let all = redis.into_iter().chain(self.others);
        let spawn = |(bound, door)| spawn(bound, door, Arc::clone(backend), security, stop.clone());
        OpenDoors { addresses, connections: all.map(spawn).collect() }
    }
}

impl OpenDoors {
    /// Waits, once they are to stop, until their clients have their replies; not for long.
    pub async fn ended(&self) {
        join_all(self.connections.iter().map(server::ended)).await;
    }
}
