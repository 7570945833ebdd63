//! Prepares the versions that the topology names, follows its changes, and removes versions that nothing names any more.

use super::{
    held::{HeldStores, PrepareOptions, Replicas},
    repairs::Repairs,
};
use futures::StreamExt;
use kith_cluster::{background, topology::TopologyReceiver};
use kith_topology::wanted;
use kith_wire::documents::{ServedDocument, TopologyDocument};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// The interval at which a node looks for versions to remove while nothing changes.
const RETIRE_INTERVAL: Duration = Duration::from_secs(15);
/// The pause before a failed preparation is repeated.
const PREPARE_RETRY: Duration = Duration::from_secs(1);

/// The number of stores that a node prepares on its own at a time, so that a slow source of one does not delay the
/// others. Pushes are prepared in addition to these.
const STORES_AT_A_TIME: usize = 4;

/// Prepares the versions that the topology serves now. A version that fails is refused until [`follow_versions`] has
/// prepared it.
pub(crate) async fn prepare_served(node: u32, held: &Arc<HeldStores>, topology: &Arc<TopologyDocument>) {
    let served = topology.stores.iter().filter(|store| store.version != 0).cloned();
    prepare_all(node, held, topology, served.collect()).await;
}

/// Prepares versions, several stores at a time. Returns whether all of them are ready.
async fn prepare_all(
    node: u32,
    held: &Arc<HeldStores>,
    topology: &Arc<TopologyDocument>,
    versions: Vec<ServedDocument>,
) -> bool {
    let mut stores: BTreeMap<String, Vec<ServedDocument>> = BTreeMap::new();
    for version in versions {
        stores.entry(version.name.clone()).or_default().push(version);
    }
    let prepared = stores.into_values().map(|versions| {
        let (held, topology) = (Arc::clone(held), Arc::clone(topology));
        background::run(move || prepare_store(node, &held, &topology, &versions))
    });
    let prepared = futures::stream::iter(prepared).buffer_unordered(STORES_AT_A_TIME);
    prepared.fold(true, async |all, prepared| all & prepared.unwrap_or(false)).await
}

fn prepare_store(
    node: u32,
    held: &HeldStores,
    topology: &TopologyDocument,
    versions: &[ServedDocument],
) -> bool {
    let mut all = true;
    for store in versions {
        let options =
            PrepareOptions { replicas: Replicas::of(topology, node, store), ..PrepareOptions::default() };
        if let Err(error) = held.opener.prepare(store, topology.revision, &options, &mut |_, _, _| {}) {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let (store, version) = (&store.name, store.version);
            tracing::error!(%error, source, store, version, "a version cannot be served yet");
            all = false;
        }
    }
    all
}

/// Prepares versions when the topology names them, and removes versions that it no longer names, until `stop` is cancelled.
pub(crate) async fn follow_versions(
    node: u32,
    held: Arc<HeldStores>,
    mut topology: TopologyReceiver,
    repairs: Repairs,
    stop: CancellationToken,
) {
    let follow = async {
        loop {
            let current = Arc::clone(&topology.borrow_and_update());
            held.owned.follow(&current, node, Instant::now());
            let mut done = prepare_all(node, &held, &current, wanted(&current)).await;
            held.remover.retire(&current, Instant::now());
            let (stores, versions) = (Arc::clone(&held), wanted(&current));
            let freed = tokio::task::spawn_blocking(move || {
                stores.releaser.free_strangers(&versions, Instant::now())
            });
            done &= freed.await.is_ok();
            done &= repairs.report(&held, &current).await;
            let wait = if done { RETIRE_INTERVAL } else { PREPARE_RETRY };
            tokio::select! {
                changed = topology.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(wait) => {}
            }
        }
    };
    // Work in the background ends by itself, and none begins after this.
    stop.run_until_cancelled(follow).await;
}
