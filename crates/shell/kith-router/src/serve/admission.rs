//! The admission of reads to a router: a limit on queries in flight, and each store's quota of keys and bytes per second. A
//! refused query gets its error at once, and is counted by store and reason (docs/design/0012-protection.md).

use kith_cluster::quotas::{self, Quotas};
use kith_query::QueryError;
use kith_routing::AdmittedBy;
use kith_topology::Topology;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Admits queries. Cheap to clone; clones share their counts.
#[derive(Clone)]
pub(crate) struct Admission {
    slots: Arc<Semaphore>,
    quotas: Arc<Quotas>,
}

/// An admitted query. It counts as in flight until it is dropped.
pub(crate) struct AdmittedQuery {
    _slot: OwnedSemaphorePermit,
    /// The store whose quota is charged, if it has one.
    store: Option<String>,
    quotas: Arc<Quotas>,
}

impl Admission {
    /// Returns an admission for at most `queries_max` queries in flight.
    pub fn new(queries_max: usize) -> Self {
        let quotas = Quotas::new("this router".to_owned());
        let slots = Semaphore::new(queries_max.min(Semaphore::MAX_PERMITS));
        Self { slots: Arc::new(slots), quotas: Arc::new(quotas) }
    }

    /// Admits a query of a store or graph, or refuses it at once. The quota is not checked yet.
    ///
    /// # Errors
    /// [`QueryError::Overloaded`] if too many queries are in flight.
    pub fn enter(&self, topology: &Topology, store: &str) -> Result<AdmittedQuery, QueryError> {
        match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(slot) => Ok(AdmittedQuery { _slot: slot, store: None, quotas: Arc::clone(&self.quotas) }),
            Err(_) => {
                let detail = "this router has too many queries in flight".to_owned();
                Err(refused(topology, store, QueryError::Overloaded { detail }))
            }
        }
    }
}

impl AdmittedQuery {
    /// Charges the keys of a read to this router's share of the store's quota.
    ///
    /// # Errors
    /// [`QueryError::QuotaExceeded`]; nothing is charged then.
    pub fn read(&mut self, topology: &Topology, store: &str, keys: usize) -> Result<(), QueryError> {
        // A store that does not exist is reported where it is looked up.
        let Some(known) = topology.stores.get(store) else { return Ok(()) };
        if !known.read_quota.is_none() {
            let rates = known.read_quota.share(topology.routers.len());
            let taken = self.quotas.take(store, rates, keys as u64);
            taken.map_err(|error| refused(topology, store, error.into()))?;
            self.store = Some(store.to_owned());
        }
        metrics::counter!("kith_router_read_keys_total", "store" => store.to_owned()).increment(keys as u64);
        Ok(())
    }

    /// Charges the bytes of the answer, once they are known.
    pub fn answered(&self, store: &str, bytes: u64) {
        metrics::counter!("kith_router_read_bytes_total", "store" => store.to_owned()).increment(bytes);
        if let Some(store) = &self.store {
            self.quotas.charge_bytes(store, bytes, AdmittedBy::Here);
        }
    }
}

/// Counts the error by store and reason if it is a refusal, and returns it. Names that are no stores share one label,
/// because anybody can make up names.
pub(crate) fn refused(topology: &Topology, store: &str, error: QueryError) -> QueryError {
    let reason = match &error {
        QueryError::Overloaded { .. } => "overloaded",
        QueryError::QuotaExceeded(refusal) => quotas::reason(refusal.kind),
        QueryError::BatchTooLarge { .. } => "batch_too_large",
        QueryError::TooLarge { .. } => "answer_too_large",
        _ => return error,
    };
    let is_known = topology.stores.contains_key(store) || topology.graphs.contains_key(store);
    let store = if is_known { store } else { "unknown" };
    metrics::counter!("kith_router_refused_total", "store" => store.to_owned(), "reason" => reason)
        .increment(1);
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;
    use kith_wire::documents::TopologyDocument;
    use serde_json::json;

    /// A cluster with this many routers, and a store with a quota of 10 keys per second.
    fn topology(routers: u32) -> Topology {
        let routers: Vec<_> = (0..routers)
            .map(|router| json!({"format": 1, "router": router, "addr": format!("r:{router}"), "http": "", "pid": 1}))
            .collect();
        let definition = json!({"holds": "values", "key": "id", "value": "text", "retain": 2, "required_reads": 1, "records_min": 0, "read_quota_keys": 10});
        let document = json!({
            "format": 1, "revision": 1, "nodes": [], "routers": routers,
            "cluster": {
                "format": 1, "cluster_id": "", "epoch": 1, "partitions": 1, "object_store": "",
                "groups": [{"group": 0, "nodes": [0], "owners": [0]}],
            },
            "stores": [{"format": 1, "name": "pages", "definition": definition, "version": 1, "components": []}],
        });
        let document: TopologyDocument = serde_json::from_value(document).expect("a document");
        Topology::from_document(Arc::new(document)).expect("it makes sense")
    }

    /// QU-1: quotas are split among the registered routers.
    #[test]
    fn qu_1_a_router_that_joins_halves_the_share_of_the_other_at_once() {
        let admission = Admission::new(8);
        let share = |routers: u32| {
            let topology = topology(routers);
            let mut admitted = admission.enter(&topology, "pages").unwrap();
            // This is more than the bucket holds. It is admitted if nothing was read before; from then on everything is
            // refused.
            let _ = admitted.read(&topology, "pages", 1_000);
            match admitted.read(&topology, "pages", 1) {
                Err(QueryError::QuotaExceeded(refusal)) => {
                    assert_eq!(refusal.at, "this router");
                    refusal.per_second
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([share(1), share(2), share(3), share(1)], [10, 5, 4, 10]);
    }

    #[test]
    fn queries_beyond_the_slots_are_turned_away_and_a_slot_that_is_given_back_is_taken() {
        let (admission, topology) = (Admission::new(1), topology(1));
        let held = admission.enter(&topology, "pages").unwrap();
        let refused = admission.enter(&topology, "pages").err().map(|error| error.code());
        assert_eq!(refused, Some(ErrorCode::Overloaded));
        drop(held);
        assert!(admission.enter(&topology, "pages").is_ok());
    }
}
