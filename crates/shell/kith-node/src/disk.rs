//! The free space on the disk where a node keeps its versions.

use std::{path::Path, time::Duration};
use tokio_util::sync::CancellationToken;

/// The interval at which the free space is measured.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The size and the free space of a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    /// The free space for processes without privileges.
    pub free: u64,
    pub total: u64,
}

/// Returns the space of the file system of a folder. The folder need not exist; `None` if its parent does not exist either.
fn room(folder: &Path) -> Option<Room> {
    let status = rustix::fs::statvfs(folder).or_else(|error| match folder.parent() {
        Some(parent) => rustix::fs::statvfs(parent),
        None => Err(error),
    });
    let status = status.ok()?;
    Some(Room {
        free: status.f_bavail.saturating_mul(status.f_frsize),
        total: status.f_blocks.saturating_mul(status.f_frsize),
    })
}

/// Returns the free bytes of that file system.
pub(super) fn free(folder: &Path) -> Option<u64> {
    room(folder).map(|room| room.free)
}

/// Updates the metrics until `stop` is cancelled.
pub(super) async fn follow(folder: std::path::PathBuf, stop: CancellationToken) {
    let mut interval = tokio::time::interval(LOOK_INTERVAL);
    while stop.run_until_cancelled(interval.tick()).await.is_some() {
        let Some(Room { free, total }) = room(&folder) else { continue };
        metrics::gauge!("kith_node_disk_free_bytes").set(free as f64);
        metrics::gauge!("kith_node_disk_bytes").set(total as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_its_room_before_it_is_made_and_one_that_is_gone_has_none_that_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let Some(Room { free, total }) = room(folder.path()) else { panic!("the folder has some room") };
        assert!(free <= total && 0 < total);
        assert!(room(&folder.path().join("components")).is_some_and(|room| 0 < room.total));
        assert_eq!(room(&folder.path().join("absent/components")), None);
    }
}
