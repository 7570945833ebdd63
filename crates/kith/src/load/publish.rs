//! Makes built components part of the graph, and follows the nodes while they fetch them.

use super::meter::Meter;
use crate::{failure::Failure, who::who};
use kith_client::{QueryError, RouterClient, topology::role_name};
use kith_engine::{
    Manifest,
    load::{BuildSummary, LoadReport},
};
use kith_wire::documents::ComponentDocument;
use std::time::SystemTime;

/// A publication that did not end well.
pub struct Unpublished {
    /// Why.
    pub error: anyhow::Error,
    /// Whether the router itself said so. If not, the new version may still come to serve.
    pub is_certain: bool,
}

impl Unpublished {
    fn perhaps(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), is_certain: false }
    }
}

/// Publishes all components of a load at once; the graph's new version.
///
/// # Errors
/// If the graph cannot be published: the old version serves on. If the router went away meanwhile, it may still
/// have been: `kith graph describe` tells.
pub async fn publish(
    router: &RouterClient,
    graph: &str,
    report: &LoadReport,
    meter: &mut Meter,
) -> Result<u64, Unpublished> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let components: Vec<_> =
        report.components.iter().map(|(manifest, summary)| document(manifest, summary, now)).collect();
    let document = serde_json::to_vec(&components).expect("documents hold only strings, numbers and lists");
    let mut steps = router.publish(graph, document, &who()).await.map_err(Unpublished::perhaps)?;
    loop {
        match steps.message().await {
            Ok(Some(step)) if step.committed_version != 0 => return Ok(step.committed_version),
            Ok(Some(step)) => meter.on_publish(&step),
            Ok(None) => {
                return Err(Unpublished::perhaps(Failure::new(
                    "publication_lost",
                    "the router went away before it said whether the new version serves",
                    "`kith graph describe` shows the version that serves; load again if it is the old one",
                )));
            }
            Err(status) => {
                let error = QueryError::from_status(&status);
                let is_certain = is_verdict(&error);
                return Err(Unpublished { error: error.into(), is_certain });
            }
        }
    }
}

/// Whether an error is the router's own word that nothing was or will be committed: all of those say what to do. A
/// lost connection is not, for the router goes on without its client; nor is a metadata store that failed, for it may
/// have taken the commit.
fn is_verdict(error: &QueryError) -> bool {
    matches!(error, QueryError::Remote { code, help, .. } if code != "metadata_unavailable" && !help.is_empty())
}

fn document(manifest: &Manifest, summary: &BuildSummary, loaded_at: u64) -> ComponentDocument {
    let graph = manifest.graph().expect("a load builds graph components");
    ComponentDocument {
        name: manifest.component.clone(),
        role: role_name(graph.role).to_owned(),
        version: manifest.version.0,
        manifest_hash: manifest.hash(),
        columns: graph.columns.clone(),
        members: summary.members,
        edges: summary.edges,
        bytes: summary.bytes,
        loaded_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_routers_own_word_is_a_verdict() {
        let remote = |code: &str, help: &str| QueryError::Remote {
            code: code.to_owned(),
            message: "it failed".to_owned(),
            help: help.to_owned(),
        };
        assert!(is_verdict(&remote("node_unreachable", "start the node")));
        assert!(!is_verdict(&remote("metadata_unavailable", "wait")));
        assert!(!is_verdict(&remote("unavailable", "")), "the connection broke");
        assert!(!is_verdict(&remote("internal", "")), "the transport failed");
    }
}
