//! A place and the objects in it.

use crate::objects::listed::ListedObject;
use crate::objects::partitions::PartitionObjects;
use crate::objects::put_new::put_new_file;
use crate::objects::remote::{Remote, block_on};
use crate::objects::{Access, Location, ObjectReader, ObjectsError, PlaceError, VersionObjects};
use kith_engine::{FetchError, FolderSource, Manifest, ObjectError, REMOTE_PIECE_BYTES, Source};
use object_store::PutMode;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// A folder, or a prefix of a bucket, opened for use. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Objects {
    location: Location,
    /// `None` for a folder.
    pub(crate) remote: Option<Remote>,
}

impl Objects {
    /// Opens a place from its settings. Makes no request.
    ///
    /// # Errors
    /// [`ObjectsError::Settings`].
    pub fn open(location: &Location, access: &Access) -> Result<Self, ObjectsError> {
        let remote = match location {
            Location::Folder(_) => None,
            Location::Bucket(url) => Some(Remote::open(location, url, access)?),
        };
        Ok(Self { location: location.clone(), remote })
    }

    /// Opens the folder or URL that a text names, with credentials from the environment of this process. Makes no request.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn named(location: &str) -> Result<Self, PlaceError> {
        Ok(Self::open(&location.parse()?, &Access::from_environment())?)
    }

    /// Returns the location of this place.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Returns the folder, if the place is on this machine.
    pub fn folder(&self) -> Option<&Path> {
        self.location.folder()
    }

    /// Returns a place below this one.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        Self {
            location: self.location.join(name),
            remote: self.remote.as_ref().map(|remote| remote.join(name)),
        }
    }

    /// Returns the place of a component's version: the one that `url` names, or else `folder` in the layout of object stores.
    ///
    /// # Errors
    /// As [`Objects::named`].
    pub fn component(
        &self,
        store: &str,
        component: &str,
        folder: &str,
        url: Option<&str>,
    ) -> Result<Self, PlaceError> {
        match url {
            Some(url) => Self::named(url),
            None => Ok(self.join(&format!("{store}/{component}/{folder}"))),
        }
    }

    /// Returns the same place, but with failed requests repeated for at most `timeout`.
    #[must_use]
    pub fn repeating_for(&self, timeout: Duration) -> Self {
        let remote = self.remote.as_ref().map(|remote| remote.repeating_for(timeout));
        Self { location: self.location.clone(), remote }
    }

    /// Returns the place that contains this one, if there is one.
    pub(crate) fn parent(&self) -> Option<Self> {
        let (location, _) = self.location.parent()?;
        if location == self.location {
            return None;
        }
        let remote = self.remote.as_ref().map(|remote| remote.around(&location));
        Some(Self { location, remote })
    }

    /// Lists everything below this place, sorted by name. Makes one request per thousand objects.
    ///
    /// # Errors
    /// If the place cannot be read. A folder that does not exist is empty, as a prefix would be.
    pub fn list(&self) -> Result<Vec<ListedObject>, ObjectsError> {
        let mut found = match (&self.remote, &self.location) {
            (Some(remote), _) => remote.list()?,
            (None, Location::Folder(folder)) => {
                let mut found = Vec::new();
                below(folder, "", &mut found)?;
                found
            }
            (None, Location::Bucket(_)) => Vec::new(),
        };
        found.sort();
        Ok(found)
    }

    /// Returns the length of an object in bytes; `None` if it does not exist.
    ///
    /// # Errors
    /// If the place cannot be read.
    pub fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError> {
        if let Some(remote) = &self.remote {
            return match block_on(remote.size(name)) {
                Ok(size) => Ok(Some(size)),
                Err(ObjectsError::Missing { .. }) => Ok(None),
                Err(error) => Err(error),
            };
        }
        let path = self.folder().unwrap_or(Path::new("")).join(name);
        match fs::metadata(&path) {
            Ok(metadata) => Ok(metadata.is_file().then_some(metadata.len())),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(source) => Err(ObjectsError::Local { path, source }),
        }
    }

    /// Returns the first parts of the names below this place: the folders and objects directly in it.
    ///
    /// # Errors
    /// As [`Objects::list`].
    pub fn children(&self) -> Result<BTreeSet<String>, ObjectsError> {
        match &self.remote {
            Some(remote) => remote.children(),
            None => names_in(self.folder().unwrap_or(Path::new(""))),
        }
    }

    /// Removes everything below this place. The manifest of a version is removed first, so that an interrupted removal
    /// leaves no version.
    ///
    /// # Errors
    /// If something cannot be removed. It is not an error if there is nothing to remove.
    pub fn remove_all(&self) -> Result<(), ObjectsError> {
        let Some(folder) = self.folder() else {
            return self.remote.as_ref().map_or(Ok(()), Remote::remove_all);
        };
        match fs::remove_dir_all(folder) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(ObjectsError::Local { path: folder.to_owned(), source })
            }
            _ => Ok(()),
        }
    }

    /// Returns a reader of one object. A failed request is repeated from where it broke off. Uses 8 MiB of memory.
    pub fn reader(&self, name: &str) -> ObjectReader {
        ObjectReader::new(self.clone(), name.to_owned())
    }

    /// Writes an object that must not exist yet, completely or not at all. Creates the object's folder, but not the
    /// parents of that folder.
    pub(crate) fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<(), ObjectsError> {
        if let Some(remote) = &self.remote {
            let at = remote.at(name);
            let put = remote.store.put_opts(&at, bytes.into(), PutMode::Create.into());
            return block_on(put).map(|_| ()).map_err(|error| ObjectsError::of(remote.named(name), error));
        }
        let folder = self.folder().unwrap_or(Path::new(""));
        let path = folder.join(name);
        put_new_file(folder, &path, &bytes).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => ObjectsError::Taken { object: path.display().to_string() },
            _ => ObjectsError::Local { path, source },
        })
    }

    /// Reads the manifest of the version in this place.
    ///
    /// # Errors
    /// As for a fetch: if there is no manifest, if it is damaged, or if the place cannot be read.
    pub fn manifest(&self) -> Result<Manifest, FetchError> {
        kith_engine::read_manifest(self, None)
    }

    /// Returns this place as the folder of a version.
    pub fn version(&self) -> VersionObjects<'_> {
        VersionObjects { objects: self }
    }

    /// Returns this place as the folder of partitions that tasks build.
    pub fn partitions(&self) -> PartitionObjects<'_> {
        PartitionObjects { objects: self }
    }
}

impl Source for Objects {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        match (&self.remote, self.folder()) {
            (Some(remote), _) => remote.read(object, offset, into).map_err(|error| error.in_fetch(object)),
            (None, folder) => FolderSource::new(folder.unwrap_or(Path::new(""))).read(object, offset, into),
        }
    }

    fn object_bytes(&self, object: &str) -> Result<Option<u64>, ObjectError> {
        self.size(object).map_err(|error| error.in_fetch(object))
    }

    fn piece_bytes(&self) -> usize {
        match (&self.remote, self.folder()) {
            (None, Some(folder)) => FolderSource::new(folder).piece_bytes(),
            _ => REMOTE_PIECE_BYTES,
        }
    }
}

fn names_in(folder: &Path) -> Result<BTreeSet<String>, ObjectsError> {
    let failed = |source| ObjectsError::Local { path: folder.to_owned(), source };
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        entries => {
            let names = entries.map_err(failed)?;
            names.map(|entry| Ok(entry.map_err(failed)?.file_name().to_string_lossy().into_owned())).collect()
        }
    }
}

fn below(folder: &Path, prefix: &str, found: &mut Vec<ListedObject>) -> Result<(), ObjectsError> {
    let failed = |source| ObjectsError::Local { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let metadata = fs::metadata(entry.path()).map_err(failed)?;
        if metadata.is_dir() {
            below(&entry.path(), &format!("{name}/"), found)?;
        } else {
            let modified = metadata.modified().map_err(failed)?;
            found.push(ListedObject { name, bytes: metadata.len(), modified });
        }
    }
    Ok(())
}
