//! Brings components of a graph that were built elsewhere to where nodes find them.

use super::publish::OfferedComponent;
use crate::{failure::Failure, publish::metered};
use kith_build::{
    BuildSummary, FoundComponent, LoadReport, LockedStore, find_graph, open_objects, remove_folder,
    take_version,
};
use kith_engine::Manifest;
use kith_types::{ErrorCode, PartitionCount};
use kith_wire::documents::{ComponentDocument, StoreDocument};

/// Finds the newest components of a graph in the place `built`. Components in a folder of this machine are copied into the
/// object store, and every byte of them is verified. Components behind a URL stay there, and nodes pull them from it.
///
/// # Errors
/// The errors of [`find_graph`] and [`take_version`]; `version_taken` if the graph has another version of a component under
/// the same number.
pub fn take(
    store: &LockedStore,
    graph: &str,
    document: Option<&StoreDocument>,
    built: &str,
    partitions: PartitionCount,
) -> Result<(LoadReport, Vec<OfferedComponent>), Failure> {
    let found = find_graph(&open_objects(built)?, graph, partitions)?;
    let offered = found.iter().map(|component| take_one(store, document, component));
    let offered = offered.collect::<Result<Vec<_>, _>>()?;
    let components = found.into_iter().map(|component| {
        let summary = summary_of(&component.manifest);
        (component.manifest, summary)
    });
    Ok((LoadReport { components: components.collect(), files: Vec::new() }, offered))
}

fn take_one(
    store: &LockedStore,
    document: Option<&StoreDocument>,
    found: &FoundComponent,
) -> Result<OfferedComponent, Failure> {
    let FoundComponent { objects, manifest } = found;
    let (name, version) = (&manifest.component, manifest.version.0);
    if let Some(known) = known(document, name, version) {
        if known.manifest_hash == manifest.hash() {
            return Ok(OfferedComponent { folder: known.folder.clone(), url: known.url.clone() });
        }
        let message =
            format!("the graph has another version of {name:?} that was built under the number {version}");
        return Err(Failure::new(ErrorCode::VersionTaken, message, "build it again under another number"));
    }
    let Some(folder) = objects.folder() else {
        return Ok(OfferedComponent { folder: None, url: Some(objects.location().to_string()) });
    };
    store.mark_unfinished(version)?;
    remove_folder(&store.component(name).join(version.to_string()))?;
    metered(|progress| take_version(folder, manifest, name, store, progress))?;
    Ok(OfferedComponent { folder: store.folder_of(version), url: None })
}

/// Returns what the graph's record says about this version of a component.
fn known<'a>(document: Option<&'a StoreDocument>, name: &str, version: u64) -> Option<&'a ComponentDocument> {
    let mut components = document?.versions.iter().flat_map(|version| &version.components);
    components.find(|component| component.name == name && component.version == version)
}

/// Returns the counts of a build from its manifest.
fn summary_of(manifest: &Manifest) -> BuildSummary {
    let counts = manifest.graph().map(|graph| graph.counts).unwrap_or_default();
    BuildSummary {
        members: counts.members,
        edges: counts.edges,
        entities: counts.entities,
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        ..BuildSummary::default()
    }
}
