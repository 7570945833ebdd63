//! Development clusters in this process, with graphs.

mod newer;
mod outage;
mod peer;
mod serve;
mod versions;

use kith::dev::{Dev, DevOptions, ReadyDocument, Shape};
use kith_build::{LoadOptions, LoadReport, load_graph};
use kith_client::RouterClient;
use kith_engine::Manifest;
use kith_types::{PartitionCount, StoreVersion};
use kith_wire::{documents::ComponentDocument, v1};
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

pub struct Cluster {
    dev: Option<Dev>,
    pub router: RouterClient,
    folder: Option<tempfile::TempDir>,
    pub stop: CancellationToken,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub fn options(folder: &Path, groups: u32, nodes: u32) -> DevOptions {
    DevOptions {
        shape: Shape { groups: Some(groups), nodes: Some(nodes), partitions: Some(24), ..Shape::default() },
        routers: 1,
        objects: None,
        processes: false,
        threads: None,
        data: Some(folder.join("data")),
        ready_file: folder.join("ready.json"),
        port: Some(0),
        http_port: Some(0),
        resp_port: Some(0),
        gremlin_port: Some(0),
        router: Default::default(),
        scrub_rate: None,
        fetch_rate: None,
        fetch_p99: None,
        log_retention: kith_node::NodeOptions::LOG_RETENTION_DEFAULT,
        connections: Default::default(),
        log_flags: Vec::new(),
        log: None,
    }
}

pub async fn start(groups: u32, nodes: u32) -> Cluster {
    start_with(groups, nodes, |_| ()).await
}

pub async fn start_with(groups: u32, nodes: u32, change: impl FnOnce(&mut DevOptions)) -> Cluster {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let stop = CancellationToken::new();
    let mut options = options(folder.path(), groups, nodes);
    change(&mut options);
    let dev = Dev::start(options, stop.clone()).await.expect("the cluster starts");
    let router = RouterClient::connect(&[dev.ready().router.clone()]).await.expect("the router answers");
    Cluster { dev: Some(dev), router, folder: Some(folder), stop }
}

impl Cluster {
    /// The content of the ready file.
    pub fn ready(&self) -> &ReadyDocument {
        self.dev.as_ref().expect("it runs").ready()
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.folder.as_ref().expect("it runs").path().join("data")
    }

    /// Ends the cluster and returns its folder.
    pub async fn end(mut self) -> tempfile::TempDir {
        self.stop.cancel();
        self.dev.take().expect("it runs").run().await;
        self.folder.take().expect("it runs")
    }

    /// Builds and publishes edges and entities under `name`. Returns the graph's version.
    pub async fn load(&self, name: &str, edges: &Path, entities: Option<&Path>) -> u64 {
        let topology = self.router.topology().await.expect("the router knows its topology");
        let partitions = PartitionCount::new(topology.cluster.partitions).expect("a valid count");
        let store = PathBuf::from(&topology.cluster.object_store);
        let version = StoreVersion(topology.revision + 1);
        let mut options = LoadOptions::new(name, version, partitions, store);
        options.edges = vec![edges.to_owned()];
        options.entities = entities.map(Path::to_owned).into_iter().collect();
        let report = tokio::task::spawn_blocking(move || load_graph(&options, &mut |_| {}))
            .await
            .expect("the load does not panic")
            .expect("the load succeeds");
        self.publish(name, &report).await
    }

    async fn publish(&self, name: &str, report: &LoadReport) -> u64 {
        let components: Vec<ComponentDocument> =
            report.components.iter().map(|(manifest, _)| component_document(manifest, 0)).collect();
        let json = serde_json::to_vec(&components).expect("documents are JSON");
        let request = v1::PushRequest {
            store: name.to_owned(),
            components: json.into(),
            who: "tests".to_owned(),
            graph: true,
            ..Default::default()
        };
        let mut progress = self.router.push_store(request).await.expect("publication starts");
        let mut version = 0;
        while let Some(step) = progress.message().await.expect("publication succeeds") {
            version = version.max(step.committed_version);
        }
        assert!(0 < version, "the last message names the version");
        version
    }
}

pub fn village(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata/kith-village").join(file)
}

/// Returns a built component as the metadata describes it.
pub fn component_document(manifest: &Manifest, loaded_at: u64) -> ComponentDocument {
    let graph = manifest.graph().expect("what is loaded into a graph is a graph component");
    ComponentDocument {
        name: manifest.component.clone(),
        role: kith_topology::role_name(graph.role).to_owned(),
        version: manifest.version.0,
        manifest_hash: manifest.hash(),
        columns: kith_topology::column_documents(&graph.columns),
        members: graph.counts.members,
        edges: graph.counts.edges,
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        loaded_at,
        schema: None,
        folder: None,
        url: None,
    }
}
