//! The interface of everything that answers requests: a router, a session that asks the nodes itself, a router's client, or
//! a test's fake.

use crate::{
    AggregateAnswer, AggregateQuery, BatchAnswer, BatchKeys, BatchStream, ComputeAnswer, ComputeQuery,
    GraphQuery, QueryAnswer, QueryError, QueryOptions, Question, Reply, Request, StoreShape, WriteOutcome,
};
use futures::{FutureExt, future::BoxFuture};
use kith_schema::live::Write;
use kith_schema::{Schema, SchemaId};
use kith_wire::v1;
use std::sync::Arc;

/// Takes the answer out of a reply of kind `$kind`. For a reply of another kind, the error is the name of that kind.
macro_rules! only {
    ($kind:path) => {
        |reply| match reply {
            $kind(answer) => Ok(answer),
            other => Err(<&'static str>::from(other)),
        }
    };
}

/// Answers requests. An implementation provides only [`Service::call`] and [`Service::stream`]. The other methods copy
/// their arguments into a [`Request`], and take the answer out of its [`Reply`].
pub trait Service: Send + Sync + 'static {
    /// Answers a request as a whole.
    ///
    /// # Errors
    /// Without [`QueryOptions::partial`], a key or partition without a proven answer fails the request. With it, the answer
    /// says what is missing. An invalid request is refused before any node is asked.
    fn call(&self, request: Arc<Request>) -> BoxFuture<'_, Result<Reply, QueryError>>;

    /// Answers [`Question::Values`], and [`Question::Compute`] without `top_k`, piece by piece as answers arrive. The last
    /// item is a footer that accounts for every key.
    ///
    /// # Errors
    /// Those of [`Service::call`], as the last item; with [`QueryOptions::partial`] only if nothing was answered.
    /// [`QueryError::BadRequest`] for any other question.
    fn stream(&self, request: Arc<Request>) -> BatchStream<'_>;

    /// Answers a query of a graph.
    ///
    /// # Errors
    /// Those of [`Service::call`].
    fn query<'a>(
        &'a self,
        graph: &str,
        query: &GraphQuery,
        options: &QueryOptions,
    ) -> BoxFuture<'a, Result<QueryAnswer, QueryError>> {
        let question = Question::Graph { graph: graph.to_owned(), query: query.clone() };
        ask(self, question, options, only!(Reply::Graph))
    }

    /// Returns the plan of a query of a graph.
    ///
    /// # Errors
    /// Those of [`Service::call`].
    fn explain<'a>(
        &'a self,
        graph: &str,
        query: &GraphQuery,
        options: &QueryOptions,
    ) -> BoxFuture<'a, Result<v1::ExplainReply, QueryError>> {
        let question = Question::Explain { graph: graph.to_owned(), query: query.clone() };
        ask(self, question, options, only!(Reply::Plan))
    }

    /// Writes to a live graph, at most once.
    ///
    /// # Errors
    /// [`QueryError::OutcomeUnknown`] if it is unknown whether the write was carried out. After any other error, nothing
    /// was written.
    fn write<'a>(
        &'a self,
        graph: &str,
        write: &Write,
        options: &QueryOptions,
    ) -> BoxFuture<'a, Result<WriteOutcome, QueryError>> {
        let question = Question::Write { graph: graph.to_owned(), write: write.clone() };
        ask(self, question, options, only!(Reply::Written))
    }

    /// Reads the values of `keys`, all from one version. Returns one record per key in the order of the keys, repeated keys
    /// included.
    ///
    /// # Errors
    /// Those of [`Service::call`].
    fn multi_get<'a>(
        &'a self,
        store: &str,
        keys: &BatchKeys,
        options: &QueryOptions,
    ) -> BoxFuture<'a, Result<BatchAnswer, QueryError>> {
        let question = Question::Values { store: store.to_owned(), keys: keys.clone() };
        ask(self, question, options, only!(Reply::Values))
    }

    /// Reads values like [`Service::multi_get`], as a stream.
    fn multi_get_stream<'a>(
        &'a self,
        store: &str,
        keys: &BatchKeys,
        options: &QueryOptions,
    ) -> BatchStream<'a> {
        let question = Question::Values { store: store.to_owned(), keys: keys.clone() };
        self.stream(Arc::new(Request { question, options: options.clone() }))
    }

    /// Runs a plan on the records of `keys`.
    ///
    /// # Errors
    /// Those of [`Service::call`]; [`QueryError::Compute`] and [`QueryError::NotRecords`] if the plan does not fit the
    /// store.
    fn read_compute<'a>(
        &'a self,
        store: &str,
        keys: &BatchKeys,
        query: &ComputeQuery,
        options: &QueryOptions,
    ) -> BoxFuture<'a, Result<ComputeAnswer, QueryError>> {
        let question =
            Question::Compute { store: store.to_owned(), keys: keys.clone(), query: query.clone() };
        ask(self, question, options, only!(Reply::Computed))
    }

    /// Runs a plan without `top_k` like [`Service::read_compute`], as a stream. Pieces name the schema of the results.
    fn read_compute_stream<'a>(
        &'a self,
        store: &str,
        keys: &BatchKeys,
        query: &ComputeQuery,
        options: &QueryOptions,
    ) -> BatchStream<'a> {
        let question =
            Question::Compute { store: store.to_owned(), keys: keys.clone(), query: query.clone() };
        self.stream(Arc::new(Request { question, options: options.clone() }))
    }

    /// Counts the values of a field over the records of `keys`.
    ///
    /// # Errors
    /// Those of [`Service::read_compute`].
    fn read_aggregate<'a>(
        &'a self,
        store: &str,
        keys: &BatchKeys,
        query: &AggregateQuery,
        options: &QueryOptions,
    ) -> BoxFuture<'a, Result<AggregateAnswer, QueryError>> {
        let question =
            Question::Aggregate { store: store.to_owned(), keys: keys.clone(), query: query.clone() };
        ask(self, question, options, only!(Reply::Aggregated))
    }

    /// Returns the types of the store's keys and values.
    ///
    /// # Errors
    /// If there is no such store, or no process answers.
    fn shape<'a>(&'a self, store: &str) -> BoxFuture<'a, Result<StoreShape, QueryError>> {
        let question = Question::Shape { store: store.to_owned() };
        ask(self, question, &QueryOptions::default(), only!(Reply::Shape))
    }

    /// Returns the schema of the records of a version; `id` is the id that an answer of that version names. A schema that
    /// is already known costs no request.
    ///
    /// # Errors
    /// [`QueryError::SchemaUnavailable`] if no process that answers has the schema.
    fn schema<'a>(
        &'a self,
        store: &str,
        version: u64,
        id: SchemaId,
    ) -> BoxFuture<'a, Result<Schema, QueryError>> {
        let question = Question::Schema { store: store.to_owned(), version, id };
        ask(self, question, &QueryOptions::default(), only!(Reply::Schema))
    }
}

/// Asks, and takes the answer out of the reply. A reply of another kind is a bug of the service.
fn ask<'a, T: 'static>(
    service: &'a (impl Service + ?Sized),
    question: Question,
    options: &QueryOptions,
    take: impl FnOnce(Reply) -> Result<T, &'static str> + Send + 'a,
) -> BoxFuture<'a, Result<T, QueryError>> {
    let request = Arc::new(Request { question, options: options.clone() });
    let asked: &'static str = (&request.question).into();
    let reply = service.call(request);
    async move {
        take(reply.await?).map_err(|answered| QueryError::Internal {
            detail: format!("a request of kind {asked:?} got a reply of kind {answered:?}"),
        })
    }
    .boxed()
}
