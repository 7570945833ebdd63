//! A session as a [`Service`]: it answers every request from the nodes.

use crate::Session;
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
                    Reply::Gremlin(self.traverse(graph, query, options).await?)
                }
                Question::Write { graph, write } => Reply::Written(self.write(graph, write, options).await?),
                Question::Values { store, keys } => Reply::Values(self.read(store, keys, options).await?),
                Question::Compute { store, keys, query } => {
                    Reply::Computed(self.computed(store, keys, query, options).await?)
                }
                Question::Aggregate { store, keys, query } => {
                    Reply::Aggregated(self.aggregated(store, keys, query, options).await?)
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
        driven(async move |outlet: Outlet| self.stream_answer(&request, &outlet).await)
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
