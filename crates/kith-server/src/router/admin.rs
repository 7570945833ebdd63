//! Administration: status, publishing a graph version in two phases, dropping a graph
//! (architecture D7: prepare on every node, then one conditional commit).

use crate::{
    metadata::{Committed, Condition, MetadataStore, Write, keys},
    serve::ClusterReader,
    topology::TopologyReceiver,
};
use futures::{StreamExt, stream::BoxStream};
use kith_client::{Fleet, endpoint};
use kith_types::NodeId;
use kith_wire::{
    documents::{
        ComponentDocument, DOCUMENT_FORMAT, Document, GraphDocument, NodeDocument, TopologyDocument,
    },
    v1::{self, node_client::NodeClient},
};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status};

/// A publication waits so long for a node that is away before it fails.
const NODE_WAIT: Duration = Duration::from_secs(60);
/// Pause between tries to reach such a node.
const NODE_RETRY: Duration = Duration::from_millis(500);
/// Two loads of one graph that commit at the same time: the loser looks again, so often.
const COMMIT_TRIES: u32 = 5;
/// How long a commit may take to come back through the watch.
const VISIBLE_WAIT: Duration = Duration::from_secs(5);
/// Progress messages that may wait for their reader.
const PROGRESS_QUEUE: usize = 256;

/// The `Cluster` service of a router.
#[derive(Clone)]
pub(super) struct Admin {
    pub metadata: Arc<dyn MetadataStore>,
    pub topology: TopologyReceiver,
    pub fleet: Arc<Fleet>,
}

type Progress = mpsc::Sender<Result<v1::PublishProgress, Status>>;

impl Admin {
    async fn publish(
        &self,
        graph: &str,
        components: &[ComponentDocument],
        progress: &Progress,
    ) -> Result<u64, Status> {
        for _ in 0..COMMIT_TRIES {
            let key = keys::graph(graph);
            let snapshot = self.metadata.read(&key).await.map_err(unavailable)?;
            let (revision, before) = match snapshot.get(&key) {
                Some(entry) => {
                    (entry.revision, Some(GraphDocument::decode(&entry.value).map_err(malformed)?))
                }
                None => (0, None),
            };
            let next = next_version(graph, before, components, now_millis())?;
            self.prepare_everywhere(&next, progress).await?;
            let condition = Condition { key: key.clone(), revision };
            let write = Write::put(key, next.encode());
            match self.metadata.commit(vec![condition], vec![write]).await.map_err(unavailable)? {
                Committed::At(revision) => {
                    self.wait_until_visible(revision).await;
                    self.remove_superseded(&next);
                    tracing::info!(graph, version = next.version, "a graph version serves");
                    return Ok(next.version);
                }
                // Another edge type of the same graph was loaded meanwhile: both must stand.
                Committed::Conflict => tracing::info!(graph, "the graph changed meanwhile: looking again"),
            }
        }
        let message = format!("graph {graph:?} changed {COMMIT_TRIES} times while it was published");
        Err(kith_wire::status(Code::Aborted, "conflict", message, "load again when the other loads are done"))
    }

    async fn prepare_everywhere(&self, graph: &GraphDocument, progress: &Progress) -> Result<(), Status> {
        let topology = Arc::clone(&self.topology.borrow());
        let nodes = topology.cluster.groups.iter().flat_map(|group| group.nodes.iter().copied());
        let record = graph.encode();
        let all: Vec<_> = nodes.map(|node| self.prepare_on(node, record.clone(), progress)).collect();
        futures::future::try_join_all(all).await?;
        Ok(())
    }

    async fn prepare_on(&self, node: u32, record: Vec<u8>, progress: &Progress) -> Result<(), Status> {
        let started = Instant::now();
        loop {
            match self.try_prepare(node, record.clone(), progress).await {
                Err(status) if is_away(&status) && started.elapsed() < NODE_WAIT => {
                    // No component and no bytes: this node is waited for.
                    let waiting = v1::PublishProgress { node, ..Default::default() };
                    let _ = progress.try_send(Ok(waiting));
                    tokio::time::sleep(NODE_RETRY).await;
                }
                Err(status) if is_away(&status) => {
                    let message = format!("node {node} cannot be reached: {}", status.message());
                    let help =
                        "nothing was swapped; start the node (see `kith cluster status`) and load again";
                    return Err(kith_wire::status(Code::Unavailable, "node_unreachable", message, help));
                }
                other => return other,
            }
        }
    }

    async fn try_prepare(&self, node: u32, record: Vec<u8>, progress: &Progress) -> Result<(), Status> {
        let addr = {
            let topology = self.topology.borrow();
            let document = topology.nodes.iter().find(|document| document.node == node);
            document
                .map(|document| document.addr.clone())
                .ok_or_else(|| Status::unavailable("it has not registered"))?
        };
        let channel =
            endpoint(&addr)?.connect().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let request = v1::PrepareRequest { graph: String::new(), record: record.into() };
        let mut steps = NodeClient::new(channel).prepare(request).await?.into_inner();
        while let Some(step) = steps.message().await? {
            if step.ready {
                return Ok(());
            }
            let report = v1::PublishProgress {
                node,
                component: step.component,
                bytes_done: step.bytes_done,
                bytes_total: step.bytes_total,
                committed_version: 0,
            };
            // A slow reader misses progress, nothing else.
            let _ = progress.try_send(Ok(report));
        }
        Err(Status::unavailable("it ended before it was ready"))
    }

    /// So that whoever published finds it at this router at once.
    async fn wait_until_visible(&self, revision: u64) {
        let mut topology = self.topology.clone();
        let visible = topology.wait_for(|topology| revision <= topology.revision);
        if tokio::time::timeout(VISIBLE_WAIT, visible).await.is_err() {
            tracing::warn!(revision, "a commit has not come back through the watch yet");
        }
    }

    /// Built components that the new version replaces are not needed in the object store any more:
    /// every node has what it serves.
    fn remove_superseded(&self, graph: &GraphDocument) {
        let store = self.topology.borrow().cluster.object_store.clone();
        for component in &graph.components {
            let folder = Path::new(&store).join(&graph.name).join(&component.name);
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let version: Option<u64> = entry.file_name().to_str().and_then(|name| name.parse().ok());
                if version.is_some_and(|version| version < component.version)
                    && let Err(error) = std::fs::remove_dir_all(entry.path())
                {
                    tracing::warn!(%error, path = %entry.path().display(), "a superseded component could not be removed");
                }
            }
        }
    }

    async fn drop_now(&self, graph: &str) -> Result<u64, Status> {
        let key = keys::graph(graph);
        let snapshot = self.metadata.read(&key).await.map_err(unavailable)?;
        let Some(entry) = snapshot.get(&key) else {
            let known: Vec<String> =
                self.topology.borrow().graphs.iter().map(|graph| graph.name.clone()).collect();
            let error = kith_client::QueryError::UnknownGraph { name: graph.to_owned(), known };
            return Err(error.to_status());
        };
        let condition = Condition { key: key.clone(), revision: entry.revision };
        match self.metadata.commit(vec![condition], vec![Write::delete(key)]).await.map_err(unavailable)? {
            Committed::At(revision) => {
                self.wait_until_visible(revision).await;
                let folder = Path::new(&self.topology.borrow().cluster.object_store).join(graph);
                if let Err(error) = std::fs::remove_dir_all(&folder) {
                    tracing::warn!(%error, path = %folder.display(), "a dropped graph's files could not be removed");
                }
                Ok(revision)
            }
            Committed::Conflict => {
                let message = format!("graph {graph:?} changed meanwhile");
                Err(kith_wire::status(
                    Code::Aborted,
                    "conflict",
                    message,
                    "look at it again, then drop it again",
                ))
            }
        }
    }

    async fn node_status(&self, topology: &TopologyDocument, group: u32, node: u32) -> v1::NodeStatus {
        let document: Option<&NodeDocument> = topology.nodes.iter().find(|document| document.node == node);
        let owners =
            topology.cluster.groups.iter().find(|entry| entry.group == group).map(|entry| &entry.owners);
        let partitions =
            owners.map_or(0, |owners| owners.iter().filter(|owner| **owner == node).count() as u32);
        let mut status = v1::NodeStatus {
            node,
            group,
            addr: document.map(|document| document.addr.clone()).unwrap_or_default(),
            pid: document.map_or(0, |document| document.pid),
            partitions,
            state: "unregistered".to_owned(),
            ..Default::default()
        };
        if document.is_some() {
            let ping = self.fleet.transport().ping(&status.addr, v1::PingRequest::default());
            match tokio::time::timeout(NODE_RETRY, ping).await {
                Ok(Ok(reply)) => {
                    let up = self.fleet.is_up(NodeId(node));
                    status.state = if up { "up" } else { "coming back" }.to_owned();
                    status.load = reply.load;
                    status.served = reply.served;
                }
                _ => status.state = "down".to_owned(),
            }
        }
        status
    }
}

/// The graph's document with `components` in it, at the next version.
fn next_version(
    graph: &str,
    before: Option<GraphDocument>,
    components: &[ComponentDocument],
    now: u64,
) -> Result<GraphDocument, Status> {
    let mut next = before.unwrap_or_else(|| GraphDocument {
        format: DOCUMENT_FORMAT,
        name: graph.to_owned(),
        version: 0,
        components: Vec::new(),
    });
    // Versions are never used twice, also not those of publications that failed.
    next.version = now.max(next.version + 1);
    for component in components {
        match next.components.iter_mut().find(|known| known.name == component.name) {
            Some(known) if known.role != component.role => {
                let message = format!(
                    "{:?} of graph {graph:?} is {}, the load makes it {}",
                    component.name, known.role, component.role
                );
                let help = "load it under another name, or drop the graph first";
                return Err(kith_wire::status(Code::FailedPrecondition, "role_changed", message, help));
            }
            Some(known) => *known = component.clone(),
            None => next.components.push(component.clone()),
        }
    }
    Ok(next)
}

fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn is_away(status: &Status) -> bool {
    kith_wire::detail_of(status).code == "unavailable"
        || (status.code() == Code::Unknown && status.details().is_empty())
}

fn unavailable(error: crate::metadata::MetadataError) -> Status {
    let help = "queries go on; changes wait until the metadata store is back";
    kith_wire::status(Code::Unavailable, "metadata_unavailable", error.to_string(), help)
}

fn malformed(error: kith_wire::documents::DocumentError) -> Status {
    kith_wire::status(
        Code::InvalidArgument,
        "bad_request",
        error.to_string(),
        "use a release that knows this document",
    )
}

#[tonic::async_trait]
impl v1::cluster_server::Cluster for Admin {
    type WatchTopologyStream = BoxStream<'static, Result<v1::Topology, Status>>;
    type PublishGraphStream = BoxStream<'static, Result<v1::PublishProgress, Status>>;

    async fn get_topology(&self, _: Request<v1::TopologyRequest>) -> Result<Response<v1::Topology>, Status> {
        Ok(Response::new(ClusterReader::new(self.topology.clone()).now()))
    }

    async fn watch_topology(
        &self,
        _: Request<v1::TopologyRequest>,
    ) -> Result<Response<Self::WatchTopologyStream>, Status> {
        Ok(Response::new(ClusterReader::new(self.topology.clone()).changes()))
    }

    async fn status(&self, _: Request<v1::StatusRequest>) -> Result<Response<v1::ClusterStatus>, Status> {
        let topology = Arc::clone(&self.topology.borrow());
        let groups = topology.cluster.groups.iter();
        let nodes = groups.flat_map(|group| group.nodes.iter().map(|&node| (group.group, node)));
        let nodes = nodes.map(|(group, node)| self.node_status(&topology, group, node));
        let nodes = futures::future::join_all(nodes).await;
        let routers = topology.routers.iter().map(|router| v1::RouterStatus {
            addr: router.addr.clone(),
            http: router.http.clone(),
            pid: router.pid,
        });
        Ok(Response::new(v1::ClusterStatus {
            nodes,
            epoch: topology.cluster.epoch,
            routers: routers.collect(),
            partitions: topology.cluster.partitions,
        }))
    }

    async fn publish_graph(
        &self,
        request: Request<v1::PublishRequest>,
    ) -> Result<Response<Self::PublishGraphStream>, Status> {
        let request = request.into_inner();
        let components: Vec<ComponentDocument> =
            serde_json::from_slice(&request.components).map_err(|error| {
                kith_wire::status(
                    Code::InvalidArgument,
                    "bad_request",
                    error.to_string(),
                    "use the kith of this release to load",
                )
            })?;
        let (sender, receiver) = mpsc::channel(PROGRESS_QUEUE);
        let admin = self.clone();
        // Goes on when the caller goes away: a publication ends whole or not at all.
        tokio::spawn(async move {
            let last = admin.publish(&request.graph, &components, &sender).await;
            let last =
                last.map(|version| v1::PublishProgress { committed_version: version, ..Default::default() });
            let _ = sender.send(last).await;
        });
        Ok(Response::new(ReceiverStream::new(receiver).boxed()))
    }

    async fn drop_graph(&self, request: Request<v1::DropRequest>) -> Result<Response<v1::DropReply>, Status> {
        let revision = self.drop_now(&request.get_ref().graph).await?;
        Ok(Response::new(v1::DropReply { revision }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(name: &str, role: &str, version: u64) -> ComponentDocument {
        ComponentDocument {
            name: name.into(),
            role: role.into(),
            version,
            manifest_hash: String::new(),
            columns: vec![],
            members: 0,
            edges: 0,
            bytes: 0,
            loaded_at: 0,
        }
    }

    #[test]
    fn a_load_replaces_its_components_and_leaves_the_others() {
        let first = [component("connection", "undirected", 1), component("school", "entity", 1)];
        let graph = next_version("g", None, &first, 100).unwrap();
        let graph = next_version("g", Some(graph), &[component("connection", "undirected", 2)], 100).unwrap();
        let versions: Vec<(&str, u64)> =
            graph.components.iter().map(|component| (component.name.as_str(), component.version)).collect();
        assert_eq!((graph.version, versions.as_slice()), (101, &[("connection", 2), ("school", 1)][..]));
    }

    #[test]
    fn a_component_cannot_change_its_role() {
        let graph = next_version("g", None, &[component("follows", "directed", 1)], 1).unwrap();
        let error = next_version("g", Some(graph), &[component("follows", "undirected", 2)], 2).unwrap_err();
        assert_eq!(kith_wire::detail_of(&error).code, "role_changed");
    }
}
