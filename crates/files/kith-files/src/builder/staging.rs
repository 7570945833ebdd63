//! A folder that gets its final name only when all of its content is on disk.
//!
//! `<component>/.staging/` is written, synced and renamed to `<component>/<version>/`. A killed build leaves the staging
//! folder behind, and the next build removes it. A lock on `<component>/.lock`, which ends with its process, excludes
//! concurrent builds.

use super::BuildError;
use kith_types::StoreVersion;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The folder of a version of a component.
pub fn version_dir(component_dir: &Path, version: StoreVersion) -> PathBuf {
    component_dir.join(version.0.to_string())
}

pub(crate) struct Staging {
    component_dir: PathBuf,
    target: PathBuf,
    /// The lowest folder that existed before. The names of all folders below it must be synced too.
    rooted_at: PathBuf,
    /// The lock on the folder, which is held until the end of the build.
    _lock: File,
}

impl Staging {
    /// Creates an empty staging folder.
    pub(crate) fn create(component_dir: &Path, version: StoreVersion) -> Result<Self, BuildError> {
        let rooted_at =
            component_dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(component_dir).to_owned();
        fs::create_dir_all(component_dir).map_err(BuildError::folder("create", component_dir))?;
        let path = component_dir.join(".lock");
        let lock = File::create(&path).map_err(BuildError::folder("create", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(BuildError::Busy { path: component_dir.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(BuildError::folder("lock", path)(source)),
        }
        let target = version_dir(component_dir, version);
        if target.exists() {
            return Err(BuildError::Exists { path: target });
        }
        let staging = Staging { component_dir: component_dir.to_owned(), target, rooted_at, _lock: lock };
        let dir = staging.dir();
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(BuildError::folder("remove", dir)(error));
            }
            _ => fs::create_dir(&dir).map_err(BuildError::folder("create", &dir))?,
        }
        Ok(staging)
    }

    /// The folder to write to.
    pub(crate) fn dir(&self) -> PathBuf {
        self.component_dir.join(".staging")
    }

    /// Gives the folder its final name.
    pub(crate) fn commit(self) -> Result<(), BuildError> {
        let dir = self.dir();
        sync(&dir)?;
        fs::rename(&dir, &self.target).map_err(BuildError::folder("rename", &dir))?;
        for above in self.component_dir.ancestors() {
            sync(above)?;
            if above == self.rooted_at {
                break;
            }
        }
        Ok(())
    }
}

impl Drop for Staging {
    /// A failed build leaves nothing behind. After a commit the folder is already gone.
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.dir());
    }
}

fn sync(path: &Path) -> Result<(), BuildError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(BuildError::folder("sync", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_build_is_cleared_away_and_a_running_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let component = dir.path().join("connection");
        fs::create_dir_all(component.join(".staging/rubbish")).unwrap();
        let staging = Staging::create(&component, StoreVersion(1)).unwrap();
        assert_eq!(fs::read_dir(staging.dir()).unwrap().count(), 0);
        let busy = Staging::create(&component, StoreVersion(2)).err().unwrap();
        assert!(matches!(busy, BuildError::Busy { .. }), "{busy}");
        staging.commit().unwrap();
        assert!(component.join("1").is_dir() && !component.join(".staging").exists());
        let exists = Staging::create(&component, StoreVersion(1)).err().unwrap();
        assert!(matches!(exists, BuildError::Exists { .. }), "{exists}");
        drop(Staging::create(&component, StoreVersion(2)).unwrap());
        assert!(!component.join(".staging").exists() && !component.join("2").exists());
    }
}
