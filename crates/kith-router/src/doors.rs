//! The router behind its doors, and those that a program brings.

use super::{counts, service::GraphServer};
use futures::future::join_all;
use kith_api::{QueryError, StoreShape};
use kith_doors::{Backend, Door, resp, spawn};
use kith_net::server::{self, Bound, ListenError, connections::Connections, security::Security};
use std::{net::SocketAddr, sync::Arc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A door and where it listens; port 0 takes a free one.
pub type DoorAt = (SocketAddr, Arc<dyn Door>);

impl Backend for GraphServer {
    fn role(&self) -> &'static str {
        "router"
    }

    fn stores(&self) -> Vec<(String, u64)> {
        let topology = self.session.topology();
        let stores = topology.stores.iter();
        stores.map(|(name, store)| (name.clone(), store.pinned.version)).collect()
    }

    fn shape_of(&self, store: &str) -> Result<StoreShape, QueryError> {
        let topology = self.session.topology();
        let store = topology.store(store)?;
        Ok(StoreShape { key: store.key, value: store.value })
    }

    fn fans_out(&self) -> bool {
        true
    }
}

/// Doors that are bound to their ports.
pub(crate) struct Doors {
    redis: Option<Bound>,
    others: Vec<(Bound, Arc<dyn Door>)>,
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
            counts::of_door(door.words().name);
            bound.push((server::bind(addr, connections).await?, door));
        }
        Ok(Self { redis, others: bound })
    }

    /// Where those that a program brings listen, their ports chosen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.others.iter().map(|(bound, _)| bound.addr).collect()
    }

    /// Opens them in front of `graph` until `stop`; their connections.
    pub fn open(
        self,
        graph: &Arc<GraphServer>,
        security: &Security,
        stop: &CancellationToken,
    ) -> Vec<TaskTracker> {
        let backend = || Arc::clone(graph) as Arc<dyn Backend>;
        let redis = self.redis.map(|bound| {
            let door = resp::door(backend(), bound.addr);
            (bound, door)
        });
        let all = redis.into_iter().chain(self.others);
        all.map(|(bound, door)| spawn(bound, door, backend(), security, stop.clone())).collect()
    }
}

/// Waits until the connections of all doors have ended; not for long.
pub(crate) async fn ended(doors: &[TaskTracker]) {
    join_all(doors.iter().map(server::ended)).await;
}
