//! Opens folders and object stores, reads versions there, and explains their errors.

use crate::{
    OnProgress, Progress,
    failure::{Failure, chain},
};
use kith_engine::{FetchError, Manifest, VerifyDepth, verify_version};
use kith_files::objects::{Access, Location, LocationError, Objects, ObjectsError};
use kith_types::clock::millis_since_1970;
use kith_types::{ErrorCode, StoreVersion};
use kith_wire::documents::{ClusterDocument, ComponentDocument};
use std::io;
use std::path::{Path, PathBuf};

/// Opens a place by its folder or URL (`s3://BUCKET/PREFIX`, `gs://…`, `az://…`, `file://…`), with the keys in the
/// environment of this process. No request is sent yet.
///
/// # Errors
/// `bad_input` if the text is not a location; `object_store_unreachable` if its settings are wrong.
pub fn open_objects(location: &str) -> Result<Objects, Failure> {
    let location = location.parse().map_err(|error: LocationError| {
        let help = "name a folder, or s3://BUCKET/PREFIX, gs://…, az://…";
        Failure::new(ErrorCode::BadInput, chain(&error), help)
    })?;
    open(&location)
}

/// Opens a location like [`open_objects`].
///
/// # Errors
/// `object_store_unreachable` if its settings are wrong.
pub(crate) fn open(location: &Location) -> Result<Objects, Failure> {
    Objects::open(location, &Access::from_environment()).map_err(|error| refused(&error))
}

/// The place of a component of a version.
///
/// # Errors
/// Those of [`open_objects`].
pub(crate) fn component_place(
    cluster: &ClusterDocument,
    store: &str,
    component: &ComponentDocument,
) -> Result<Objects, Failure> {
    let location = component.url.as_ref().unwrap_or(&cluster.object_store);
    let objects = open_objects(location)?;
    Ok(match component.url {
        Some(_) => objects,
        None => objects.join(&format!("{store}/{}/{}", component.name, component.folder())),
    })
}

/// Reads the manifest of the version in a place.
///
/// # Errors
/// `version_damaged`, or the errors of the place.
pub fn manifest_at(objects: &Objects) -> Result<Manifest, Failure> {
    objects.manifest().map_err(|error| match error {
        FetchError::Source(error) => {
            let help = "check that it can be reached, and the endpoint and keys in the environment: docs/operating/object-stores.md";
            Failure::new(ErrorCode::ObjectStoreUnreachable, format!("{}: {}", objects.location(), chain(&error)), help)
        }
        error => {
            let message = format!("{} is no whole version: {}", objects.location(), chain(&error));
            Failure::new(ErrorCode::VersionDamaged, message, "build it again")
        }
    })
}

/// Returns a folder on this machine with the version in a place: the place itself, or `folder` after the version was
/// downloaded and verified byte by byte.
///
/// # Errors
/// `version_damaged`, or the errors of the place.
pub fn version_here(
    objects: &Objects,
    folder: &Path,
    on_progress: &mut OnProgress<'_>,
) -> Result<(PathBuf, Manifest), Failure> {
    let manifest = manifest_at(objects)?;
    if let Some(here) = objects.folder() {
        return Ok((here.to_owned(), manifest));
    }
    let copied = objects.version().download(&manifest, folder, &mut |done, total| {
        on_progress(Progress::Bytes { stage: "downloading", done, total });
    });
    copied.map_err(|error| refused(&error))?;
    let damaged = |what: &str| {
        let message = format!("{} is no whole version: {what}", objects.location());
        Failure::new(ErrorCode::VersionDamaged, message, "build it again")
    };
    let report = verify_version(folder, None, VerifyDepth::Deep);
    let report = report.map_err(|error| damaged(&chain(&error)))?;
    match report.damages.first() {
        Some(damage) => Err(damaged(&damage.to_string())),
        None => Ok((folder.to_owned(), manifest)),
    }
}

/// The numbers of those folders in a place whose names are numbers.
///
/// # Errors
/// The errors of the place.
pub(crate) fn versions_at(objects: &Objects) -> Result<Vec<u64>, Failure> {
    let children = objects.children().map_err(|error| refused(&error))?;
    // A greater number is not a version.
    let versions = children.iter().filter_map(|name| name.parse().ok());
    Ok(versions.filter(|version| *version <= StoreVersion::MAX.0).collect())
}

/// The failure for an error of an object store.
pub fn refused(error: &ObjectsError) -> Failure {
    let code = match error {
        ObjectsError::Taken { .. } | ObjectsError::Reserved { .. } => ErrorCode::VersionTaken,
        ObjectsError::Local { .. } => ErrorCode::ObjectStoreUnusable,
        ObjectsError::NoVersion { .. } | ObjectsError::Damaged { .. } => ErrorCode::VersionDamaged,
        _ => ErrorCode::ObjectStoreUnreachable,
    };
    Failure::new(code, chain(error), error.help())
}

/// The folder in which versions are built before they are published: the place itself if it is a folder, or, for a bucket,
/// a temporary folder that is removed when this is dropped.
#[derive(Debug)]
pub struct Workshop {
    folder: PathBuf,
    _scratch: Option<tempfile::TempDir>,
}

impl Workshop {
    /// Creates the workshop for versions that will be published in `objects`.
    ///
    /// # Errors
    /// `object_store_unusable` if a temporary folder cannot be created.
    pub fn of(objects: &Objects) -> Result<Self, Failure> {
        if let Some(folder) = objects.folder() {
            return Ok(Self { folder: folder.to_owned(), _scratch: None });
        }
        let scratch = tempfile::Builder::new().prefix("kith-build-").tempdir();
        let scratch = scratch.map_err(unusable(&std::env::temp_dir()))?;
        Ok(Self { folder: scratch.path().to_owned(), _scratch: Some(scratch) })
    }

    /// The folder to build in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Uploads the version in `folder` to `to`, its place in a bucket. For a version that was made from the one in `base`, only
/// the files that differ are uploaded. The manifest is written last; without it there is no version. May be repeated. Does
/// nothing if `to` is a folder, because builds write there themselves.
///
/// # Errors
/// `version_taken` if another version is there or is being written; `object_store_unreachable`.
pub fn publish_version(
    base: Option<&Objects>,
    folder: &Path,
    to: &Objects,
    on_progress: &mut OnProgress<'_>,
) -> Result<(), Failure> {
    if to.folder().is_some() {
        return Ok(());
    }
    let manifest = Manifest::read(folder).map_err(|error| {
        let message = format!("{} is no whole version: {}", folder.display(), chain(&error));
        Failure::new(ErrorCode::VersionDamaged, message, "build it again")
    })?;
    let sent = to.version().reserve(&manifest).and_then(|()| {
        let mut report_bytes = |done, total| on_progress(Progress::Bytes { stage: "uploading", done, total });
        to.version().upload_on(base, folder, &mut report_bytes)
    });
    sent.map(|_| ()).map_err(|error| refused(&error))
}

/// The number of the next version in a place: the time in milliseconds since 1970, but above all versions there.
///
/// # Errors
/// The errors of the place.
pub fn next_version(out: &Objects) -> Result<StoreVersion, Failure> {
    let newest = versions_at(out)?.into_iter().max().unwrap_or_default();
    Ok(StoreVersion(millis_since_1970().max(newest.saturating_add(1))))
}

/// The error for a file of the object store that cannot be used.
pub fn unusable(path: &Path) -> impl FnOnce(io::Error) -> Failure {
    let path = path.to_owned();
    move |error| {
        let message = format!("use {} of the object store: {error}", path.display());
        let help = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full: free some space",
            _ => "check the folder and its permissions",
        };
        Failure::new(ErrorCode::ObjectStoreUnusable, message, help)
    }
}
