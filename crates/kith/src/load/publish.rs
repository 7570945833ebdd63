//! Makes built components part of the graph.

use crate::{
    publish::{Meter, Publication, Unpublished, follow},
    who::who,
};
use kith_build::{BuildSummary, LoadReport, LockedStore};
use kith_client::{
    RouterClient,
    topology::{column_documents, role_name},
};
use kith_engine::Manifest;
use kith_wire::{documents::ComponentDocument, v1};
use std::time::SystemTime;

/// What is loaded, for whoever is asked to serve it.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    pub graph: &'a str,
    /// Names the load.
    pub push: &'a str,
    /// How long nodes that are down are waited for; `None`: as long as the cluster does.
    pub node_wait_ms: Option<u64>,
}

/// Publishes all components of a load at once; the graph's new version.
///
/// # Errors
/// If the graph cannot be published: the old version serves on. If the router went away meanwhile, it may still
/// have been: `kith graph describe` tells.
pub async fn publish(
    router: &RouterClient,
    load: Load<'_>,
    store: &LockedStore,
    report: &LoadReport,
    meter: &mut Meter,
) -> Result<u64, Unpublished> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let components: Vec<_> =
        report.components.iter().map(|(manifest, summary)| document(store, manifest, summary, now)).collect();
    let document = serde_json::to_vec(&components).expect("documents hold only strings, numbers and lists");
    // Nothing has been asked of the cluster yet.
    let unasked = |error| Unpublished { error, is_certain: true };
    let Load { graph, push, node_wait_ms } = load;
    let mut publication = Publication::new(router, graph, push).map_err(unasked)?;
    let request = v1::PublishRequest {
        graph: graph.to_owned(),
        components: document.into(),
        who: who(),
        push: push.to_owned(),
        node_wait_ms,
    };
    let mut steps = router.publish(request).await.map_err(|error| publication.unheard(error))?;
    Ok(follow(&mut steps, &mut publication, meter).await?.version)
}

fn document(
    store: &LockedStore,
    manifest: &Manifest,
    summary: &BuildSummary,
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
        folder: store.folder_of(manifest.version.0),
        url: None,
    }
}
