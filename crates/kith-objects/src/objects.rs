//! A place and what lies in it.

use crate::listed::Listed;
use crate::remote::{Remote, block_on};
use crate::{Access, Location, ObjectsError};
use kith_engine::{FolderSource, ObjectError, REMOTE_PIECE_BYTES, Source};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// A folder, or a prefix of a bucket, ready to be used. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Objects {
    location: Location,
    /// `None`: a folder.
    pub(crate) remote: Option<Remote>,
}

impl Objects {
    /// Reads settings; asks nobody yet.
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

    /// The place.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The folder, if it is one of this machine.
    pub fn folder(&self) -> Option<&Path> {
        self.location.folder()
    }

    /// A place below this one.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        Self {
            location: self.location.join(name),
            remote: self.remote.as_ref().map(|remote| remote.join(name)),
        }
    }

    /// The same place, whose requests are repeated for `patience` at most.
    #[must_use]
    pub fn repeating_for(&self, patience: Duration) -> Self {
        let remote = self.remote.as_ref().map(|remote| remote.repeating_for(patience));
        Self { location: self.location.clone(), remote }
    }

    /// The place around this one; `None`: there is none.
    pub(crate) fn parent(&self) -> Option<Self> {
        let (location, _) = self.location.parent()?;
        if location == self.location {
            return None;
        }
        let remote = self.remote.as_ref().map(|remote| remote.around(&location));
        Some(Self { location, remote })
    }

    /// Everything below this place, sorted by name. Cost: a request for each thousand objects.
    ///
    /// # Errors
    /// If the place cannot be read; a folder that is not there is empty, as a prefix is.
    pub fn list(&self) -> Result<Vec<Listed>, ObjectsError> {
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

    /// The length of an object; `None` if it is not there.
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

    /// The first parts of the names below this place: the folders and objects directly in it.
    ///
    /// # Errors
    /// As [`Objects::list`].
    pub fn children(&self) -> Result<BTreeSet<String>, ObjectsError> {
        match &self.remote {
            Some(remote) => remote.children(),
            None => names_in(self.folder().unwrap_or(Path::new(""))),
        }
    }

    /// Removes everything below this place. The manifest of a version goes first: what is left by a removal that was
    /// cut short is no version.
    ///
    /// # Errors
    /// If something cannot be removed; that nothing is there is none.
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

fn below(folder: &Path, prefix: &str, found: &mut Vec<Listed>) -> Result<(), ObjectsError> {
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
            found.push(Listed { name, bytes: metadata.len(), modified });
        }
    }
    Ok(())
}
