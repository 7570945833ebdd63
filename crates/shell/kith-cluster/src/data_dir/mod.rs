//! The data directory of a process: its owner, its format, and the lock by which only one process uses it.

mod error;

pub use error::DataDirError;

use crate::private;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{
    fs,
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// The layout that this release reads and writes.
const DIRECTORY_FORMAT: u32 = 1;
const IDENTITY_FILE: &str = "kith.json";
/// The file that the process that uses the directory holds a lock on.
pub const LOCK_FILE: &str = "lock";

/// A data directory, locked until dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: Mutex<Lock>,
    /// The owner, once the directory is claimed.
    identity: OnceLock<FolderIdentity>,
}

#[derive(Debug)]
struct Lock {
    /// The open file that holds the lock; replaced when the directory is created again.
    file: fs::File,
    /// The number of times that the directory was created again.
    remade: u32,
}

/// The cluster and process that a data directory belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderIdentity {
    /// The cluster's id.
    pub cluster_id: String,
    /// The owner, for example `node 3` or `supervisor`.
    pub owner: String,
}

#[derive(Serialize, Deserialize)]
struct IdentityFile {
    format: u32,
    #[serde(flatten)]
    identity: FolderIdentity,
}

/// The part of an identity file that all formats share.
#[derive(Deserialize)]
struct AnyFormat {
    format: u32,
}

impl DataDir {
    /// Creates the directory if it does not exist, locks it, and makes it private to its user.
    ///
    /// # Errors
    /// If another process holds it or it cannot be written.
    pub fn lock(path: &Path) -> Result<Self, DataDirError> {
        let lock = Mutex::new(Lock { file: locked(path)?, remade: 0 });
        Ok(Self { path: path.to_owned(), lock, identity: OnceLock::new() })
    }

    /// Creates the directory again, with its lock and its owner's name, if somebody removed or replaced it while this process
    /// was using it. Returns how often it was created again so far.
    ///
    /// # Errors
    /// If another process has taken it meanwhile, or it cannot be written.
    pub fn keep(&self) -> Result<u32, DataDirError> {
        let mut lock = self.lock.lock();
        let path = self.path.join(LOCK_FILE);
        let io = |source| DataDirError::Io { path: path.clone(), source };
        let held = lock.file.metadata().map_err(io)?;
        match fs::metadata(&path) {
            Ok(there) if (there.dev(), there.ino()) == (held.dev(), held.ino()) => return Ok(lock.remade),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io(error)),
        }
        let anew = locked(&self.path)?;
        if let Some(identity) = self.identity.get() {
            self.claim(identity)?;
        }
        *lock = Lock { file: anew, remade: lock.remade + 1 };
        Ok(lock.remade)
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The owner; `None` if the directory is new.
    ///
    /// # Errors
    /// If the identity is damaged or of another format.
    pub fn identity(&self) -> Result<Option<FolderIdentity>, DataDirError> {
        identity(&self.path)
    }

    /// Claims a new directory for `identity`, or checks that it already belongs to `identity`.
    ///
    /// # Errors
    /// If it belongs to another cluster or process, or cannot be read or written.
    pub fn claim(&self, identity: &FolderIdentity) -> Result<(), DataDirError> {
        match self.identity()? {
            Some(got) if got == *identity => {}
            Some(got) => {
                let expected = identity.clone();
                return Err(DataDirError::OtherOwner { path: self.path.clone(), expected, got });
            }
            None => {
                let file = IdentityFile { format: DIRECTORY_FORMAT, identity: identity.clone() };
                let bytes =
                    serde_json::to_vec_pretty(&file).expect("an identity is two strings and a number");
                write_atomically(&self.path.join(IDENTITY_FILE), &bytes)?;
            }
        }
        // A directory is claimed by one process, hence for one owner.
        let _ = self.identity.set(identity.clone());
        Ok(())
    }
}

/// The owner of a directory, which is not locked for this; `None` if the directory is new or does not exist.
///
/// # Errors
/// If the identity is damaged or of another format.
pub fn identity(folder: &Path) -> Result<Option<FolderIdentity>, DataDirError> {
    let path = folder.join(IDENTITY_FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(DataDirError::Io { path, source }),
    };
    let damaged =
        |error: serde_json::Error| DataDirError::Damaged { path: path.clone(), detail: error.to_string() };
    let AnyFormat { format: got } = serde_json::from_slice(&bytes).map_err(damaged)?;
    if got != DIRECTORY_FORMAT {
        return Err(DataDirError::OtherFormat { path: folder.to_owned(), got });
    }
    let file: IdentityFile = serde_json::from_slice(&bytes).map_err(damaged)?;
    Ok(Some(file.identity))
}

/// Locks a directory, which is created if it does not exist, and made private to its user. The lock file contains the process
/// id.
fn locked(path: &Path) -> Result<fs::File, DataDirError> {
    let io = |path: PathBuf| move |source| DataDirError::Io { path, source };
    fs::create_dir_all(path).map_err(io(path.to_owned()))?;
    let file = path.join(LOCK_FILE);
    let lock = fs::File::options().create(true).truncate(false).write(true).open(&file);
    let mut lock = lock.map_err(io(file.clone()))?;
    match lock.try_lock() {
        Ok(()) => {
            let pid = format!("{}\n", std::process::id());
            lock.set_len(0).and_then(|()| lock.write_all(pid.as_bytes())).map_err(io(file))?;
            private::close(path);
            Ok(lock)
        }
        Err(fs::TryLockError::WouldBlock) => Err(DataDirError::InUse { path: path.to_owned() }),
        Err(fs::TryLockError::Error(source)) => Err(DataDirError::Io { path: file, source }),
    }
}

/// Writes a file beside `path`, syncs it and renames it to `path`, so that readers see either the whole old file or the whole
/// new one.
///
/// # Errors
/// [`DataDirError::Io`].
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), DataDirError> {
    let staged = path.with_extension("staged");
    let write = || {
        fs::write(&staged, bytes)?;
        fs::File::open(&staged)?.sync_all()?;
        fs::rename(&staged, path)
    };
    write().map_err(|source| DataDirError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(owner: &str) -> FolderIdentity {
        FolderIdentity { cluster_id: "c1".into(), owner: owner.into() }
    }

    #[test]
    fn a_second_process_is_turned_away() {
        let folder = tempfile::tempdir().unwrap();
        let held = DataDir::lock(folder.path()).unwrap();
        assert!(matches!(DataDir::lock(folder.path()), Err(DataDirError::InUse { .. })));
        drop(held);
        DataDir::lock(folder.path()).unwrap();
    }

    #[test]
    fn a_directory_keeps_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::lock(folder.path()).unwrap();
        assert_eq!(dir.identity().unwrap(), None);
        dir.claim(&identity("node 1")).unwrap();
        dir.claim(&identity("node 1")).unwrap();
        assert!(matches!(dir.claim(&identity("node 2")), Err(DataDirError::OtherOwner { .. })));
    }

    #[test]
    fn a_directory_that_was_removed_is_made_again_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let dir = DataDir::lock(&path).unwrap();
        dir.claim(&identity("node 6")).unwrap();
        assert_eq!(dir.keep().unwrap(), 0);
        fs::remove_dir_all(&path).unwrap();
        assert_eq!((dir.keep().unwrap(), dir.keep().unwrap()), (1, 1));
        assert!(matches!(DataDir::lock(&path), Err(DataDirError::InUse { .. })));
        assert_eq!(dir.identity().unwrap(), Some(identity("node 6")));
    }

    #[test]
    fn a_directory_that_another_process_took_is_not_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let dir = DataDir::lock(&path).unwrap();
        dir.claim(&identity("node 6")).unwrap();
        fs::remove_dir_all(&path).unwrap();
        let intruder = DataDir::lock(&path).unwrap();
        assert!(matches!(dir.keep(), Err(DataDirError::InUse { .. })));
        intruder.claim(&identity("node 5")).unwrap();
        drop(intruder);
        assert!(matches!(dir.keep(), Err(DataDirError::OtherOwner { .. })), "also if it has ended");
        assert_eq!(dir.identity().unwrap(), Some(identity("node 5")));
    }

    #[test]
    fn golden_bytes_of_the_file_that_names_the_owner() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::lock(folder.path()).unwrap();
        dir.claim(&identity("node 1")).unwrap();
        let file = folder.path().join(IDENTITY_FILE);
        let golden = kith_sim::golden::file("kith.json", &fs::read(&file).unwrap());
        fs::write(file, golden).unwrap();
        assert_eq!(dir.identity().unwrap(), Some(identity("node 1")));
    }

    #[test]
    fn another_format_is_refused_by_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::lock(folder.path()).unwrap();
        for got in [0, 2] {
            let other = format!(r#"{{"format":{got},"belongs_to":["c","node 1"]}}"#);
            fs::write(folder.path().join(IDENTITY_FILE), other).unwrap();
            let error = dir.claim(&identity("node 1")).unwrap_err().to_string();
            let expected = format!(" has format {got}, this release reads format 1");
            assert!(error.ends_with(&expected), "{error}");
        }
    }
}
