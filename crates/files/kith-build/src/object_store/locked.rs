//! A store's folder in the object store, locked for one load or push.

use super::remove_folder;
use crate::{
    OnProgress, Progress,
    failure::Failure,
    graph::next_version,
    place::{open_objects, refused, unusable, version_here},
};
use kith_files::objects::Objects;
use kith_types::clock::millis_since_1970;
use kith_types::{ErrorCode, StoreVersion};
use kith_wire::documents::{ComponentDocument, StoreDocument};
use std::{
    borrow::Cow,
    fs::{self, File},
    path::{Path, PathBuf},
};

const UNFINISHED_FILE: &str = ".unfinished";
/// The folder in which the engine builds a component before it gets its name.
const STAGING_FOLDER: &str = ".staging";
/// The folder to which the base of a delta is downloaded.
const BASE_FOLDER: &str = ".base";

/// A store's folder in the object store, for one load or push; unlocked when dropped.
#[derive(Debug)]
pub struct LockedStore {
    /// The folder in which versions are built: the object store, or the temporary folder.
    pub(super) objects: PathBuf,
    /// The store's folder in it.
    pub(super) folder: PathBuf,
    /// The locked file, which contains the id of the push that holds the lock. `None` in a bucket.
    pub(super) lock: Option<File>,
    /// The store's place in a bucket.
    pub(super) bucket: Option<Bucket>,
}

/// A store's place in a bucket, with the folder in which its versions are built. The folder is removed at the end.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) objects: Objects,
    /// The id of the push, after which its folders are named.
    pub(super) push: String,
    pub(super) _built: tempfile::TempDir,
}

impl Bucket {
    /// The name of the folder for a version of a component. No other push uses this name, so a push that fails removes only
    /// its own folder.
    fn folder(&self, version: u64) -> String {
        format!("{version}-{}", self.push)
    }
}

impl Drop for LockedStore {
    fn drop(&mut self) {
        // The id is read only by a process that finds the lock taken, so a stale one does no harm.
        if let Some(lock) = &self.lock {
            let _ = lock.set_len(0);
        }
        let _ = fs::remove_dir_all(self.folder.join(BASE_FOLDER));
    }
}

impl LockedStore {
    /// The folder in which versions are built, with the object store's layout.
    pub fn objects(&self) -> &Path {
        &self.objects
    }

    /// The folder of the versions of one of the store's components.
    pub fn component(&self, component: &str) -> PathBuf {
        self.folder.join(component)
    }

    /// Removes the files of a load or push that was killed, unless it was killed after its commit.
    ///
    /// # Errors
    /// If they cannot be removed.
    pub fn clear_unfinished(&self, store: Option<&StoreDocument>) -> Result<(), Failure> {
        let marker = self.folder.join(UNFINISHED_FILE);
        let Ok(text) = fs::read_to_string(&marker) else { return Ok(()) };
        let version: u64 = text.trim().parse().unwrap_or_default();
        let is_named = component_versions(store).any(|named| named == version);
        for component in self.components()? {
            remove_folder(&component.join(STAGING_FOLDER))?;
            if !is_named {
                remove_folder(&component.join(version.to_string()))?;
            }
            self.remove_uploaded(store, &component, version)?;
        }
        fs::remove_file(&marker).map_err(unusable(&marker))
    }

    /// A version above all versions of the store and its folder: the current time, unless a clock went back.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn next_version(&self, store: Option<&StoreDocument>) -> Result<u64, Failure> {
        let used = store.map_or(0, |store| store.version_last);
        let newest = component_versions(store).max().unwrap_or_default().max(used);
        let above = StoreVersion(newest.max(millis_since_1970().saturating_sub(1)));
        let next = next_version(&self.objects, &self.name(), above);
        Ok(next.map_err(unusable(&self.folder))?.0)
    }

    /// Uploads a built component to its place in the object store. Does nothing if that is a folder. For a version that was
    /// made from the one in `base`, the files that both have in common are copied within the object store.
    ///
    /// # Errors
    /// `version_taken`; `object_store_unreachable`. The object store then has no such version.
    pub fn upload(
        &self,
        base: Option<&Objects>,
        component: &str,
        version: u64,
        folder: &Path,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<(), Failure> {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        let objects = bucket.objects.join(&format!("{component}/{}", bucket.folder(version)));
        let stage = format!("uploading {component}");
        let sent = objects.version().upload_on(base, folder, &mut |done, total| {
            on_progress(Progress::Bytes { stage: &stage, done, total });
        });
        sent.map(|_| ()).map_err(|error| refused(&error))
    }

    /// The folder to which [`LockedStore::upload`] uploads a version; `None` means the one that is named after its number.
    pub fn folder_of(&self, version: u64) -> Option<String> {
        self.bucket.as_ref().map(|bucket| bucket.folder(version))
    }

    /// Whether the object store is a bucket.
    pub fn is_bucket(&self) -> bool {
        self.bucket.is_some()
    }

    /// Removes the upload of a failed load or push: its own folder, unless the cluster names it after all.
    fn remove_uploaded(
        &self,
        store: Option<&StoreDocument>,
        component: &Path,
        version: u64,
    ) -> Result<(), Failure> {
        let (Some(bucket), Some(name)) = (&self.bucket, component.file_name().and_then(|name| name.to_str()))
        else {
            return Ok(());
        };
        let folder = bucket.folder(version);
        let mut named = store.into_iter().flat_map(|store| &store.versions).flat_map(|it| &it.components);
        if named.any(|named| named.name == name && named.folder() == folder) {
            return Ok(());
        }
        let objects = bucket.objects.join(&format!("{name}/{folder}"));
        objects.remove_all().map_err(|error| refused(&error))
    }

    /// A folder with a built version of one of the store's components. If it is not on this machine, it is downloaded and
    /// verified, and its place is returned too.
    ///
    /// # Errors
    /// `version_damaged`, or the errors of the object store.
    pub fn built(
        &self,
        component: &ComponentDocument,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<(PathBuf, Option<Objects>), Failure> {
        let here = self.component(&component.name).join(component.version.to_string());
        let objects = match (&component.url, &self.bucket) {
            (None, None) => return Ok((here, None)),
            (Some(url), _) => open_objects(url)?,
            (None, Some(bucket)) => {
                bucket.objects.join(&format!("{}/{}", component.name, component.folder()))
            }
        };
        let folder = self.folder.join(BASE_FOLDER).join(component.version.to_string());
        let (folder, manifest) = version_here(&objects, &folder, on_progress)?;
        if manifest.hash() == component.manifest_hash {
            return Ok((folder, Some(objects)));
        }
        let message = format!("{} is not the version that is served", objects.location());
        Err(Failure::new(ErrorCode::VersionDamaged, message, "push all rows, without --delta"))
    }

    fn name(&self) -> Cow<'_, str> {
        self.folder.file_name().unwrap_or_default().to_string_lossy()
    }

    /// Writes a marker that a version is being built, in case this process is killed.
    ///
    /// # Errors
    /// If the marker cannot be written.
    pub fn mark_unfinished(&self, version: u64) -> Result<(), Failure> {
        let marker = self.folder.join(UNFINISHED_FILE);
        fs::write(&marker, format!("{version}\n")).map_err(unusable(&marker))
    }

    /// Removes the marker.
    pub fn mark_finished(&self) {
        // If the marker cannot be removed, the next build only reads the store's record once more.
        let _ = fs::remove_file(self.folder.join(UNFINISHED_FILE));
    }

    fn components(&self) -> Result<Vec<PathBuf>, Failure> {
        let entries = fs::read_dir(&self.folder).map_err(unusable(&self.folder))?;
        Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
    }
}

/// The versions of the components of every version that the cluster knows, including those that a rollback can return to.
fn component_versions(store: Option<&StoreDocument>) -> impl Iterator<Item = u64> {
    let versions = store.into_iter().flat_map(|store| &store.versions);
    versions.flat_map(|version| &version.components).map(|component| component.version)
}
