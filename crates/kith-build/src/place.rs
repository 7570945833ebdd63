//! Folders and object stores as commands use them: opened, asked, and their errors told.

use super::Meter;
use crate::{failure::Failure, store::build::fault::chain};
use kith_engine::{FetchError, Manifest, VerifyDepth, verify_version};
use kith_objects::{Location, Objects, ObjectsError};
use kith_server::place::{self, PlaceError};
use kith_types::{ErrorCode, StoreVersion};
use kith_wire::documents::{ClusterDocument, ComponentDocument};
use std::path::{Path, PathBuf};

/// A place that a user named, or a document.
///
/// # Errors
/// `bad_input` if the text names none; `object_store_unreachable`.
pub fn place(location: &str) -> Result<Objects, Failure> {
    place::objects(location).map_err(|error| match error {
        PlaceError::Objects(error) => refused(&error),
        error => Failure::new(
            ErrorCode::BadInput,
            chain(&error),
            "name a folder, or s3://BUCKET/PREFIX, gs://…, az://…",
        ),
    })
}

/// Where a component of a version lies.
///
/// # Errors
/// As [`place()`].
pub fn component_place(
    cluster: &ClusterDocument,
    store: &str,
    component: &ComponentDocument,
) -> Result<Objects, Failure> {
    let location = component.url.as_ref().unwrap_or(&cluster.object_store);
    let objects = place(location)?;
    Ok(match component.url {
        Some(_) => objects,
        None => objects.join(&format!("{store}/{}/{}", component.name, component.folder())),
    })
}

/// The manifest of the version in a place.
///
/// # Errors
/// `version_damaged`, or what the place says.
pub fn manifest_at(place: &Objects) -> Result<Manifest, Failure> {
    place.manifest().map_err(|error| match error {
        FetchError::Source(error) => {
            let help = "check that it can be reached, and the endpoint and keys in the environment: docs/operating/object-stores.md";
            Failure::new(ErrorCode::ObjectStoreUnreachable, format!("{}: {}", place.location(), chain(&error)), help)
        }
        error => {
            let message = format!("{} is no whole version: {}", place.location(), chain(&error));
            Failure::new(ErrorCode::VersionDamaged, message, "build it again with `kith store build`")
        }
    })
}

/// The version in a place, in a folder of this machine: where it is, or downloaded to `folder` and proven byte by byte.
///
/// # Errors
/// `version_damaged`, or what the place says.
pub fn version_here(place: &Objects, folder: &Path) -> Result<(PathBuf, Manifest), Failure> {
    let manifest = manifest_at(place)?;
    if let Some(here) = place.folder() {
        return Ok((here.to_owned(), manifest));
    }
    let mut meter = Meter::new();
    let copied = place.download_version(&manifest, folder, &mut |done, total| {
        meter.on_bytes("downloading", done, total);
    });
    meter.clear();
    copied.map_err(|error| refused(&error))?;
    let damaged = |what: &str| {
        let message = format!("{} is no whole version: {what}", place.location());
        Failure::new(ErrorCode::VersionDamaged, message, "build it again with `kith store build`")
    };
    let report = verify_version(folder, None, VerifyDepth::Deep);
    let report = report.map_err(|error| damaged(&chain(&error)))?;
    match report.damages.first() {
        Some(damage) => Err(damaged(&damage.to_string())),
        None => Ok((folder.to_owned(), manifest)),
    }
}

/// The numbers of the folders in a place that are named by numbers.
///
/// # Errors
/// What the place says.
pub fn versions_at(place: &Objects) -> Result<Vec<u64>, Failure> {
    let children = place.children().map_err(|error| refused(&error))?;
    // What has a greater number is no version.
    let versions = children.iter().filter_map(|name| name.parse().ok());
    Ok(versions.filter(|version| *version <= StoreVersion::MAX.0).collect())
}

/// An object store that does not do what it is asked.
pub fn refused(error: &ObjectsError) -> Failure {
    let code = match error {
        ObjectsError::Taken { .. } | ObjectsError::Reserved { .. } => ErrorCode::VersionTaken,
        ObjectsError::Local { .. } => ErrorCode::ObjectStoreUnusable,
        ObjectsError::NoVersion { .. } | ObjectsError::Damaged { .. } => ErrorCode::VersionDamaged,
        _ => ErrorCode::ObjectStoreUnreachable,
    };
    Failure::new(code, chain(error), error.help())
}

/// An argument that names a place.
///
/// # Errors
/// Why it names none.
pub fn location(text: &str) -> Result<Location, String> {
    text.parse::<Location>().map_err(|error| error.why)
}
