//! Which nodes are alive, and which of them are about to end, as their leased keys say.

use futures::StreamExt;
use kith_metadata::{MetadataStore, Snapshot, keys};
use kith_routing::Lives;
use kith_types::NodeId;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The value of the leased key of a node that is about to end. Other nodes have an empty value.
pub(crate) const LEAVING: &str = "leaving";
/// The pause before the metadata store is watched again after a watch has ended.
const RETRY: Duration = Duration::from_secs(1);

/// Receives the state of the nodes; `None` until the metadata store has answered.
pub type LivesReceiver = watch::Receiver<Option<Arc<Lives>>>;

/// Follows the leased keys of nodes until `stop`.
pub fn follow_lives(metadata: Arc<dyn MetadataStore>, stop: CancellationToken) -> LivesReceiver {
    let (sender, receiver) = watch::channel(None);
    let follow = async move {
        loop {
            let mut snapshots = metadata.watch(keys::LIVE_NODES, 0);
            while let Some(snapshot) = snapshots.next().await {
                let lives = Arc::new(lives_of(&snapshot));
                sender.send_if_modified(|known| {
                    let has_changed = known.as_ref() != Some(&lives);
                    *known = Some(lives);
                    has_changed
                });
            }
            tokio::time::sleep(RETRY).await;
        }
    };
    tokio::spawn(async move { stop.run_until_cancelled(follow).await });
    receiver
}

fn lives_of(snapshot: &Snapshot) -> Lives {
    let mut lives = Lives::default();
    for entry in &snapshot.entries {
        let id = entry.key.strip_prefix(keys::LIVE_NODES).and_then(|id| id.parse().ok());
        let Some(node) = id.map(NodeId) else { continue };
        lives.alive.insert(node);
        if entry.value == LEAVING.as_bytes() {
            lives.leaving.insert(node);
        }
    }
    lives
}
