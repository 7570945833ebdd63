//! Watches the node's data directory, which may be removed while the process runs.

use crate::{repair::scrub::FileHealth, versions::HeldStores};
use kith_cluster::data_dir::{DataDir, DataDirError};
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The interval at which the directory is checked, besides before each fetch. For this long, another process could take
/// a directory that was removed.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Receives the reason why the directory no longer belongs to this node.
pub(super) type LossReceiver = oneshot::Receiver<DataDirError>;

/// Checks the directory until `stop` is cancelled. Cancels `stop` if another process has taken the directory, because two
/// processes would remove each other's files.
pub(super) fn watch(
    data: &Arc<DataDir>,
    held: Arc<HeldStores>,
    file_health: Arc<FileHealth>,
    stop: CancellationToken,
) -> LossReceiver {
    let (sender, lost) = oneshot::channel();
    let data = Arc::downgrade(data);
    tokio::spawn(async move {
        let mut seen = 0;
        let mut interval = tokio::time::interval(LOOK_INTERVAL);
        while stop.run_until_cancelled(interval.tick()).await.is_some() {
            // This task ends with the node.
            let Some(data) = data.upgrade() else { return };
            let path = data.path().display();
            match data.keep() {
                Ok(remade) if remade == seen => {}
                Ok(remade) => {
                    seen = remade;
                    tracing::error!(%path, "the data directory was removed while this node was running: created it again; its files are fetched again");
                    held.open.readers().iter().for_each(|((store, _), _)| file_health.suspect(store));
                }
                Err(error @ DataDirError::Io { .. }) => {
                    tracing::error!(%error, source = std::error::Error::source(&error).map(ToString::to_string), "the data directory cannot be made again");
                }
                Err(error) => {
                    tracing::error!(%error, "another process has taken the data directory: this node stops");
                    let _ = sender.send(error);
                    stop.cancel();
                    return;
                }
            }
        }
    });
    lost
}
