//! The reads that a node answers itself at its RESP and HTTP doors: keys of the partitions that it holds, without a second
//! hop.

use super::{evaluator::Evaluator, job::KEYS_INLINE_MAX, own_read::OwnRead};
use crate::{threads::evaluate_aside, versions::held::VersionReader};
use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
};
use kith_doors::Backend;
use kith_engine::ValuesReader;
use kith_query::{BatchKeys, BatchStream, QueryError, Question, Reply, Request, Service, StoreShape};
use kith_schema::{Schema, SchemaId};
use kith_types::ErrorCode;
use kith_wire::LookupError;
use kith_wire::documents::{HoldsDocument, ServedDocument, TopologyDocument};
use std::{sync::Arc, time::Instant};

/// Answers the requests at a node's doors.
pub(crate) struct OwnReads {
    evaluator: Arc<Evaluator>,
    /// The client id of these reads. It is distinct from those of all other clients.
    client: u64,
}

impl OwnReads {
    pub fn new(evaluator: Arc<Evaluator>) -> Self {
        Self { evaluator, client: rand::random() }
    }

    fn local(&self, request: Arc<Request>) -> Result<OwnRead, QueryError> {
        let topology = Arc::clone(&self.evaluator.topology.borrow());
        let document = served(&topology, request.question.of())?;
        let StoreShape { value, .. } = shape(document)?;
        let required = document.definition.required_reads;
        if 1 < required {
            let detail = format!(
                "answers of store {:?} are those on which {required} replicas agree, and this node is one: {}",
                document.name,
                self.evaluator.whom(&topology)
            );
            return Err(QueryError::Unsupported { detail });
        }
        let version = document.version;
        let reader = self.evaluator.values(&document.name, version)?;
        let evaluator = Arc::clone(&self.evaluator);
        Ok(OwnRead { evaluator, request, version, value, reader, started: Instant::now() })
    }

    fn read(&self, request: Arc<Request>) -> BoxFuture<'static, Result<Reply, QueryError>> {
        let local = match self.local(request) {
            Ok(local) => local,
            Err(error) => return future::ready(Err(error)).boxed(),
        };
        let keys = local.request.question.keys().map_or(0, BatchKeys::len);
        // Run it here if that takes less time than handing it to another thread: few keys, and all pages in memory.
        if keys <= KEYS_INLINE_MAX && !local.reader.mapped().is_cold() {
            return future::ready(local.run(self.client)).boxed();
        }
        let client = self.client;
        async move {
            let joined = evaluate_aside(move || local.run(client)).await;
            joined.unwrap_or_else(|error| {
                Err(QueryError::Internal { detail: format!("a read ended unexpectedly: {error}") })
            })
        }
        .boxed()
    }

    fn schema(&self, store: &str, version: u64, id: SchemaId) -> Result<Schema, QueryError> {
        let reader = self.evaluator.values(store, version)?;
        reader.schema().filter(|schema| schema.id() == id).cloned().ok_or_else(|| {
            let reason = format!("this node has no schema {id} of it");
            QueryError::SchemaUnavailable { store: store.to_owned(), version, reason }
        })
    }

    /// The error for a question that a node does not answer itself.
    fn unsupported(&self, question: &Question) -> QueryError {
        let whom = self.evaluator.whom(&self.evaluator.topology.borrow());
        let detail = format!(
            "a node answers reads of values by itself, not requests of kind {:?}: {whom}",
            question.name()
        );
        QueryError::Unsupported { detail }
    }
}

impl Service for OwnReads {
    fn call(&self, request: Arc<Request>) -> BoxFuture<'_, Result<Reply, QueryError>> {
        let reply = match &request.question {
            Question::Values { .. } => return self.read(request),
            Question::Shape { store } => self.shape_of(store).map(Reply::Shape),
            Question::Schema { store, version, id } => self.schema(store, *version, *id).map(Reply::Schema),
            question @ (Question::Graph { .. }
            | Question::Explain { .. }
            | Question::Gremlin { .. }
            | Question::Write { .. }
            | Question::Compute { .. }
            | Question::Aggregate { .. }) => Err(self.unsupported(question)),
        };
        future::ready(reply).boxed()
    }

    fn stream(&self, request: Arc<Request>) -> BatchStream<'_> {
        let refused = request.question.check_stream().err();
        let refused = refused.unwrap_or_else(|| {
            let whom = self.evaluator.whom(&self.evaluator.topology.borrow());
            QueryError::Unsupported { detail: format!("a node streams nothing at its doors: {whom}") }
        });
        futures::stream::once(future::ready(Err(refused))).boxed()
    }
}

impl Backend for OwnReads {
    fn role(&self) -> &'static str {
        "node"
    }

    fn stores(&self) -> Vec<(String, u64)> {
        let topology = self.evaluator.topology.borrow();
        let stores = topology.stores.iter().filter(|store| !store.is_graph());
        stores.map(|store| (store.name.clone(), store.version)).collect()
    }

    fn shape_of(&self, store: &str) -> Result<StoreShape, QueryError> {
        shape(served(&self.evaluator.topology.borrow(), store)?)
    }

    fn fans_out(&self) -> bool {
        false
    }

    fn unanswered(&self, _: &[u32]) -> QueryError {
        QueryError::Remote {
            code: ErrorCode::NotOwner,
            message: format!("node {} does not hold the partition of this key", self.evaluator.node),
            help: self.evaluator.whom(&self.evaluator.topology.borrow()),
        }
    }
}

impl Evaluator {
    fn values(&self, store: &str, version: u64) -> Result<Arc<ValuesReader>, QueryError> {
        match self.held.open.get(store, version) {
            Some(VersionReader::Values(reader)) => Ok(reader),
            _ => Err(QueryError::VersionUnavailable { what: "store", name: store.to_owned(), version }),
        }
    }

    /// Returns a hint that names the routers, which answer for all keys.
    pub(crate) fn whom(&self, topology: &TopologyDocument) -> String {
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

/// Returns the value store of this name, if it serves a version.
fn served<'a>(topology: &'a TopologyDocument, name: &str) -> Result<&'a ServedDocument, QueryError> {
    let values = || topology.stores.iter().filter(|store| !store.is_graph());
    match topology.stores.iter().find(|store| store.name == name) {
        Some(store) if store.is_graph() => Err(LookupError::NotValues { name: name.to_owned() }.into()),
        Some(store) if store.version == 0 => Err(LookupError::NoVersion { store: name.to_owned() }.into()),
        Some(store) => Ok(store),
        None => Err(LookupError::UnknownStore {
            name: name.to_owned(),
            known: values().map(|store| store.name.clone()).collect(),
        }
        .into()),
    }
}

fn shape(store: &ServedDocument) -> Result<StoreShape, QueryError> {
    let bad = |what: &str| QueryError::Internal {
        detail: format!("store {:?}: this release does not know its kind of {what}", store.name),
    };
    match &store.definition.holds {
        HoldsDocument::Graph => Err(LookupError::NotValues { name: store.name.clone() }.into()),
        HoldsDocument::Values { key, value, .. } => Ok(StoreShape {
            key: key.parse().map_err(|_| bad("keys"))?,
            value: value.parse().map_err(|_| bad("values"))?,
        }),
    }
}
