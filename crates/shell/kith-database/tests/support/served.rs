//! Serves the graphs of a folder on loopback, as a database process does.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use super::identity;
use kith_database::{
    DatabaseProcesses, DatabaseService, GraphFiles, RemoteDatabase, RemoteOptions, RemoteTarget,
    SqliteOptions,
};
use kith_net::{
    frames::Frames,
    security::Dialer,
    server::{self, connections::Connections, security::Security},
};
use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The name of the graph in the tests.
pub const GRAPH: &str = "people";

pub struct ServedDatabase {
    pub addr: SocketAddr,
    graphs: Arc<GraphFiles>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl ServedDatabase {
    /// Serves the graphs of `folder`.
    pub async fn start(folder: &Path) -> Self {
        Self::start_at(folder, SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// As [`ServedDatabase::start`], but at a given address.
    pub async fn start_at(folder: &Path, addr: SocketAddr) -> Self {
        let graphs = GraphFiles::new(folder.to_owned(), SqliteOptions::default()).expect("a folder");
        let graphs = Arc::new(graphs);
        let connections = Connections::new(Default::default()).expect("enough files may be open");
        let bound = server::bind(addr, &connections).await.expect("a port");
        let addr = bound.addr;
        let service = DatabaseService::new(Arc::clone(&graphs));
        let stop = CancellationToken::new();
        let tasks = server::spawn(bound, server::routes(), Some(service), &Security::default(), stop.clone());
        Self { addr, graphs, tasks, stop }
    }

    pub async fn create(&self) -> RemoteDatabase {
        RemoteDatabase::create(target(self.addr.port()), identity()).await.expect("a new file")
    }

    pub async fn end(self) {
        self.stop.cancel();
        server::ended(&self.tasks).await;
        self.graphs.close().await;
    }
}

/// The graph in a process at a port of this machine.
pub fn target(port: u16) -> RemoteTarget {
    target_at(Arc::new(AtomicU16::new(port)), frames())
}

pub fn frames() -> Arc<Frames> {
    Arc::new(Frames::new(Dialer::default(), false))
}

/// As [`target`], but over the connections of `frames`, and at a port that may change; 0 means that there is no process.
pub fn target_at(port: Arc<AtomicU16>, frames: Arc<Frames>) -> RemoteTarget {
    let address = move |_| match port.load(Ordering::Relaxed) {
        0 => None,
        port => Some(format!("127.0.0.1:{port}")),
    };
    RemoteTarget {
        database: 0,
        graph: GRAPH.to_owned(),
        processes: Arc::new(DatabaseProcesses::new(Arc::new(address), frames)),
        options: RemoteOptions::default(),
    }
}
