//! Makes a damaged or foreign component on this node's disk whole again, out of any [`Source`].
//!
//! Nothing of what is there is trusted or thrown away unseen: single files are pulled anew and swapped in; a folder that
//! cannot be the version at all is put aside, and what of it proves to be of the version is used again.

use super::PrepareError;
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

/// Told how far a fetch is.
type OnFetch<'a> = dyn FnMut(&FetchProgress) -> ControlFlow<()> + 'a;

/// Pulls what is missing of the version that `options` name by its hash. What is in its place and cannot be it gives way.
///
/// # Errors
/// [`FetchError`]; what can be served was not touched then.
pub(super) fn fetch_anew(
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

/// Takes what is missing from one source, with so many requests at a time.
pub(super) type Take<'a> = dyn FnMut(&dyn Source, usize) -> Result<(), FetchError> + 'a;

/// Has [`Take`] try one source after another.
pub(super) type FromAny<'a> = dyn FnMut(&mut Take<'_>) -> Result<(), PrepareError> + 'a;

/// Makes a component whole. `damages` are what a deep verification found; without it, one is made.
///
/// # Errors
/// [`PrepareError`] if what is damaged here cannot be had anywhere; files that could be had are repaired then.
pub(super) fn heal(
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
            // One that cannot be had keeps no other from being repaired.
            let each = files.iter().map(|file| {
                from_any(&mut |source, _| repair(target, source, std::slice::from_ref(file), on_fetch))
            });
            each.fold(Ok(()), Result::and)
        }
        // A manifest, a layout, a pack of another length, or files that belong to nothing.
        _ => from_any(&mut |source, threads| {
            let manifest_hash = Some(component.manifest_hash.clone());
            let options = FetchOptions { threads, manifest_hash, ..FetchOptions::default() };
            replace(target, source, partitions, options, on_fetch)
        }),
    }
}

/// Puts the folder aside and fetches the component anew, from what is whole in there and from the source.
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
            // It may be damaged in a part that nobody asks for: better than nothing, and still never trusted.
            if !target.exists() && aside.exists() {
                fs::rename(&aside, target).map_err(at(target))?;
            }
            Err(error)
        }
    }
}

/// Where a folder that cannot be its version is put while the version is fetched.
pub(super) fn aside_of(target: &Path) -> PathBuf {
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    target.with_file_name(format!(".{name}.aside"))
}

/// Whether a folder has files but no manifest: what they are, nobody can say.
fn holds_packs_only(target: &Path) -> bool {
    !target.join(kith_engine::MANIFEST_NAME).exists()
        && fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some())
}
