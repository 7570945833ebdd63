//! Reserves disk space for concurrent fetches: space that one of them has yet to write does not count as free for another.
//!
//! Reservations are kept per disk and for the whole process, because all fetches of the process share the disk.

use super::FetchError;
use super::error::IoContext;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of reserved bytes that are not written yet, by device.
static PROMISED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// The reserved space of one fetch. It is released as it is written to, and when this is dropped.
#[derive(Debug)]
pub(super) struct Space {
    device: u64,
    left: AtomicU64,
}

impl Space {
    /// Reserves `needed` bytes of the disk that `dir` lies on, if it has that many free bytes that are not reserved yet.
    pub(super) fn promise(dir: &Path, needed: u64) -> Result<Self, FetchError> {
        let device = std::fs::metadata(dir).at(dir)?.dev();
        // The lock is taken before the disk is asked, so that bytes that others write meanwhile still count as
        // reserved, and are never missing from both numbers.
        let mut promised = promised();
        let disk = rustix::fs::statvfs(dir).map_err(std::io::Error::from).at(dir)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let taken = promised.entry(device).or_default();
        let available = free.saturating_sub(*taken);
        if available < needed {
            return Err(FetchError::NoSpace { path: dir.to_owned(), needed, available });
        }
        *taken += needed;
        Ok(Self { device, left: AtomicU64::new(needed) })
    }

    /// Notes that this many bytes are written. From now on the disk itself reports them as used.
    pub(super) fn written(&self, bytes: u64) {
        let mut promised = promised();
        let left = self.left.load(Ordering::Relaxed);
        // A block that was staged wrongly is written again, in the same place.
        let bytes = bytes.min(left);
        self.left.store(left - bytes, Ordering::Relaxed);
        if let Some(taken) = promised.get_mut(&self.device) {
            *taken -= bytes;
        }
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.written(u64::MAX);
    }
}

fn promised() -> MutexGuard<'static, BTreeMap<u64, u64>> {
    PROMISED.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_to_one_fetch_is_not_free_for_another() {
        let dir = tempfile::tempdir().unwrap();
        let disk = rustix::fs::statvfs(dir.path()).unwrap();
        let free = disk.f_bavail * disk.f_frsize;
        // Other processes write to this disk meanwhile, so a quarter of the free space is left to them.
        let most = free / 4 * 3;
        let first = Space::promise(dir.path(), most).unwrap();
        let refused = Space::promise(dir.path(), most).unwrap_err();
        assert!(
            matches!(refused, FetchError::NoSpace { needed, available, .. } if needed == most && available < most)
        );
        // Written bytes are counted by the disk, and none is counted twice, however much is written.
        first.written(most / 2);
        first.written(most);
        let second = Space::promise(dir.path(), most).unwrap();
        drop(first);
        assert!(Space::promise(dir.path(), most).is_err(), "the second still has it");
        drop(second);
        assert!(Space::promise(dir.path(), most).is_ok());
    }
}
