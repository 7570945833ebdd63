//! What may be read of a store at this node: its share of the store's read quota, by what it holds (docs/design/0012-protection.md).
//!
//! Reads that a router let in are counted here and never refused: what they leave of the share is for those who ask nodes themselves,
//! and what those leave, for exports.

use crate::{
    quotas::{self, Quotas},
    topology::TopologyReceiver,
};
use arc_swap::ArcSwap;
use kith_client::QueryError;
use kith_routing::{ExportStep, QuotaRates};
use kith_wire::documents::TopologyDocument;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// An export that reads have not let by for so long asks as they do.
const EXPORT_PATIENCE: Duration = Duration::from_secs(5);

/// The quotas of all stores, as far as they are for this node to keep.
pub(super) struct NodeQuotas {
    node: u32,
    /// Of the stores that have one; swapped whole when the topology changes.
    shares: ArcSwap<HashMap<String, QuotaRates>>,
    quotas: Quotas,
}

impl NodeQuotas {
    /// Follows the topology until `stop`.
    pub fn start(node: u32, mut topology: TopologyReceiver, stop: CancellationToken) -> Arc<Self> {
        let first = shares(node, &topology.borrow_and_update());
        let quotas = Quotas::new(format!("node {node}"));
        let kept = Arc::new(Self { node, shares: ArcSwap::from_pointee(first), quotas });
        let followed = Arc::clone(&kept);
        tokio::spawn(async move {
            while let Some(Ok(())) = stop.run_until_cancelled(topology.changed()).await {
                let now = shares(followed.node, &topology.borrow_and_update());
                followed.shares.store(Arc::new(now));
            }
        });
        kept
    }

    /// Takes the keys of a read, which `is_admitted` if a router has let it in.
    ///
    /// # Errors
    /// [`QueryError::QuotaExceeded`]; nothing is taken then.
    pub fn take(&self, store: &str, keys: usize, is_admitted: bool) -> Result<(), QueryError> {
        let shares = self.shares.load();
        let Some(share) = shares.get(store) else { return Ok(()) };
        if is_admitted {
            self.quotas.charge_keys(store, *share, keys as u64);
            return Ok(());
        }
        let taken = self.quotas.take(store, *share, keys as u64);
        if let Err(QueryError::QuotaExceeded { kind, .. }) = &taken {
            let reason = quotas::reason(*kind);
            metrics::counter!("kith_node_refused_total", "store" => store.to_owned(), "reason" => reason)
                .increment(1);
        }
        taken
    }

    /// What an export of a store reads at a time; `None`: the store has no quota.
    pub fn export_step(&self, store: &str) -> Option<ExportStep> {
        self.shares.load().get(store).map(QuotaRates::export_step)
    }

    /// Takes what an export has read and is about to send.
    ///
    /// # Errors
    /// How long to wait before that; nothing is taken then. An export that has waited for long enough is let in beside reads.
    pub fn export(&self, store: &str, read: ExportStep, waited: Duration) -> Result<(), Duration> {
        let shares = self.shares.load();
        let Some(share) = shares.get(store) else { return Ok(()) };
        if waited < EXPORT_PATIENCE {
            self.quotas.take_behind(store, *share, read.keys)?;
        } else if let Err(QueryError::QuotaExceeded { retry_after_ms, .. }) =
            self.quotas.take(store, *share, read.keys)
        {
            return Err(Duration::from_millis(retry_after_ms));
        }
        self.quotas.charge_bytes(store, read.bytes);
        Ok(())
    }

    /// Takes the bytes of an answer, which are counted only where they matter.
    pub fn answered(&self, store: &str, bytes: impl FnOnce() -> u64) {
        if self.shares.load().contains_key(store) {
            self.quotas.charge_bytes(store, bytes());
        }
    }
}

/// A node's shares of the quotas that there are.
fn shares(node: u32, topology: &TopologyDocument) -> HashMap<String, QuotaRates> {
    let cluster = &topology.cluster;
    let partitions = u64::from(cluster.partitions);
    let groups = cluster.groups.iter().filter(|group| group.takes_reads()).count() as u64;
    let held = || cluster.partitions_of(node).len() as u64;
    let limited = topology.stores.iter().filter_map(|store| {
        let definition = &store.definition;
        let rates = QuotaRates { keys: definition.read_quota_keys, bytes: definition.read_quota_bytes };
        let copies = definition.replication.map_or(groups, |copies| groups.min(copies.into()));
        // Where answers must agree, each key is read as often.
        let reads = u64::from(definition.required_reads.max(1));
        (!rates.is_none()).then(|| (store.name.clone(), rates.part(held() * reads, partitions * copies)))
    });
    limited.collect()
}
