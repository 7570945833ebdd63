//! The ready file: the addresses of all members, as JSON. It is replaced atomically at every change.

use super::plan::{Member, Plan};
use kith_cluster::{
    StartError,
    data_dir::{DataDirError, write_atomically},
    topology::TopologyReceiver,
};
use kith_wire::documents::TopologyDocument;
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// The time that all members together may take to start. Opening data takes constant time, but a cold machine is slow.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// The time limit of a connection to a running cluster.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// The content of the ready file. Its fields are a contract: scripts rely on them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyDocument {
    /// The first router's gRPC address.
    pub router: String,
    /// The first router's HTTP address.
    pub http: String,
    /// The first router's address for Redis clients.
    pub resp: String,
    /// The first router's address for Gremlin drivers.
    #[serde(default)]
    pub gremlin: String,
    /// Every node.
    pub nodes: Vec<ReadyNode>,
    /// Every router.
    pub routers: Vec<ReadyRouter>,
    /// Every database.
    #[serde(default)]
    pub databases: Vec<ReadyDatabase>,
    /// The process id of `kith dev`. All other processes end with it.
    pub pid: u32,
    /// The data directory of `kith dev`.
    pub data: PathBuf,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyNode {
    /// Its replica group.
    pub group: u32,
    /// Its id.
    pub node: u32,
    /// Its gRPC address.
    pub addr: String,
    /// Its address for Redis clients.
    pub resp: String,
    /// Its process.
    pub pid: u32,
}

/// One router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyRouter {
    /// Its gRPC address.
    pub addr: String,
    /// Its address for Redis clients.
    pub resp: String,
    /// Its address for Gremlin drivers.
    #[serde(default)]
    pub gremlin: String,
    /// Its process.
    pub pid: u32,
}

/// One database process, which keeps the rows of live graphs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyDatabase {
    /// Its id.
    pub database: u32,
    /// Its gRPC address.
    pub addr: String,
    /// Its process.
    pub pid: u32,
}

impl ReadyDocument {
    /// Returns the document for the topology; `None` until the topology names all members of `plan`.
    fn of(topology: &TopologyDocument, plan: &Plan) -> Option<Self> {
        let mut ready = Self {
            router: String::new(),
            http: String::new(),
            resp: String::new(),
            gremlin: String::new(),
            nodes: Vec::new(),
            routers: Vec::new(),
            databases: Vec::new(),
            pid: std::process::id(),
            data: plan.data.clone(),
        };
        plan.members.iter().try_for_each(|member| ready.add(member, topology))?;
        Some(ready)
    }

    /// Adds a member from the topology; `None` if the topology does not name it.
    fn add(&mut self, member: &Member, topology: &TopologyDocument) -> Option<()> {
        match member {
            Member::Database(options) => {
                let document = topology.databases.iter().find(|it| it.database == options.database)?;
                let (database, addr) = (document.database, document.addr.clone());
                self.databases.push(ReadyDatabase { database, addr, pid: document.pid });
            }
            Member::Node(options) => {
                let mut groups = topology.cluster.groups.iter();
                // A node that was removed from the cluster is left out, although it still runs.
                let Some(group) = groups.find(|group| group.nodes.contains(&options.node)) else {
                    return Some(());
                };
                let document = topology.nodes.iter().find(|it| it.node == options.node)?;
                self.nodes.push(ReadyNode {
                    group: group.group,
                    node: options.node,
                    addr: document.addr.clone(),
                    resp: document.resp.clone(),
                    pid: document.pid,
                });
            }
            Member::Router(options) => {
                let document = topology.routers.iter().find(|it| it.router == options.router)?;
                let router = ReadyRouter {
                    addr: document.addr.clone(),
                    resp: document.resp.clone(),
                    gremlin: document.gremlin.clone(),
                    pid: document.pid,
                };
                if self.routers.is_empty() {
                    (self.router, self.http) = (router.addr.clone(), document.http.clone());
                    (self.resp, self.gremlin) = (router.resp.clone(), router.gremlin.clone());
                }
                self.routers.push(router);
            }
        }
        Some(())
    }

    /// Reads a ready file; `None` if the file is missing or not a ready file.
    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// Refuses a file that names another running cluster, because clients would lose that cluster.
    ///
    /// # Errors
    /// [`StartError::ReadyFileInUse`].
    pub async fn check_free(path: &Path) -> Result<(), StartError> {
        let Some(other) = Self::read(path) else { return Ok(()) };
        let connecting = tokio::net::TcpStream::connect(&other.router);
        match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(_)) => Err(StartError::ReadyFileInUse { path: path.to_owned(), router: other.router }),
            _ => Ok(()),
        }
    }

    /// Removes the file, if it still names this cluster.
    pub fn remove(&self, path: &Path) {
        let is_ours = Self::read(path).is_some_and(|there| there.router == self.router);
        if is_ours && let Err(error) = std::fs::remove_file(path) {
            tracing::debug!(%error, "the ready file was gone already");
        }
    }

    /// Writes the file atomically, by renaming.
    ///
    /// # Errors
    /// [`StartError::Write`] with the path.
    pub fn write(&self, path: &Path) -> Result<(), StartError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .map_err(|source| StartError::Write { path: folder.to_owned(), source })?;
        }
        let mut bytes = serde_json::to_vec(self).expect("a ready document is strings and numbers");
        bytes.push(b'\n');
        write_atomically(path, &bytes).map_err(|error| match error {
            DataDirError::Io { path, source } => StartError::Write { path, source },
            other => other.into(),
        })
    }
}

/// Waits until the topology names everything that this run has started.
pub(super) async fn wait(mut topology: TopologyReceiver, plan: &Plan) -> Result<ReadyDocument, StartError> {
    let all_here = async {
        loop {
            if let Some(ready) = ReadyDocument::of(&topology.borrow_and_update(), plan) {
                return Some(ready);
            }
            if topology.changed().await.is_err() {
                return None;
            }
        }
    };
    let timed_out = || StartError::Child {
        what: "the cluster".to_owned(),
        detail: format!("not all databases, nodes and routers registered within {READY_TIMEOUT:?}"),
    };
    tokio::time::timeout(READY_TIMEOUT, all_here).await.ok().flatten().ok_or_else(timed_out)
}

/// Rewrites the file whenever a process returns with another process id or address.
pub(super) async fn follow(
    mut topology: TopologyReceiver,
    plan: Plan,
    path: PathBuf,
    mut last: ReadyDocument,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            changed = topology.changed() => if changed.is_err() { return },
        }
        let Some(ready) = ReadyDocument::of(&topology.borrow_and_update(), &plan) else { continue };
        if ready == last {
            continue;
        }
        match ready.write(&path) {
            Ok(()) => last = ready,
            Err(error) => tracing::error!(%error, "the ready file could not be rewritten"),
        }
    }
}
