//! Takes a version that was built elsewhere. A version in a folder is copied into the object store and verified byte by
//! byte. A version at a URL is not copied: nodes pull it from there.

use crate::{
    LockedStore, OnProgress, Progress,
    failure::{Failure, chain},
    place::{open_objects, refused, versions_at},
    remove_folder,
    store::object,
    unusable,
};
use kith_engine::{MANIFEST_NAME, Manifest, VerifyDepth, verify_version};
use kith_files::objects::{Location, Objects};
use kith_types::ErrorCode;
use std::{
    fs::{self, File},
    io,
    path::Path,
};

/// The folder to which a version is copied before it gets its name. Builds write there too.
const STAGING_FOLDER: &str = ".staging";

/// Finds the built version that `inputs` name: a version itself, or the newest in a place. `None` means that they name
/// rows.
///
/// # Errors
/// If a place cannot be read.
pub fn find_version(inputs: &[String]) -> Result<Option<Objects>, Failure> {
    let [input] = inputs else { return Ok(None) };
    if input.contains(['*', '?', '[']) || (!Location::is_url(input) && !Path::new(input).is_dir()) {
        return Ok(None);
    }
    let objects = open_objects(input)?;
    if object(&objects)?.is_some() {
        return Ok(None);
    }
    let is_version = |objects: &Objects| match objects.size(MANIFEST_NAME) {
        Ok(bytes) => Ok(bytes.is_some()),
        Err(error) => Err(refused(&error)),
    };
    if is_version(&objects)? {
        return Ok(Some(objects));
    }
    let mut versions = versions_at(&objects)?;
    versions.sort_unstable();
    for version in versions.iter().rev() {
        let version = objects.join(&version.to_string());
        if is_version(&version)? {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

/// Copies the version in `folder` into the object store as `<component>/<its version>`, completely or not at all.
///
/// # Errors
/// `version_damaged` if the copied files do not match the manifest; an error if files cannot be read or written.
pub fn take_version(
    folder: &Path,
    manifest: &Manifest,
    component: &str,
    locked: &LockedStore,
    on_progress: &mut OnProgress<'_>,
) -> Result<(), Failure> {
    if locked.is_bucket() {
        prove(folder, folder, manifest)?;
        return locked.upload(None, component, manifest.version.0, folder, on_progress);
    }
    let versions = locked.component(component);
    let staging = versions.join(STAGING_FOLDER);
    remove_folder(&staging)?;
    let copied = copy_to(folder, manifest, &staging, on_progress).and_then(|()| {
        let target = versions.join(manifest.version.0.to_string());
        let renamed = fs::rename(&staging, &target).and_then(|()| File::open(versions)?.sync_all());
        renamed.map_err(unusable(&target))
    });
    if copied.is_err() {
        // The error that ended the copy is the one to report.
        let _ = remove_folder(&staging);
    }
    copied
}

fn copy_to(
    folder: &Path,
    manifest: &Manifest,
    staging: &Path,
    on_progress: &mut OnProgress<'_>,
) -> Result<(), Failure> {
    fs::create_dir_all(staging).map_err(unusable(staging))?;
    let total = manifest.packs().iter().map(|pack| pack.bytes).sum();
    let mut done = 0;
    let names = names(folder)?;
    for name in &names {
        let (from, to) = (folder.join(name), staging.join(name));
        done += fs::copy(&from, &to).map_err(unusable(&to))?;
        File::open(&to).and_then(|file| file.sync_all()).map_err(unusable(&to))?;
        on_progress(Progress::Bytes { stage: "copying", done, total });
    }
    File::open(staging).and_then(|file| file.sync_all()).map_err(unusable(staging))?;
    prove(staging, folder, manifest)
}

/// Verifies the files in `staging` against the manifest of `folder`.
fn prove(staging: &Path, folder: &Path, manifest: &Manifest) -> Result<(), Failure> {
    let report = verify_version(staging, None, VerifyDepth::Deep);
    let report = report.map_err(|error| damaged(folder, &chain(&error)))?;
    // The copy is verified, and thus also that the folder was not changed meanwhile.
    if Manifest::read(staging).ok().as_ref() != Some(manifest) {
        return Err(damaged(folder, "it changed while it was copied"));
    }
    match report.damages.first() {
        None => Ok(()),
        Some(first) => {
            let more = report.damages.len() - 1;
            let more = if more == 0 { String::new() } else { format!("; {more} more") };
            Err(damaged(folder, &format!("{first}{more}")))
        }
    }
}

fn names(folder: &Path) -> Result<Vec<std::ffi::OsString>, Failure> {
    let entries = fs::read_dir(folder).and_then(|entries| {
        let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
        names.collect::<io::Result<Vec<_>>>()
    });
    entries.map_err(|error| damaged(folder, &format!("it cannot be read: {error}")))
}

fn damaged(folder: &Path, what: &str) -> Failure {
    let message = format!("{} is no whole version: {what}", folder.display());
    Failure::new(ErrorCode::VersionDamaged, message, "nothing was pushed; build it again")
}
