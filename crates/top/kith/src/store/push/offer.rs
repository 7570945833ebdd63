//! The version that a push offers to the cluster: rows that are built into the object store, or a version that was built
//! elsewhere.

use super::PushFlags;
use crate::{
    failure::{Failure, report_failure},
    publish::metered,
    store::build::ChangesReply,
};
use kith_build::rows::RowErrors;
use kith_build::{
    Base, LockedStore, Objects, Rows, Shape, Target, VALUES_COMPONENT, find_version, manifest_at,
    remove_folder, take_version,
};
use kith_engine::Manifest;
use kith_types::{ErrorCode, StoreVersion};
use kith_wire::documents::StoreDocument;
use std::path::PathBuf;

/// A version that is ready to be served.
pub struct Offer {
    pub manifest: Manifest,
    /// The version number in the store.
    pub version: u64,
    pub records: u64,
    pub duplicates: u64,
    pub errors: RowErrors,
    pub schema_changes: Vec<String>,
    /// Whether its records may lack fields of the served ones.
    pub may_lack: bool,
    /// A time that is probably in another unit than milliseconds.
    pub warning: Option<String>,
    pub changes: Option<ChangesReply>,
    /// Its folder in the cluster's object store; `None` if the folder is named by the version number.
    pub folder: Option<String>,
    /// The URL from which nodes fetch it; `None` if it lies in the cluster's object store.
    pub url: Option<String>,
}

/// Builds or takes a version. On failure, removes what it had begun to write.
///
/// # Errors
/// If the rows or the version are refused, or the object store cannot be written.
pub fn offer(
    locked: &LockedStore,
    document: &StoreDocument,
    shape: &Shape,
    flags: &PushFlags,
) -> Result<Offer, Failure> {
    let offer = tokio::task::block_in_place(|| match find_version(&flags.inputs)? {
        Some(index) if !flags.delta => take(locked, document, shape, flags, &index),
        _ => build(locked, document, shape, flags),
    });
    if offer.is_err() {
        locked.clear_unfinished(Some(document))?;
    }
    offer
}

/// Builds rows into the object store.
fn build(
    locked: &LockedStore,
    document: &StoreDocument,
    shape: &Shape,
    flags: &PushFlags,
) -> Result<Offer, Failure> {
    let rows = Rows::open(&flags.inputs, &flags.rows.settings(), shape, flags.force)?;
    let version = match flags.version {
        Some(version) => newer(version, document)?,
        None => locked.next_version(Some(document))?,
    };
    locked.mark_unfinished(version)?;
    let out_dir = locked.component(VALUES_COMPONENT);
    let target = Target { store: &flags.store, version: StoreVersion(version), out_dir };
    let current = flags.delta.then(|| current_folder(locked, document)).transpose()?;
    let base = current.as_ref().and_then(|(_, index)| index.as_ref());
    let built = metered(|progress| match &current {
        Some((folder, _)) => {
            let base = Base { folder, objects: base, delete: flags.delete.delete.as_deref() };
            rows.build_on(base, &target, progress)
        }
        None => rows.build(&target, progress),
    });
    let built = built.map_err(report_failure)?;
    let schema_changes = rows.changes(&built.report);
    let folder = target.out_dir.join(version.to_string());
    metered(|progress| locked.upload(base, VALUES_COMPONENT, version, &folder, progress))?;
    Ok(Offer {
        folder: locked.folder_of(version),
        url: None,
        version,
        records: built.records(),
        duplicates: built.duplicates,
        changes: built.changes.map(ChangesReply::from),
        manifest: built.manifest,
        errors: built.report.errors,
        schema_changes,
        // Each row was checked against the schema, which its user states if it lacks a field.
        may_lack: true,
        warning: rows.warning(),
    })
}

/// Returns the folder of the served version, as it was built, and its place in a bucket if it came from one.
fn current_folder(
    locked: &LockedStore,
    document: &StoreDocument,
) -> Result<(PathBuf, Option<Objects>), Failure> {
    let components = document.current().map(|current| current.components.as_slice()).unwrap_or_default();
    let values = components.iter().find(|component| component.name == VALUES_COMPONENT);
    let Some(values) = values else {
        let message = format!("store {:?} serves no version yet: there is nothing to change", document.name);
        return Err(Failure::new(ErrorCode::NoVersion, message, "push all rows first, without --delta"));
    };
    Ok(metered(|progress| locked.built(values, progress))?)
}

/// Takes a version that was built elsewhere.
fn take(
    locked: &LockedStore,
    document: &StoreDocument,
    shape: &Shape,
    flags: &PushFlags,
    objects: &Objects,
) -> Result<Offer, Failure> {
    if flags.rows.describe_rows() {
        let message =
            format!("{} is a built version: flags about rows have no effect on it", objects.location());
        return Err(Failure::usage(message, "leave them out, or give files of rows"));
    }
    let manifest = manifest_at(objects)?;
    let schema_changes =
        shape.check(&flags.store, &manifest, flags.force, flags.rows.fill_missing).map_err(report_failure)?;
    let number = manifest.version.0;
    let version = match flags.version {
        Some(version) => newer(version, document)?,
        None if document.version_last < number => number,
        None => locked.next_version(Some(document))?,
    };
    let (folder, url) = found_at(locked, document, &manifest, objects)?;
    let records = manifest.values().map_or(0, |values| values.counts.records);
    let (duplicates, errors) = (0, RowErrors::default());
    let (warning, changes) = (None, None);
    Ok(Offer {
        manifest,
        version,
        records,
        duplicates,
        errors,
        schema_changes,
        may_lack: flags.rows.fill_missing,
        warning,
        changes,
        folder,
        url,
    })
}

/// Returns where nodes find a version that was built elsewhere: its folder in the cluster's object store, or its URL. A
/// version in a local folder is copied into the object store.
fn found_at(
    locked: &LockedStore,
    document: &StoreDocument,
    manifest: &Manifest,
    objects: &Objects,
) -> Result<(Option<String>, Option<String>), Failure> {
    let number = manifest.version.0;
    let mut components = document.versions.iter().flat_map(|version| &version.components);
    match (components.find(|component| component.version == number), objects.folder()) {
        (Some(named), _) if named.manifest_hash != manifest.hash() => {
            // The other version is served, or can become served by a rollback.
            let message = format!("the store has another version with the number {number}");
            let help = "build it again under another --version";
            Err(Failure::new(ErrorCode::VersionTaken, message, help))
        }
        (Some(named), _) => Ok((named.folder.clone(), named.url.clone())),
        (None, None) => Ok((None, Some(objects.location().to_string()))),
        (None, Some(folder)) => {
            locked.mark_unfinished(number)?;
            remove_folder(&locked.component(VALUES_COMPONENT).join(number.to_string()))?;
            metered(|progress| take_version(folder, manifest, VALUES_COMPONENT, locked, progress))?;
            Ok((locked.folder_of(number), None))
        }
    }
}

/// Checks the version number before a build that may take hours.
fn newer(version: u64, document: &StoreDocument) -> Result<u64, Failure> {
    let last = document.version_last;
    if last < version {
        return Ok(version);
    }
    let message = format!("version {version} is not higher than {last}, the last number used");
    Err(Failure::new(ErrorCode::VersionNotNewer, message, "give a higher number, or leave --version out"))
}
