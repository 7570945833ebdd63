//! Graphs: edges, entities and members in, a folder of files for each component out.

mod builder;
mod found;
mod load;
mod options;

pub use builder::{ComponentRows, GraphBuilder};
pub use found::{FoundComponent, find_graph};
pub use load::{FileRole, LoadOptions, LoadProgress, LoadReport, LoadedFile, MEMBERS_COMPONENT};
pub(crate) use load::{LoadError, next_version};
pub use options::{ColumnValue, GraphOptions};

use crate::{
    Failure, OnProgress, Progress,
    place::{now, publish_version, refused, versions_at},
};
use kith_engine::Manifest;
use kith_load::version_dir;
use kith_objects::Objects;
use kith_types::StoreVersion;
use std::path::Path;

/// Builds the components of a graph from files: CSV or TSV text, JSON lines, Parquet or Arrow, plain, gzip or Zstandard.
/// They end up in `<out_dir>/<graph>/<component>/<version>`. With `dry_run`, everything is read and checked and nothing is written.
/// Cost: each file is read once, from start to end; edges are sorted within the memory of the options.
///
/// # Errors
/// `bad_lines` with the first wrong lines, `bad_input`, `no_edges` (`no_entities`, `no_members`) if nothing good is left, `build_failed`,
/// `load_running`. No component of this load is left then.
pub fn load_graph(options: &LoadOptions, told: &mut OnProgress<'_>) -> Result<LoadReport, Failure> {
    Ok(load::load_graph(options, &mut |progress| told(Progress::Graph(progress)))?)
}

/// Uploads the components that were built in `built`, the folder of all graphs, to the same names below `to`, a bucket:
/// `<graph>/<component>/<version>`. In a folder there is nothing to do, for builds write there themselves.
///
/// # Errors
/// As [`publish_version`]: components before the one that failed are there then, each whole.
pub fn publish_graph<'m>(
    graph: &str,
    components: impl IntoIterator<Item = &'m Manifest>,
    built: &Path,
    to: &Objects,
    told: &mut OnProgress<'_>,
) -> Result<(), Failure> {
    components.into_iter().try_for_each(|manifest| {
        let component = &manifest.component;
        let folder = version_dir(&built.join(graph).join(component), manifest.version);
        let to = to.join(&format!("{graph}/{component}/{}", manifest.version.0));
        publish_version(None, &folder, &to, told)
    })
}

/// The number of a graph's next version in a place: the time in milliseconds since 1970, but above all versions of its components there.
///
/// # Errors
/// What the place says.
pub fn next_graph_version(out: &Objects, graph: &str) -> Result<StoreVersion, Failure> {
    let place = out.join(graph);
    let components = place.children().map_err(|error| refused(&error))?;
    let components = components.iter().filter(|name| !name.starts_with('.'));
    let newest = components.map(|name| versions_at(&place.join(name)));
    let newest = newest.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().max().unwrap_or_default();
    Ok(StoreVersion(now().max(newest.saturating_add(1))))
}
