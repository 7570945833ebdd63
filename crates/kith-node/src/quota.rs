//! What may be read of a store at this node: its share of the store's read quota, by what it holds (docs/design/0012-protection.md).
//!
//! Reads that a router let in are counted here and never refused: what they leave of the share is for those who ask nodes themselves,
//! and what those leave, for exports.

use super::answered::Answered;
use arc_swap::ArcSwap;
use kith_api::QueryError;
use kith_ops::Value;
use kith_process::{
    quotas::{self, Quotas},
    topology::TopologyReceiver,
};
use kith_routing::{AdmittedBy, ExportStep, QuotaRates, ReservationId, Reserved};
use kith_wire::{documents::TopologyDocument, v1};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// Which way a read came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WayIn {
    /// A router has let it in.
    Router,
    /// Whoever reads asks this node.
    Direct,
    /// The same, and has reserved it.
    Reserved(ReservationId),
}

impl WayIn {
    /// As a request says.
    pub fn of(request: &v1::EvaluateRequest) -> Self {
        let header = request.header.as_ref();
        let reservation = request.reservation.as_ref();
        match reservation.filter(|reservation| reservation.step() == v1::ReservationStep::Redeem) {
            _ if header.is_some_and(|header| header.admitted) => WayIn::Router,
            Some(reservation) => WayIn::Reserved(named(request, reservation)),
            None => WayIn::Direct,
        }
    }
}

/// How a client names a reservation.
fn named(request: &v1::EvaluateRequest, reservation: &v1::Reservation) -> ReservationId {
    let client = request.header.as_ref().map_or(0, |header| header.client);
    ReservationId { client, id: reservation.id }
}

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

    /// Takes the keys of a read.
    ///
    /// # Errors
    /// [`QueryError::QuotaExceeded`]; nothing is taken then.
    pub fn take(&self, store: &str, keys: usize, way: WayIn) -> Result<(), QueryError> {
        let shares = self.shares.load();
        let Some(share) = shares.get(store) else { return Ok(()) };
        let keys = keys as u64;
        match way {
            WayIn::Router => {
                self.quotas.charge_keys(store, *share, keys);
                Ok(())
            }
            WayIn::Direct => counted(store, self.quotas.take(store, *share, keys)),
            WayIn::Reserved(id) => counted(store, self.quotas.redeem(store, *share, id, keys)),
        }
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
        self.quotas.charge_bytes(store, read.bytes, AdmittedBy::Here);
        Ok(())
    }

    /// Keeps room for a read that asks other nodes too: whether it is kept, and how much is left. Without a quota there is nothing to keep.
    ///
    /// # Errors
    /// [`QueryError::QuotaExceeded`]; nothing is kept then.
    fn reserve(
        &self,
        store: &str,
        keys: u64,
        id: ReservationId,
    ) -> Result<(bool, v1::QuotaLeft), QueryError> {
        let shares = self.shares.load();
        let Some(share) = shares.get(store) else { return Ok((false, v1::QuotaLeft::QuotaCalm)) };
        let (reserved, is_tight) = counted(store, self.quotas.reserve(store, *share, id, keys))?;
        Ok((reserved == Reserved::Held, left(is_tight)))
    }

    /// Gives back what was reserved.
    fn give_back(&self, store: &str, id: ReservationId) {
        self.quotas.give_back(store, id);
    }

    /// Answers a request that reserves what is about to be read, or gives it back.
    ///
    /// # Errors
    /// As [`NodeQuotas::reserve`].
    pub fn reserve_for(
        &self,
        request: &v1::EvaluateRequest,
        reservation: &v1::Reservation,
    ) -> Result<Answered, Status> {
        let (store, id) = (&request.name, named(request, reservation));
        let (is_held, left) = match reservation.step() {
            v1::ReservationStep::Reserve => {
                self.reserve(store, reservation.keys, id).map_err(|error| error.to_status())?
            }
            v1::ReservationStep::GiveBack | v1::ReservationStep::Redeem => {
                self.give_back(store, id);
                (false, v1::QuotaLeft::QuotaUnknown)
            }
        };
        let rest = v1::EvaluateReply { quota_left: left.into(), ..Default::default() };
        Ok(Answered { value: Value::Exists(is_held), rest })
    }

    /// Takes the bytes of an answer from the quotas of the stores that it was read from; how much is left of them.
    pub fn charge_answer(&self, served: &[v1::Served], way: WayIn, bytes: impl Fn() -> u64) -> v1::QuotaLeft {
        let left = served.iter().map(|served| self.answered(&served.name, way, &bytes));
        left.fold(v1::QuotaLeft::QuotaUnknown, |_, left| left)
    }

    /// Takes the bytes of an answer, which are counted only where they matter; how much is left, for those whom that concerns.
    pub fn answered(&self, store: &str, way: WayIn, bytes: impl FnOnce() -> u64) -> v1::QuotaLeft {
        if !self.shares.load().contains_key(store) {
            return v1::QuotaLeft::QuotaUnknown;
        }
        match way {
            WayIn::Router => {
                self.quotas.charge_bytes(store, bytes(), AdmittedBy::Router);
                v1::QuotaLeft::QuotaUnknown
            }
            WayIn::Direct | WayIn::Reserved(_) => {
                left(self.quotas.charge_bytes(store, bytes(), AdmittedBy::Here))
            }
        }
    }
}

fn left(is_tight: bool) -> v1::QuotaLeft {
    if is_tight { v1::QuotaLeft::QuotaTight } else { v1::QuotaLeft::QuotaCalm }
}

/// Counts what is refused.
fn counted<T>(store: &str, taken: Result<T, QueryError>) -> Result<T, QueryError> {
    if let Err(QueryError::QuotaExceeded { kind, .. }) = &taken {
        let reason = quotas::reason(*kind);
        metrics::counter!("kith_node_refused_total", "store" => store.to_owned(), "reason" => reason)
            .increment(1);
    }
    taken
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
