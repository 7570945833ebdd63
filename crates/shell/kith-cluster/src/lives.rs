//! The nodes that are alive, those of them that are about to end, and the live graphs that they cannot open, as their
//! leased keys say.

use crate::metadata::{MetadataStore, Snapshot, keys};
use futures::StreamExt;
use kith_routing::Lives;
use kith_types::NodeId;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The value of the leased key of a node that is about to end.
pub(crate) const LEAVING: &str = "leaving";
/// The beginning of the value if the node cannot open all live graphs; their names follow. All other nodes have an
/// empty value.
const UNABLE: &str = "unable:";
/// The separator of the names. No name contains it.
const BETWEEN: char = ',';
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

/// The value of the leased key of a node that cannot open these live graphs.
pub fn unable(graphs: &BTreeSet<String>) -> String {
    match graphs.is_empty() {
        true => String::new(),
        false => {
            let names: Vec<&str> = graphs.iter().map(String::as_str).collect();
            format!("{UNABLE}{}", names.join(&BETWEEN.to_string()))
        }
    }
}

fn lives_of(snapshot: &Snapshot) -> Lives {
    let mut lives = Lives::default();
    for entry in &snapshot.entries {
        let id = entry.key.strip_prefix(keys::LIVE_NODES).and_then(|id| id.parse().ok());
        let Some(node) = id.map(NodeId) else { continue };
        lives.alive.insert(node);
        match std::str::from_utf8(&entry.value) {
            Ok(LEAVING) => drop(lives.leaving.insert(node)),
            Ok(value) => {
                if let Some(names) = value.strip_prefix(UNABLE) {
                    lives.unable.insert(node, names.split(BETWEEN).map(str::to_owned).collect());
                }
            }
            Err(_) => {}
        }
    }
    lives
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{EmbeddedMetadata, Write};

    #[tokio::test]
    async fn the_values_of_leased_keys_say_what_nodes_cannot_do() {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
        let metadata = EmbeddedMetadata::in_memory();
        let values = [
            unable(&names(&[])),
            LEAVING.to_owned(),
            unable(&names(&["social"])),
            unable(&names(&["b", "a"])),
        ];
        let write = |(node, value)| Write::put(keys::live_node(node), String::into_bytes(value));
        metadata.commit(vec![], (0..).zip(values).map(write).collect()).await.unwrap();
        let lives = lives_of(&metadata.read(keys::LIVE_NODES).await.unwrap());
        assert_eq!(lives.alive, (0..4).map(NodeId).collect());
        assert_eq!(lives.leaving, BTreeSet::from([NodeId(1)]));
        let unable = [(NodeId(2), names(&["social"])), (NodeId(3), names(&["a", "b"]))];
        assert_eq!(lives.unable, unable.into_iter().collect());
    }
}
