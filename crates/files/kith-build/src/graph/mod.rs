//! Builds graphs: reads edges, entities and members, and writes a folder of files for each component.

mod builder;
mod found;
mod load;
mod options;

pub use builder::{ComponentRows, GraphBuilder};
pub use found::{FoundComponent, find_graph};
pub use load::{FileRole, LoadOptions, LoadReport, LoadedFile, MEMBERS_COMPONENT};
pub(crate) use load::{LoadError, next_version};
pub use options::{ColumnValue, GraphOptions};

use crate::{
    Failure, OnProgress, Progress,
    place::{publish_version, refused, versions_at},
};
use kith_engine::Manifest;
use kith_files::objects::Objects;
use kith_files::version_dir;
use kith_types::StoreVersion;
use kith_types::clock::millis_since_1970;
use std::path::Path;

/// Builds the components of a graph from files: CSV or TSV text, JSON lines, Parquet or Arrow, plain, gzip or Zstandard.
/// They are written to `<out_dir>/<graph>/<component>/<version>`. With `dry_run`, everything is read and checked, but
/// nothing is written. Cost: each file is read once from start to end; edges are sorted within the memory of the options.
///
/// # Errors
/// `bad_lines` with the first wrong lines; `bad_input`; `no_edges` (`no_entities`, `no_members`) if there is no good line;
/// `build_failed`; `load_running`. No component of this load remains then.
pub fn load_graph(options: &LoadOptions, on_progress: &mut OnProgress<'_>) -> Result<LoadReport, Failure> {
    Ok(load::load_graph(options, &mut |progress| on_progress(Progress::Graph(progress)))?)
}

/// Uploads the components that were built in `built`, the folder of all graphs, to the same names below `to`, a bucket:
/// `<graph>/<component>/<version>`. Does nothing if `to` is a folder, because builds write there themselves.
///
/// # Errors
/// Those of [`publish_version`]. Components before the failed one are then complete in the bucket.
pub fn publish_graph<'m>(
    graph: &str,
    components: impl IntoIterator<Item = &'m Manifest>,
    built: &Path,
    to: &Objects,
    on_progress: &mut OnProgress<'_>,
) -> Result<(), Failure> {
    components.into_iter().try_for_each(|manifest| {
        let component = &manifest.component;
        let folder = version_dir(&built.join(graph).join(component), manifest.version);
        let to = to.join(&format!("{graph}/{component}/{}", manifest.version.0));
        publish_version(None, &folder, &to, on_progress)
    })
}

/// The number of a graph's next version in a place: the time in milliseconds since 1970, but above all versions of its
/// components there.
///
/// # Errors
/// The errors of the place.
pub fn next_graph_version(out: &Objects, graph: &str) -> Result<StoreVersion, Failure> {
    let objects = out.join(graph);
    let components = objects.children().map_err(|error| refused(&error))?;
    let components = components.iter().filter(|name| !name.starts_with('.'));
    let newest = components.map(|name| versions_at(&objects.join(name)));
    let newest = newest.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().max().unwrap_or_default();
    Ok(StoreVersion(millis_since_1970().max(newest.saturating_add(1))))
}
