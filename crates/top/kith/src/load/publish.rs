//! Makes built components part of the graph.

use crate::{
    publish::{PublishFailure, hand_over},
    who::who,
};
use kith_build::{BuildSummary, LoadReport};
use kith_client::RouterClient;
use kith_engine::Manifest;
use kith_topology::{column_documents, role_name};
use kith_types::clock::millis_since_1970;
use kith_wire::{documents::ComponentDocument, v1};

/// The parameters of a load that are sent to the router.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    pub graph: &'a str,
    /// The unique name of the load.
    pub push: &'a str,
    /// The time to wait for nodes that are down; `None` for the cluster's default.
    pub node_wait_ms: Option<u64>,
}

/// The places where nodes find a component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedComponent {
    /// Its folder in the cluster's object store; `None` if the folder is named by the version number.
    pub folder: Option<String>,
    /// The URL of the component; `None` if it lies in the cluster's object store.
    pub url: Option<String>,
}

/// Publishes all components of a load at once, each from its place in `offered`. Returns the graph's new version.
///
/// # Errors
/// If the graph cannot be published: the old version keeps serving. If the router failed meanwhile, the graph may still have
/// been published; `kith graph describe` shows whether it was.
pub async fn publish(
    router: &RouterClient,
    load: Load<'_>,
    report: &LoadReport,
    offered: Vec<OfferedComponent>,
) -> Result<u64, PublishFailure> {
    let now = millis_since_1970() / 1_000;
    let components = report.components.iter().zip(offered);
    let components: Vec<_> =
        components.map(|((manifest, summary), offered)| document(manifest, summary, offered, now)).collect();
    let document = serde_json::to_vec(&components).expect("documents hold only strings, numbers and lists");
    let request = v1::PushRequest {
        store: load.graph.to_owned(),
        push: load.push.to_owned(),
        who: who(),
        components: document.into(),
        node_wait_ms: load.node_wait_ms,
        graph: true,
        ..Default::default()
    };
    Ok(hand_over(router, request, None).await?.version)
}

fn document(
    manifest: &Manifest,
    summary: &BuildSummary,
    offered: OfferedComponent,
    loaded_at: u64,
) -> ComponentDocument {
    let graph = manifest.graph().expect("a load builds graph components");
    ComponentDocument {
        name: manifest.component.clone(),
        role: role_name(graph.role).to_owned(),
        version: manifest.version.0,
        manifest_hash: manifest.hash(),
        columns: column_documents(&graph.columns),
        members: summary.members,
        edges: summary.edges,
        bytes: summary.bytes,
        loaded_at,
        schema: None,
        folder: offered.folder,
        url: offered.url,
    }
}
