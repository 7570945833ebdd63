//! Makes built components part of the graph, and follows the nodes while they fetch them.

use super::meter::Meter;
use crate::failure::Failure;
use kith_client::{QueryError, RouterClient, topology::role_name};
use kith_engine::{
    Manifest,
    load::{BuildSummary, LoadReport},
};
use kith_wire::documents::ComponentDocument;
use std::time::SystemTime;

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
) -> anyhow::Result<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let components: Vec<_> =
        report.components.iter().map(|(manifest, summary)| document(manifest, summary, now)).collect();
    let document = serde_json::to_vec(&components).expect("documents hold only strings, numbers and lists");
    let mut steps = router.publish(graph, document).await?;
    loop {
        match steps.message().await.map_err(|status| QueryError::from_status(&status))? {
            Some(step) if step.committed_version != 0 => return Ok(step.committed_version),
            Some(step) => meter.on_publish(&step),
            None => {
                return Err(Failure::new(
                    "publication_lost",
                    "the router went away before it said whether the new version serves",
                    "`kith graph describe` shows the version that serves; load again if it is the old one",
                )
                .into());
            }
        }
    }
}

fn document(manifest: &Manifest, summary: &BuildSummary, loaded_at: u64) -> ComponentDocument {
    ComponentDocument {
        name: manifest.component.clone(),
        role: role_name(manifest.role).to_owned(),
        version: manifest.version.0,
        manifest_hash: manifest.hash(),
        columns: manifest.columns.clone(),
        members: summary.members,
        edges: summary.edges,
        bytes: summary.bytes,
        loaded_at,
    }
}
