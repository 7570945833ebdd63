//! The read quotas at this node. A node has the share of each store's quota that corresponds to the part of the store that
//! it holds (docs/design/0012-protection.md).
//!
//! Reads that a router admitted are counted here and never refused. The rest of the share is for clients that ask nodes
//! directly, and what these leave is for exports.

use super::answer::EncodableAnswer;
use arc_swap::ArcSwap;
use kith_cluster::{
    quotas::{self, Quotas},
    topology::TopologyReceiver,
};
use kith_operators::Value;
use kith_query::QueryError;
use kith_routing::{AdmittedBy, ExportStep, GrantedReservation, QuotaRates, QuotaRefusal, ReservationId};
use kith_wire::{documents::TopologyDocument, v1};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// The way by which a read reached this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WayIn {
    /// Through a router, which has admitted it.
    Router,
    /// Directly from a client.
    Direct,
    /// Directly from a client that has reserved it.
    Reserved(ReservationId),
}

impl WayIn {
    /// Returns the way of a request.
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

/// Returns the id of a client's reservation.
fn named(request: &v1::EvaluateRequest, reservation: &v1::Reservation) -> ReservationId {
    let client = request.header.as_ref().map_or(0, |header| header.client);
    ReservationId { client, id: reservation.id }
}

/// An export that had to give way to reads for this long competes with them as an equal.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// This node's shares of the quotas of all stores.
pub(crate) struct NodeQuotas {
    node: u32,
    /// The rates of the stores that have a quota. The map is replaced as a whole when the topology changes.
    shares: ArcSwap<HashMap<String, QuotaRates>>,
    quotas: Quotas,
}

impl NodeQuotas {
    /// Follows the topology until `stop` is cancelled.
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

    /// Takes the keys of a read from the quota.
    ///
    /// # Errors
    /// [`QuotaRefusal`]; nothing is taken then.
    pub fn take(&self, store: &str, keys: usize, way: WayIn) -> Result<(), QuotaRefusal> {
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

    /// Returns how much an export of a store reads at a time; `None` if the store has no quota.
    pub fn export_step(&self, store: &str) -> Option<ExportStep> {
        self.shares.load().get(store).map(QuotaRates::export_step)
    }

    /// Takes what an export has read and is about to send from the quota.
    ///
    /// # Errors
    /// The time to wait before the next attempt; nothing is taken then. An export that has waited long enough competes
    /// with reads.
    pub fn export(&self, store: &str, read: ExportStep, waited: Duration) -> Result<(), Duration> {
        let shares = self.shares.load();
        let Some(share) = shares.get(store) else { return Ok(()) };
        if waited < EXPORT_TIMEOUT {
            self.quotas.take_export(store, *share, read.keys)?;
        } else if let Err(refusal) = self.quotas.take(store, *share, read.keys) {
            return Err(Duration::from_millis(refusal.retry_after_ms));
        }
        self.quotas.charge_bytes(store, read.bytes, AdmittedBy::Here);
        Ok(())
    }

    /// Reserves room for a read that also asks other nodes. Returns whether it is reserved, and how much is left. Without a
    /// quota there is nothing to reserve.
    ///
    /// # Errors
    /// [`QuotaRefusal`]; nothing is reserved then.
    fn reserve(
        &self,
        store: &str,
        keys: u64,
        id: ReservationId,
    ) -> Result<(bool, v1::QuotaLeft), QuotaRefusal> {
        let shares = self.shares.load();
        let Some(share) = shares.get(store) else { return Ok((false, v1::QuotaLeft::QuotaCalm)) };
        let (reserved, is_tight) = counted(store, self.quotas.reserve(store, *share, id, keys))?;
        Ok((reserved == GrantedReservation::Held, left(is_tight)))
    }

    fn give_back(&self, store: &str, id: ReservationId) {
        self.quotas.give_back(store, id);
    }

    /// Answers a request that makes a reservation, or gives it back.
    ///
    /// # Errors
    /// The errors of [`NodeQuotas::reserve`].
    pub fn reserve_for(
        &self,
        request: &v1::EvaluateRequest,
        reservation: &v1::Reservation,
    ) -> Result<EncodableAnswer, Status> {
        let (store, id) = (&request.name, named(request, reservation));
        let (is_held, left) = match reservation.step() {
            v1::ReservationStep::Reserve => self
                .reserve(store, reservation.keys, id)
                .map_err(|error| QueryError::from(error).to_status())?,
            v1::ReservationStep::GiveBack | v1::ReservationStep::Redeem => {
                self.give_back(store, id);
                (false, v1::QuotaLeft::QuotaUnknown)
            }
        };
        let rest = v1::EvaluateReply { quota_left: left.into(), ..Default::default() };
        Ok(EncodableAnswer { value: Value::Exists(is_held), rest })
    }

    /// Takes the bytes of an answer from the quotas of the stores that it was read from. Returns how much is left.
    pub fn charge_answer(&self, served: &[v1::Served], way: WayIn, bytes: impl Fn() -> u64) -> v1::QuotaLeft {
        let left = served.iter().map(|served| self.answered(&served.name, way, &bytes));
        left.fold(v1::QuotaLeft::QuotaUnknown, |_, left| left)
    }

    /// Takes the bytes of an answer from the quota. `bytes` is called only if the store has a quota. Returns how much is
    /// left, for clients that read directly.
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

/// Counts refusals in the metrics.
fn counted<T>(store: &str, taken: Result<T, QuotaRefusal>) -> Result<T, QuotaRefusal> {
    if let Err(refusal) = &taken {
        let reason = quotas::reason(refusal.kind);
        metrics::counter!("kith_node_refused_total", "store" => store.to_owned(), "reason" => reason)
            .increment(1);
    }
    taken
}

/// Returns a node's shares of all quotas.
fn shares(node: u32, topology: &TopologyDocument) -> HashMap<String, QuotaRates> {
    let cluster = &topology.cluster;
    let partitions = u64::from(cluster.partitions);
    let groups = cluster.groups.iter().filter(|group| group.takes_reads()).count() as u64;
    let held = || cluster.partitions_of(node).len() as u64;
    let limited = topology.stores.iter().filter_map(|store| {
        let definition = &store.definition;
        let rates = QuotaRates { keys: definition.read_quota_keys, bytes: definition.read_quota_bytes };
        let copies = definition.replication.map_or(groups, |copies| groups.min(copies.into()));
        // If answers must agree, each key is read this many times.
        let reads = u64::from(definition.required_reads.max(1));
        (!rates.is_none()).then(|| (store.name.clone(), rates.part(held() * reads, partitions * copies)))
    });
    limited.collect()
}
