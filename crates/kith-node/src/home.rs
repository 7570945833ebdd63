//! Looks after the node's data directory: somebody may remove it under the process.

use super::{held::HeldStores, scrub::FileHealth};
use kith_process::data_dir::{DataDir, DataDirError};
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How often it looks, besides before each fetch: for so long could another process take a directory that was removed.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Told why the directory is not this node's any more.
pub(super) type Lost = oneshot::Receiver<DataDirError>;

/// Looks until `stop`, and cancels that when another process has taken the directory: two would remove each other's files.
pub(super) fn watch(
    data: &Arc<DataDir>,
    held: Arc<HeldStores>,
    doctor: Arc<FileHealth>,
    stop: CancellationToken,
) -> Lost {
    let (sender, lost) = oneshot::channel();
    let data = Arc::downgrade(data);
    tokio::spawn(async move {
        let mut seen = 0;
        let mut interval = tokio::time::interval(LOOK_INTERVAL);
        while stop.run_until_cancelled(interval.tick()).await.is_some() {
            // It goes with the node.
            let Some(data) = data.upgrade() else { return };
            let path = data.path().display();
            match data.keep() {
                Ok(remade) if remade == seen => {}
                Ok(remade) => {
                    seen = remade;
                    tracing::error!(%path, "the data directory was removed while this node was running: made again, and what it held is fetched anew");
                    held.readers().iter().for_each(|((store, _), _)| doctor.suspect(store));
                }
                Err(error @ DataDirError::Io { .. }) => {
                    tracing::error!(%error, source = std::error::Error::source(&error).map(ToString::to_string), "the data directory cannot be made again");
                }
                Err(error) => {
                    tracing::error!(%error, "the data directory is another process's now: this node ends");
                    let _ = sender.send(error);
                    stop.cancel();
                    return;
                }
            }
        }
    });
    lost
}
