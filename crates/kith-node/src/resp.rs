//! What Redis clients read from a node by itself: keys of the partitions that it holds, without a second hop.

use super::{
    held::VersionReader,
    quota::WayIn,
    service::{KEYS_INLINE_MAX, NodeService},
};
use futures::{
    FutureExt,
    future::{self, BoxFuture},
};
use kith_api::{ANSWER_BYTES_MAX, BatchKeys, QueryError};
use kith_doors::resp::{Answer, Backend, Group, Values};
use kith_engine::{KeyType, ValueError, ValueType, ValuesReader};
use kith_ops::{RecordError, Records, RecordsBuilder};
use kith_wire::{
    documents::{HoldsDocument, ServedDocument, TopologyDocument},
    v1,
};
use std::{
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

/// Reads that nobody waits for any more end at the latest after so long.
const DEADLINE: Duration = Duration::from_secs(10);
/// How many values are read between two looks at the time.
const LOOK_EVERY: usize = 1_024;

/// Reads for Redis clients.
pub(super) struct RespReads {
    service: Arc<NodeService>,
    /// As the node names itself to those it answers; distinct from all other clients of its own.
    client: u64,
}

/// One read, ready to run on any thread.
struct Local {
    service: Arc<NodeService>,
    group: Group,
    version: u64,
    value: ValueType,
    reader: Arc<ValuesReader>,
    started: Instant,
}

impl RespReads {
    pub fn new(service: Arc<NodeService>) -> Self {
        Self { service, client: rand::random() }
    }

    fn local(&self, group: Group) -> Result<Local, QueryError> {
        let topology = Arc::clone(&self.service.topology.borrow());
        let document = served(&topology, &group.store)?;
        let (_, value) = kinds(document)?;
        let required = document.definition.required_reads;
        if 1 < required {
            let detail = format!(
                "answers of store {:?} are those on which {required} replicas agree, and this node is one: {}",
                group.store,
                self.service.whom(&topology)
            );
            return Err(QueryError::Unsupported { detail });
        }
        let version = document.version;
        match self.service.held.get(&group.store, version) {
            Some(VersionReader::Values(reader)) => {
                let service = Arc::clone(&self.service);
                Ok(Local { service, group, version, value, reader, started: Instant::now() })
            }
            _ => Err(QueryError::VersionUnavailable { what: "store", name: group.store, version }),
        }
    }
}

impl Backend for RespReads {
    fn role(&self) -> &'static str {
        "node"
    }

    fn stores(&self) -> Vec<(String, u64)> {
        let topology = self.service.topology.borrow();
        let stores = topology.stores.iter().filter(|store| !store.is_graph());
        stores.map(|store| (store.name.clone(), store.version)).collect()
    }

    fn keys_of(&self, store: &str) -> Result<KeyType, QueryError> {
        Ok(kinds(served(&self.service.topology.borrow(), store)?)?.0)
    }

    fn read(self: Arc<Self>, group: Group) -> BoxFuture<'static, Result<Answer, QueryError>> {
        let local = match self.local(group) {
            Ok(local) => local,
            Err(error) => return future::ready(Err(error)).boxed(),
        };
        // Here, if it is over sooner than another thread could take it up: few keys, and no page to wait for.
        if local.group.keys.len() <= KEYS_INLINE_MAX && !local.reader.mapped().is_cold() {
            return future::ready(local.run(self.client)).boxed();
        }
        async move {
            let client = self.client;
            let joined = tokio::task::spawn_blocking(move || local.run(client)).await;
            joined.unwrap_or_else(|error| {
                Err(QueryError::Internal { detail: format!("a read ended unexpectedly: {error}") })
            })
        }
        .boxed()
    }
}

impl Local {
    fn run(self, client: u64) -> Result<Answer, QueryError> {
        let Self { service, group: Group { store, keys }, version, value, reader, started } = self;
        let Some(_in_flight) = service.load.start(client, started) else {
            metrics::counter!("kith_node_overloaded_total").increment(1);
            let detail = format!("node {} has too many requests in flight", service.node);
            return Err(QueryError::Overloaded { detail });
        };
        service.quotas.take(&store, keys.len(), WayIn::Direct)?;
        let records = match (&keys, reader.key_type()) {
            (BatchKeys::Ids(ids), KeyType::Id) => {
                let keys: Vec<[u8; 8]> = ids.iter().map(|id| id.to_le_bytes()).collect();
                read(&reader, &keys, started)
            }
            (BatchKeys::Bytes(keys), KeyType::String | KeyType::Bytes) => {
                read(&reader, &keys.iter().collect::<Vec<_>>(), started)
            }
            (_, expected) => Err(QueryError::WrongKeys { store: store.clone(), expected, got: "another" }),
        }?;
        match records.damaged() {
            0 => {}
            damaged => service.note_damaged(damaged, &[v1::Served { name: store.clone(), version }]),
        }
        service.quotas.answered(&store, WayIn::Direct, || records.value_bytes());
        let schema = reader.schema().filter(|_| value == ValueType::Record);
        if value == ValueType::Record && schema.is_none() {
            let reason = "this release cannot read it".to_owned();
            return Err(QueryError::SchemaUnavailable { store, version, reason });
        }
        let unanswered = match records.counts().unanswered {
            0 => String::new(),
            _ => service.not_owner(),
        };
        service.note_worked(started.elapsed());
        Ok(Answer::of_all(Values { schema: schema.cloned(), store, records, unanswered }))
    }
}

impl NodeService {
    /// The error of a key of a partition that is not here.
    fn not_owner(&self) -> String {
        let topology = self.topology.borrow();
        format!(
            "ERR not_owner: node {} does not hold the partition of this key ({})",
            self.node,
            self.whom(&topology)
        )
    }

    /// Who answers for all keys.
    fn whom(&self, topology: &TopologyDocument) -> String {
        let routers: Vec<&str> = topology
            .routers
            .iter()
            .map(|router| router.resp.as_str())
            .filter(|addr| !addr.is_empty())
            .collect();
        match routers.is_empty() {
            true => {
                "ask a router; none of this cluster serves Redis clients: start one with --resp".to_owned()
            }
            false => format!("ask a router: {}", routers.join(", ")),
        }
    }
}

/// What the version has of each key: a value, the proof that there is none, damage, or nothing, where the partition is not held.
fn read<K: AsRef<[u8]>>(reader: &ValuesReader, keys: &[K], started: Instant) -> Result<Records, QueryError> {
    let mut records = RecordsBuilder::with_capacity(keys.len());
    let mut stopped = None;
    reader.get_many(keys, |index, value| {
        if index % LOOK_EVERY == LOOK_EVERY - 1 && DEADLINE <= started.elapsed() {
            stopped = Some(QueryError::DeadlineExceeded { deadline_ms: DEADLINE.as_millis() as u64 });
            return ControlFlow::Break(());
        }
        match value {
            Ok(Some(value)) => {
                let is_small_enough = value.len() <= ANSWER_BYTES_MAX - records.value_bytes();
                if !(is_small_enough && records.found(value)) {
                    stopped = Some(QueryError::TooLarge { max: ANSWER_BYTES_MAX as u64 });
                    return ControlFlow::Break(());
                }
            }
            Ok(None) => records.absent(),
            Err(ValueError::Damaged(_)) => records.error(RecordError::Damaged),
            Err(ValueError::NotHeld { .. }) => records.unanswered(),
            Err(error) => {
                stopped = Some(QueryError::BadRequest { detail: error.to_string() });
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    match stopped {
        Some(error) => Err(error),
        None => Ok(records.finish()),
    }
}

/// The store of values of this name, once it serves a version.
fn served<'a>(topology: &'a TopologyDocument, name: &str) -> Result<&'a ServedDocument, QueryError> {
    let values = || topology.stores.iter().filter(|store| !store.is_graph());
    match topology.stores.iter().find(|store| store.name == name) {
        Some(store) if store.is_graph() => Err(QueryError::NotValues { name: name.to_owned() }),
        Some(store) if store.version == 0 => Err(QueryError::NoVersion { store: name.to_owned() }),
        Some(store) => Ok(store),
        None => Err(QueryError::UnknownStore {
            name: name.to_owned(),
            known: values().map(|store| store.name.clone()).collect(),
        }),
    }
}

fn kinds(store: &ServedDocument) -> Result<(KeyType, ValueType), QueryError> {
    let bad = |what: &str| QueryError::Internal {
        detail: format!("store {:?}: this release does not know its kind of {what}", store.name),
    };
    match &store.definition.holds {
        HoldsDocument::Graph => Err(QueryError::NotValues { name: store.name.clone() }),
        HoldsDocument::Values { key, value, .. } => {
            Ok((key.parse().map_err(|_| bad("keys"))?, value.parse().map_err(|_| bad("values"))?))
        }
    }
}
