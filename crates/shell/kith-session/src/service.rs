//! A session as a [`Service`]: it answers every request from the nodes.

use crate::{
    Session, gremlin,
    session::LiveWrite,
    stream::stream_answer,
    values::{BatchRead, WantedForm},
};
use futures::{FutureExt, future::BoxFuture};
use kith_query::{
    BatchKeys, BatchStream, Outlet, QueryError, Question, Reply, Request, Service, StoreShape, driven,
};
use kith_wire::v1;
use std::sync::Arc;

impl Service for Session {
    fn call(&self, request: Arc<Request>) -> BoxFuture<'_, Result<Reply, QueryError>> {
        async move {
            let Request { question, options } = &*request;
            if let Question::Graph { graph, .. }
            | Question::Explain { graph, .. }
            | Question::Gremlin { graph, .. }
            | Question::Write { graph, .. } = question
            {
                self.ask_for_types(graph, options).await;
            }
            Ok(match question {
                Question::Graph { graph, query } => Reply::Graph(self.answer(graph, query, options).await?),
                Question::Explain { graph, query } => {
                    Reply::Plan(crate::explain::explain(self, graph, query, options).await?)
                }
                Question::Gremlin { graph, query } => {
                    Reply::Gremlin(gremlin::traverse(self, graph, query, options).await?)
                }
                Question::Write { graph, write } => {
                    Reply::Written(LiveWrite::new(self, graph, write, options).carry_out().await?)
                }
                Question::Values { store, keys } => {
                    let read = BatchRead { session: self, store, keys, wanted: WantedForm::Values, options };
                    Reply::Values(read.values().await?)
                }
                Question::Compute { store, keys, query } => {
                    let wanted = WantedForm::Compute(query);
                    let read = BatchRead { session: self, store, keys, wanted, options };
                    Reply::Computed(read.computed().await?)
                }
                Question::Aggregate { store, keys, query } => {
                    let wanted = WantedForm::Aggregate(query);
                    let read = BatchRead { session: self, store, keys, wanted, options };
                    Reply::Aggregated(read.aggregated().await?)
                }
                Question::Shape { store } => {
                    let topology = self.topology();
                    let known = topology.store(store)?;
                    Reply::Shape(StoreShape { key: known.key, value: known.value })
                }
                Question::Schema { store, version, id } => {
                    let request =
                        v1::SchemaRequest { store: store.clone(), version: *version, schema: id.to_string() };
                    let fetched = self.fetch_schema(request);
                    Reply::Schema(self.schemas().get(store, *version, *id, fetched).await?)
                }
            })
        }
        .boxed()
    }

    fn stream(&self, request: Arc<Request>) -> BatchStream<'_> {
        driven(async move |outlet: Outlet| stream_answer(self, &request, &outlet).await)
    }
}

impl Session {
    /// Refuses a batch that is larger than this session reads, before any node is asked.
    ///
    /// # Errors
    /// [`QueryError::BatchTooLarge`].
    pub fn check_batch(&self, keys: &BatchKeys) -> Result<(), QueryError> {
        // The session's limit is checked first because it is the lower one: a caller who kept to the other limit would be
        // refused again.
        keys.check_count(self.settings().keys_max)?;
        keys.check()
    }

    /// Asks one node after the other. Every replica of every partition has the whole manifest.
    async fn fetch_schema(&self, request: v1::SchemaRequest) -> Result<String, QueryError> {
        let table = Arc::clone(&self.topology().table);
        let nodes = table.nodes().iter().filter(|node| !node.address.is_empty());
        let (up, down): (Vec<_>, Vec<_>) = nodes.partition(|node| self.executor().fleet().is_up(node.id));
        let mut last = "no node is known".to_owned();
        for node in up.into_iter().chain(down) {
            match kith_client::Inspector::new(&self.settings().dialer, &node.address)?
                .schema(request.clone())
                .await
            {
                Ok(schema) => return Ok(schema),
                // Every node would refuse it.
                Err(error) if error.is_denied() => return Err(error),
                Err(error) => last = format!("node {}: {error}", node.id),
            }
        }
        let v1::SchemaRequest { store, version, .. } = request;
        Err(QueryError::SchemaUnavailable { store, version, reason: last })
    }
}
