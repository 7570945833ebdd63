//! The temporary data directory of a `kith dev` without `--data`. It is created for one run and removed at its end. If a run
//! is killed, the next one removes its directory.

use kith_cluster::{
    StartError, background,
    data_dir::{DataDir, LOCK_FILE},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

const PREFIX: &str = "kith-dev-";
/// The file that marks a directory as created here, for one run. Other directories with such a name are never removed.
const MARKER_FILE: &str = "temporary";
const MARKER: &str = "made by kith dev for one run; removed at its end, or when the next one starts\n";

/// Creates a directory in `parent`, locked and marked.
///
/// # Errors
/// If the directory cannot be written.
pub(super) fn create(parent: &Path) -> Result<(TempDir, DataDir), StartError> {
    let write = |path: &Path| {
        let path = path.to_owned();
        |source| StartError::Write { path, source }
    };
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent).map_err(write(parent))?;
    // Lock it before it is marked: a marked directory without a lock is abandoned.
    let lock = DataDir::lock(folder.path())?;
    let marker = folder.path().join(MARKER_FILE);
    fs::write(&marker, MARKER).map_err(write(&marker))?;
    Ok((folder, lock))
}

/// The time that the end of a run waits for fetches, which notice only at their next block that they should stop.
const WORK_TIMEOUT: Duration = Duration::from_secs(5);

/// A request from before the end may write once more while the directory is being removed, so removing is tried this often.
const REMOVALS_MAX: u32 = 3;

/// Removes the directory of a run that ends, once nothing in this process writes into it.
pub(super) async fn remove(folder: TempDir) {
    let mut removed = Ok(());
    for _ in 0..REMOVALS_MAX {
        if !background::ended(WORK_TIMEOUT).await {
            tracing::warn!("work in the background goes on although the cluster ends");
        }
        removed = fs::remove_dir_all(folder.path());
        if removed.is_ok() {
            return;
        }
    }
    if let Err(error) = removed {
        let path = folder.path().display();
        tracing::warn!(%error, %path, "the temporary directory was not removed; the next `kith dev` removes it");
    }
}

/// Removes the directories that killed runs left in `parent`.
pub(super) fn remove_stale(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let named = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    // Links are not followed, because their targets were not created here.
    let folders = named.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    for folder in folders.map(|entry| entry.path()) {
        let Some(_locks) = abandoned(&folder) else { continue };
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let path = folder.display();
                tracing::warn!(%error, %path, "a killed run's temporary directory could not be removed");
            }
            _ => tracing::info!(path = %folder.display(), "removed a killed run's temporary directory"),
        }
    }
}

/// Returns the locks of a marked directory and of all its parts, if no process holds any of them. Processes that a killed
/// run started may outlive it for a moment.
fn abandoned(folder: &Path) -> Option<Vec<DataDir>> {
    let marker = fs::symlink_metadata(folder.join(MARKER_FILE)).ok()?;
    if !marker.is_file() {
        return None;
    }
    let mut locks = vec![DataDir::lock(folder).ok()?];
    let parts: Vec<PathBuf> =
        fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path().join(LOCK_FILE)).collect();
    for lock in parts.iter().filter(|lock| lock.exists()) {
        locks.push(DataDir::lock(lock.parent()?).ok()?);
    }
    Some(locks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a directory as a killed run leaves it.
    fn left_behind(parent: &Path) -> PathBuf {
        let (folder, lock) = create(parent).unwrap();
        drop(lock);
        let folder = folder.keep();
        drop(DataDir::lock(&folder.join("node-000")).unwrap());
        folder
    }

    #[test]
    fn what_a_killed_run_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let stale = [left_behind(parent.path()), left_behind(parent.path())];
        remove_stale(parent.path());
        assert!(stale.iter().all(|folder| !folder.exists()));
        remove_stale(&parent.path().join("absent"));
    }

    #[test]
    fn what_is_in_use_stays() {
        let parent = tempfile::tempdir().unwrap();
        let (running, _lock) = create(parent.path()).unwrap();
        let orphaned = left_behind(parent.path());
        let node = DataDir::lock(&orphaned.join("node-000")).unwrap();
        remove_stale(parent.path());
        assert!(running.path().exists() && orphaned.exists());
        drop(node);
        remove_stale(parent.path());
        assert!(running.path().exists() && !orphaned.exists());
    }

    #[test]
    fn what_was_not_made_here_stays() {
        let parent = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let unmarked = parent.path().join("kith-dev-of-mine");
        drop(DataDir::lock(&unmarked).unwrap());
        let named_otherwise = parent.path().join("data");
        fs::rename(left_behind(parent.path()), &named_otherwise).unwrap();
        let linked = left_behind(elsewhere.path());
        std::os::unix::fs::symlink(&linked, parent.path().join("kith-dev-link")).unwrap();
        remove_stale(parent.path());
        assert!(unmarked.exists() && named_otherwise.exists() && linked.exists());
    }
}
