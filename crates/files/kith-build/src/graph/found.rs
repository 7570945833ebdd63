//! Finds the components of graphs that were built elsewhere.

use crate::{
    Failure,
    place::{manifest_at, refused, versions_at},
};
use kith_engine::{MANIFEST_NAME, Manifest};
use kith_files::objects::Objects;
use kith_types::{ErrorCode, PartitionCount};

/// A component of a graph, with the place of its files.
#[derive(Debug)]
pub struct FoundComponent {
    /// The folder of its version: `<place>/<graph>/<component>/<version>`.
    pub objects: Objects,
    /// Its manifest.
    pub manifest: Manifest,
}

/// Finds the newest components of a graph in `objects`, which has the layout that builds write
/// (`<graph>/<component>/<version>`). All components of one build have the same version; components that only older builds
/// wrote are left out. Cost: one listing for each component, and the manifests.
///
/// # Errors
/// `nothing_to_load` if the place has no version of the graph; `other_store` if its files belong to another graph or
/// another number of partitions; `version_damaged`; or the errors of the place.
pub fn find_graph(
    objects: &Objects,
    graph: &str,
    partitions: PartitionCount,
) -> Result<Vec<FoundComponent>, Failure> {
    let folder = objects.join(graph);
    let names = folder.children().map_err(|error| refused(&error))?;
    let mut versions: Vec<(u64, Objects)> = Vec::new();
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        let component = folder.join(name);
        for version in versions_at(&component)? {
            versions.push((version, component.join(&version.to_string())));
        }
    }
    let newest = versions.iter().map(|(version, _)| *version).max();
    let mut found = Vec::new();
    for (_, index) in versions.into_iter().filter(|(version, _)| Some(*version) == newest) {
        // Builds and uploads write the manifest last.
        if index.size(MANIFEST_NAME).map_err(|error| refused(&error))?.is_some() {
            let manifest = manifest_at(&index)?;
            check(&index, &manifest, graph, partitions)?;
            found.push(FoundComponent { objects: index, manifest });
        }
    }
    if found.is_empty() {
        let message = format!("{} has no built version of graph {graph:?}", objects.location());
        let help = "name the folder or URL that the graph was built into: it has a folder of the graph's name, with one folder for \
                    each component";
        return Err(Failure::new(ErrorCode::NothingToLoad, message, help));
    }
    Ok(found)
}

fn check(
    objects: &Objects,
    manifest: &Manifest,
    graph: &str,
    partitions: PartitionCount,
) -> Result<(), Failure> {
    let other = |what: String| {
        let message = format!("{} holds {what}", objects.location());
        Err(Failure::new(ErrorCode::OtherStore, message, "build the graph again for this cluster"))
    };
    if manifest.graph().is_none_or(|content| content.graph != graph) {
        return other(format!("a version of {:?}, not of graph {graph:?}", manifest.store()));
    }
    if manifest.partition_count != partitions {
        let got = manifest.partition_count.get();
        return other(format!("{got} partitions, the cluster has {}", partitions.get()));
    }
    Ok(())
}
