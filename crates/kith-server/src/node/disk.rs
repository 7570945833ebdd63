//! How much room is left where a node keeps its versions.

use std::{path::Path, time::Duration};
use tokio_util::sync::CancellationToken;

/// How often it looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The room of a file system, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    /// For processes without privileges.
    pub free: u64,
    pub total: u64,
}

/// The room of the file system that a folder is in; nothing if it cannot be told.
pub(super) fn room(folder: &Path) -> Room {
    let told = rustix::fs::statvfs(folder);
    told.map_or_else(
        |_| Room::default(),
        |told| Room {
            free: told.f_bavail.saturating_mul(told.f_frsize),
            total: told.f_blocks.saturating_mul(told.f_frsize),
        },
    )
}

/// Shows the room until told to stop.
pub(super) async fn follow(folder: std::path::PathBuf, stop: CancellationToken) {
    let mut interval = tokio::time::interval(LOOK_INTERVAL);
    while stop.run_until_cancelled(interval.tick()).await.is_some() {
        let Room { free, total } = room(&folder);
        metrics::gauge!("kith_node_disk_free_bytes").set(free as f64);
        metrics::gauge!("kith_node_disk_bytes").set(total as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_some_room_and_none_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let Room { free, total } = room(folder.path());
        assert!(free <= total && 0 < total);
        assert_eq!(room(&folder.path().join("absent")), Room::default());
    }
}
