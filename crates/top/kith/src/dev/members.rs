//! The running members of a development cluster, in this process or as its children.

use super::{
    plan::{Kind, Member, Plan},
    ports::ReservedPorts,
    processes, roles,
};
use crate::database::DatabaseServer;
use futures::future::{BoxFuture, FutureExt, join_all};
use kith_cluster::metadata::MetadataStore;
use kith_cluster::{StartError, topology::TopologyReceiver};
use kith_node::Node;
use kith_router::Router;
use std::{net::SocketAddr, sync::Arc};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

/// The surroundings that members need from the cluster.
pub(super) struct MemberContext {
    /// Whether each member runs in its own process.
    pub processes: bool,
    pub metadata: Arc<dyn MetadataStore>,
    /// The address at which children find the metadata.
    pub addr: SocketAddr,
    pub topology: TopologyReceiver,
}

/// The running members. Databases are stopped last, because nodes may still have writes in flight.
pub(super) struct Members {
    nodes_and_routers: Group,
    databases: Group,
    /// Stops the databases even if nobody calls `end`.
    _end_databases: DropGuard,
}

/// Members that are stopped together.
struct Group {
    stop: CancellationToken,
    /// The tasks that supervise children.
    tasks: TaskTracker,
    /// Members in this process.
    here: Vec<Here>,
}

enum Here {
    Database(DatabaseServer),
    Node(Node),
    Router(Router),
}

impl Members {
    /// Returns a value without members. Nodes and routers will run until `stop` is cancelled.
    pub fn new(stop: CancellationToken) -> Self {
        let databases = Group::new(CancellationToken::new());
        let end = databases.stop.clone().drop_guard();
        Self { nodes_and_routers: Group::new(stop), databases, _end_databases: end }
    }

    /// Starts all members of `plan`, one kind after the other.
    ///
    /// # Errors
    /// [`StartError`]. Members that were started before the error stop once this value is dropped and `stop` is cancelled.
    pub async fn start(
        &mut self,
        plan: &Plan,
        reserved: ReservedPorts,
        around: &MemberContext,
    ) -> Result<(), StartError> {
        let mut reserved = Some(reserved);
        for kind in Kind::ALL {
            if kind == Kind::Router {
                // Routers bind the reserved ports themselves.
                drop(reserved.take());
            }
            let group = match kind {
                Kind::Database => &mut self.databases,
                Kind::Node | Kind::Router => &mut self.nodes_and_routers,
            };
            match around.processes {
                true => group.start_children(plan, kind, around).await?,
                false => group.start_here(plan, kind, around).await?,
            }
        }
        Ok(())
    }

    /// Waits until nodes and routers have ended. Their stop must have been requested before. Then stops the databases.
    pub async fn end(&self) {
        self.nodes_and_routers.ended().await;
        self.databases.stop.cancel();
        self.databases.ended().await;
    }
}

impl Group {
    fn new(stop: CancellationToken) -> Self {
        Self { stop, tasks: TaskTracker::new(), here: Vec::new() }
    }

    async fn start_children(
        &self,
        plan: &Plan,
        kind: Kind,
        around: &MemberContext,
    ) -> Result<(), StartError> {
        let threads = plan.threads.unwrap_or_else(|| processes::share_of_processors(plan.members.len()));
        let role = |member: &Member| roles::role(&member.on_free_ports(), around.addr);
        let mut children = plan.of(kind).map(role).collect::<Result<Vec<_>, _>>()?;
        for role in &mut children {
            role.arguments.extend(["--threads".to_owned(), threads.to_string()]);
            role.arguments.extend(plan.log_flags.iter().cloned());
        }
        processes::start(children, &around.topology, &self.tasks, &self.stop).await
    }

    async fn start_here(
        &mut self,
        plan: &Plan,
        kind: Kind,
        around: &MemberContext,
    ) -> Result<(), StartError> {
        // The ports are checked one member at a time, because connections of those that run already may take ports of others.
        for member in plan.of(kind).map(Member::on_free_ports) {
            let (metadata, topology) = (Arc::clone(&around.metadata), around.topology.clone());
            let stop = self.stop.clone();
            self.here.push(match member {
                Member::Database(options) => {
                    Here::Database(DatabaseServer::start_beside(*options, metadata, topology, stop).await?)
                }
                Member::Node(options) => {
                    Here::Node(Node::start_beside(*options, metadata, topology, stop).await?)
                }
                Member::Router(options) => {
                    Here::Router(Router::start_beside(*options, metadata, topology, stop).await?)
                }
            });
        }
        Ok(())
    }

    /// Waits for the end of members whose stop has been requested.
    async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        join_all(self.here.iter().map(Here::ended)).await;
    }
}

impl Here {
    fn ended(&self) -> BoxFuture<'_, ()> {
        match self {
            Here::Database(database) => database.ended().boxed(),
            Here::Node(node) => node.ended().boxed(),
            Here::Router(router) => router.ended().boxed(),
        }
    }
}
