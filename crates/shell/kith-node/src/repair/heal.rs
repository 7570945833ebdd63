//! Repairs a damaged component, or replaces a foreign one, on this node's disk from any [`Source`].
//!
//! Existing files are neither trusted nor discarded unchecked. Single damaged files are fetched and swapped in. A folder
//! that cannot be the version is set aside, and those of its files that prove to belong to the version are reused.

use crate::versions::PrepareError;
use kith_engine::{
    Damage, FetchError, FetchOptions, FetchProgress, FileId, OpenError, Source, VersionFolder, fetch, repair,
    verify_component,
};
use kith_types::PartitionId;
use kith_wire::documents::ComponentDocument;
use std::{
    fs, io,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

/// A callback for the progress of a fetch.
type OnFetch<'a> = dyn FnMut(&FetchProgress) -> ControlFlow<()> + 'a;

/// Fetches what is missing of the version that `options` identify by its manifest hash. A folder in its place that cannot be
/// this version is replaced.
///
/// # Errors
/// [`FetchError`]. Files that can be served are unchanged then.
pub(crate) fn fetch_anew(
    target: &Path,
    source: &dyn Source,
    partitions: &[PartitionId],
    options: FetchOptions,
    progress: &mut OnFetch<'_>,
) -> Result<(), FetchError> {
    let manifest_hash = options.manifest_hash.as_deref().unwrap_or_default();
    let is_foreign = match VersionFolder::open_version(target, manifest_hash) {
        Ok(_) | Err(OpenError::NoComponent { .. } | OpenError::Io { .. }) => holds_packs_only(target),
        Err(_) => true,
    };
    if is_foreign {
        return replace(target, source, partitions, options, progress);
    }
    fetch(source, target, partitions, &options, progress).map(|_| ())
}

/// Fetches what is missing from one source, with this many concurrent requests.
pub(crate) type Take<'a> = dyn FnMut(&dyn Source, usize) -> Result<(), FetchError> + 'a;

/// Runs [`Take`] with one source after another.
pub(crate) type FromAny<'a> = dyn FnMut(&mut Take<'_>) -> Result<(), PrepareError> + 'a;

/// Repairs a component. `damages` are the findings of a deep verification; if it is `None`, the component is verified first.
///
/// # Errors
/// [`PrepareError`] if no source has the damaged files. Those that could be fetched are repaired then.
pub(crate) fn heal(
    target: &Path,
    component: &ComponentDocument,
    partitions: &[PartitionId],
    damages: Option<&[Damage]>,
    from_any: &mut FromAny<'_>,
) -> Result<(), PrepareError> {
    let on_fetch: &mut OnFetch<'_> = &mut |_| ControlFlow::Continue(());
    let found = match damages {
        Some(damages) => damages.to_vec(),
        None => match verify_component(target, Some(partitions)) {
            Ok(report) => report.damages,
            Err(source) if source.lacks_resources() => {
                let (component, version) = (component.name.clone(), component.version);
                return Err(PrepareError::Open { component, version, source });
            }
            Err(_) => Vec::new(),
        },
    };
    let files: Option<Vec<FileId>> = found.iter().map(|damage| FileId::parse(&damage.file)).collect();
    match files {
        Some(files) if !files.is_empty() => {
            let all = from_any(&mut |source, _| repair(target, source, &files, on_fetch));
            if all.is_ok() || files.len() == 1 {
                return all;
            }
            // A file that no source has must not keep the others from being repaired.
            let each = files.iter().map(|file| {
                from_any(&mut |source, _| repair(target, source, std::slice::from_ref(file), on_fetch))
            });
            each.fold(Ok(()), Result::and)
        }
        // A damaged manifest or layout, a pack of another length, or unknown files.
        _ => from_any(&mut |source, threads| {
            let manifest_hash = Some(component.manifest_hash.clone());
            let options = FetchOptions { threads, manifest_hash, ..FetchOptions::default() };
            replace(target, source, partitions, options, on_fetch)
        }),
    }
}

/// Sets the folder aside and fetches the component again, reusing intact files of the folder.
fn replace(
    target: &Path,
    source: &dyn Source,
    partitions: &[PartitionId],
    options: FetchOptions,
    progress: &mut OnFetch<'_>,
) -> Result<(), FetchError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| FetchError::Io { path, source }
    };
    let aside = aside_of(target);
    if target.exists() {
        if aside.exists() {
            fs::remove_dir_all(&aside).map_err(at(&aside))?;
        }
        fs::rename(target, &aside).map_err(at(target))?;
    }
    let options = FetchOptions { held: vec![aside.clone()], ..options };
    let fetched = fetch(source, target, partitions, &options, progress);
    match fetched {
        Ok(_) => {
            if aside.exists() {
                fs::remove_dir_all(&aside).map_err(at(&aside))?;
            }
            Ok(())
        }
        Err(error) => {
            // Put the folder back. It may be damaged only in parts that no query reads, and it is never trusted unchecked.
            if !target.exists() && aside.exists() {
                fs::rename(&aside, target).map_err(at(target))?;
            }
            Err(error)
        }
    }
}

/// Returns where a folder that cannot be its version is put while the version is fetched.
pub(crate) fn aside_of(target: &Path) -> PathBuf {
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    target.with_file_name(format!(".{name}.aside"))
}

/// Whether a folder has files but no manifest, so that it is unknown what they are.
fn holds_packs_only(target: &Path) -> bool {
    !target.join(kith_engine::MANIFEST_NAME).exists()
        && fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some())
}
