//! Batch reads of a session: one fan-out, every key accounted for (architecture D8).

use crate::Session;
use futures::{FutureExt, future::BoxFuture};
use kith_api::{
    AggregateAnswer, AggregateQuery, BatchAnswer, BatchKeys, BatchStream, ComputeAnswer, ComputeQuery,
    QueryError, QueryOptions, StoreService, StoreShape,
};
use kith_schema::{Schema, SchemaId};
use kith_wire::v1;

/// Counts values that came with a proof that does not hold.
pub(crate) fn note_mismatches(values: u64) {
    metrics::counter!("kith_client_mismatched_values_total").increment(values);
}

impl StoreService for Session {
    fn multi_get<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<BatchAnswer, QueryError>> {
        self.read(store, keys, options).boxed()
    }

    fn multi_get_stream<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        options: &'a QueryOptions,
    ) -> BatchStream<'a> {
        self.stream(store, keys, options)
    }

    fn read_compute<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a ComputeQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<ComputeAnswer, QueryError>> {
        self.computed(store, keys, query, options).boxed()
    }

    fn read_compute_stream<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a ComputeQuery,
        options: &'a QueryOptions,
    ) -> BatchStream<'a> {
        self.computed_stream(store, keys, query, options)
    }

    fn read_aggregate<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a AggregateQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<AggregateAnswer, QueryError>> {
        self.aggregated(store, keys, query, options).boxed()
    }

    fn shape<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<StoreShape, QueryError>> {
        let topology = self.topology();
        let shape = topology.store(store).map(|store| StoreShape { key: store.key, value: store.value });
        futures::future::ready(shape).boxed()
    }

    fn schema<'a>(
        &'a self,
        store: &'a str,
        version: u64,
        id: SchemaId,
    ) -> BoxFuture<'a, Result<Schema, QueryError>> {
        let request = v1::SchemaRequest { store: store.to_owned(), version, schema: id.to_string() };
        self.schemas().get(store, version, id, self.fetch_schema(request)).boxed()
    }
}

impl Session {
    /// Refuses a batch that is larger than this session reads, before anything is asked.
    ///
    /// # Errors
    /// [`QueryError::BatchTooLarge`].
    pub fn check_batch(&self, keys: &BatchKeys) -> Result<(), QueryError> {
        // First, as it is the lower bound: who keeps to the other is refused again.
        keys.check_count(self.settings().keys_max)?;
        keys.check()
    }

    /// Asks one node after the other: every replica of any partition has the whole manifest.
    async fn fetch_schema(&self, request: v1::SchemaRequest) -> Result<String, QueryError> {
        let table = std::sync::Arc::clone(&self.topology().table);
        let nodes = table.nodes().iter().filter(|node| !node.address.is_empty());
        let (up, down): (Vec<_>, Vec<_>) = nodes.partition(|node| self.executor().fleet().is_up(node.id));
        let mut last = "no node is known".to_owned();
        for node in up.into_iter().chain(down) {
            match crate::inspect::Inspector::new(&self.settings().dialer, &node.address)?
                .schema(request.clone())
                .await
            {
                Ok(schema) => return Ok(schema),
                // Every node would say so.
                Err(error) if error.is_denied() => return Err(error),
                Err(error) => last = format!("node {}: {error}", node.id),
            }
        }
        let v1::SchemaRequest { store, version, .. } = request;
        Err(QueryError::SchemaUnavailable { store, version, reason: last })
    }
}
