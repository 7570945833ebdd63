//! A router that goes away while a query is with it: the query is asked again at the next router, once.
//!
//! This is about the hop to the router alone; what happens to requests of nodes is decided where plans are carried
//! out (`kith_routing::execution`). Queries only read, so that asking one twice changes nothing.

use crate::{RouterClient, TransportKind};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use kith_api::{
    AggregateAnswer, AggregateQuery, Answered, BatchAnswer, BatchKeys, BatchStream, ComputeAnswer,
    ComputeQuery, GraphService, Outlet, QueryError, QueryOptions, StoreService, StoreShape, driven,
};
use kith_net::security::Dialer;
use kith_ops::GraphQuery;
use kith_schema::{Schema, SchemaId};
use kith_types::ErrorCode;
use kith_wire::v1;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The routers that were named, one of which answers.
pub struct Failover {
    /// As named, in order.
    addrs: Vec<String>,
    /// What queries travel in.
    transport: TransportKind,
    dialer: Dialer,
    /// Whom queries go to. Held while a query that found it gone connects to the next: the others wait for that
    /// instead of connecting too.
    current: Mutex<RouterClient>,
}

impl Failover {
    /// Connects in the clear to the first router that can be reached.
    ///
    /// # Errors
    /// As [`Failover::connect_by`].
    pub async fn connect(addrs: Vec<String>, transport: TransportKind) -> Result<Self, QueryError> {
        Self::connect_by(addrs, transport, Dialer::default()).await
    }

    /// Connects to the first router that can be reached and answers this process.
    ///
    /// # Errors
    /// [`QueryError::Unreachable`] with the last reason if none can; [`QueryError::Tls`], and what the router says of who this
    /// process is.
    pub async fn connect_by(
        addrs: Vec<String>,
        transport: TransportKind,
        dialer: Dialer,
    ) -> Result<Self, QueryError> {
        let current = RouterClient::connect_by(&addrs, &dialer).await?.with_transport(transport);
        Ok(Self { addrs, transport, dialer, current: Mutex::new(current) })
    }

    async fn ask<'a, T>(
        &self,
        options: &QueryOptions,
        call: impl Fn(RouterClient, QueryOptions) -> BoxFuture<'a, Result<T, QueryError>>,
    ) -> Result<T, QueryError> {
        let started = Instant::now();
        let client = self.current.lock().await.clone();
        let addr = client.addr().to_owned();
        let lost = match call(client, options.clone()).await.map_err(|error| named(error, &addr)) {
            Err(error @ QueryError::Unreachable { .. }) => error,
            other => return other,
        };
        let Some(next) = self.instead_of(&addr).await else { return Err(lost) };
        match left(options, started.elapsed()) {
            Some(options) => {
                let addr = next.addr().to_owned();
                call(next, options).await.map_err(|error| named(error, &addr))
            }
            None => Err(lost),
        }
    }

    /// A router that goes away before anything came is replaced; after that, what came cannot be taken back.
    async fn stream_into(
        &self,
        asked: Asked<'_>,
        options: &QueryOptions,
        outlet: Outlet,
    ) -> Result<(), QueryError> {
        let started = Instant::now();
        let client = self.current.lock().await.clone();
        let lost = match asked.forward(&client, options, &outlet).await {
            Forwarded::Done => return Ok(()),
            Forwarded::Ended(error) => return Err(error),
            Forwarded::Lost(error) => error,
        };
        let (Some(next), Some(options)) =
            (self.instead_of(client.addr()).await, left(options, started.elapsed()))
        else {
            return Err(lost);
        };
        match asked.forward(&next, &options, &outlet).await {
            Forwarded::Done => Ok(()),
            Forwarded::Ended(error) | Forwarded::Lost(error) => Err(error),
        }
    }

    /// Another router than the one that is gone; `None` if none can be reached.
    async fn instead_of(&self, gone: &str) -> Option<RouterClient> {
        let mut current = self.current.lock().await;
        if current.addr() == gone {
            let next = RouterClient::connect_by(&after(&self.addrs, gone), &self.dialer).await.ok()?;
            *current = next.with_transport(self.transport);
        }
        Some(current.clone())
    }
}

impl GraphService for Failover {
    fn query<'a>(
        &'a self,
        graph: &'a str,
        query: &'a GraphQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Answered, QueryError>> {
        let call = move |client: RouterClient, options: QueryOptions| {
            async move { client.query(graph, query, &options).await }.boxed()
        };
        self.ask(options, call).boxed()
    }

    fn explain<'a>(
        &'a self,
        graph: &'a str,
        query: &'a GraphQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<v1::ExplainReply, QueryError>> {
        let call = move |client: RouterClient, options: QueryOptions| {
            async move { client.explain(graph, query, &options).await }.boxed()
        };
        self.ask(options, call).boxed()
    }
}

impl StoreService for Failover {
    fn multi_get<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<BatchAnswer, QueryError>> {
        let call = move |client: RouterClient, options: QueryOptions| {
            async move { client.multi_get(store, keys, &options).await }.boxed()
        };
        self.ask(options, call).boxed()
    }

    fn multi_get_stream<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        options: &'a QueryOptions,
    ) -> BatchStream<'a> {
        driven(move |outlet| self.stream_into(Asked { store, keys, query: None }, options, outlet))
    }

    fn read_compute<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a ComputeQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<ComputeAnswer, QueryError>> {
        let call = move |client: RouterClient, options: QueryOptions| {
            async move { client.read_compute(store, keys, query, &options).await }.boxed()
        };
        self.ask(options, call).boxed()
    }

    fn read_compute_stream<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a ComputeQuery,
        options: &'a QueryOptions,
    ) -> BatchStream<'a> {
        driven(move |outlet| self.stream_into(Asked { store, keys, query: Some(query) }, options, outlet))
    }

    fn read_aggregate<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a AggregateQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<AggregateAnswer, QueryError>> {
        let call = move |client: RouterClient, options: QueryOptions| {
            async move { client.read_aggregate(store, keys, query, &options).await }.boxed()
        };
        self.ask(options, call).boxed()
    }

    fn shape<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<StoreShape, QueryError>> {
        async move {
            let call = move |client: RouterClient, _| async move { client.shape(store).await }.boxed();
            self.ask(&QueryOptions::default(), call).await
        }
        .boxed()
    }

    fn schema<'a>(
        &'a self,
        store: &'a str,
        version: u64,
        id: SchemaId,
    ) -> BoxFuture<'a, Result<Schema, QueryError>> {
        async move {
            let call =
                move |client: RouterClient, _| async move { client.schema(store, version, id).await }.boxed();
            self.ask(&QueryOptions::default(), call).await
        }
        .boxed()
    }
}

/// How the stream of one router ended.
enum Forwarded {
    Done,
    /// The router is gone, and nothing came from it.
    Lost(QueryError),
    Ended(QueryError),
}

/// What is answered by a stream: values, or what a computation makes of them.
#[derive(Clone, Copy)]
struct Asked<'a> {
    store: &'a str,
    keys: &'a BatchKeys,
    query: Option<&'a ComputeQuery>,
}

impl Asked<'_> {
    async fn forward(self, client: &RouterClient, options: &QueryOptions, outlet: &Outlet) -> Forwarded {
        let Self { store, keys, query } = self;
        let mut items = match query {
            None => client.multi_get_stream(store, keys, options),
            Some(query) => client.read_compute_stream(store, keys, query, options),
        };
        let mut is_first = true;
        while let Some(item) = items.next().await {
            match item.map_err(|error| named(error, client.addr())) {
                Ok(item) => outlet.put(item).await,
                Err(error @ QueryError::Unreachable { .. }) if is_first => return Forwarded::Lost(error),
                Err(error) => return Forwarded::Ended(error),
            }
            is_first = false;
        }
        Forwarded::Done
    }
}

/// The others, the one named after `gone` first.
fn after(addrs: &[String], gone: &str) -> Vec<String> {
    let next = addrs.iter().position(|addr| addr == gone).map_or(0, |place| place + 1);
    let (before, after) = addrs.split_at(next);
    after.iter().chain(before).filter(|addr| *addr != gone).cloned().collect()
}

/// The options with what is left of the deadline; `None` if nothing is.
pub(crate) fn left(options: &QueryOptions, elapsed: Duration) -> Option<QueryOptions> {
    let deadline = match options.deadline {
        Some(deadline) => Some(deadline.checked_sub(elapsed).filter(|left| !left.is_zero())?),
        None => None,
    };
    Some(QueryOptions { deadline, ..options.clone() })
}

/// A connection that broke under a query is a router that is gone. Every error of Kith's own says what to do; one
/// that does not was made up by the transport.
fn named(error: QueryError, addr: &str) -> QueryError {
    match error {
        QueryError::Remote {
            code: ErrorCode::Internal | ErrorCode::Cancelled | ErrorCode::Unavailable,
            message,
            help,
            ..
        } if help.is_empty() => QueryError::Unreachable { addr: addr.to_owned(), reason: message },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_router_is_the_one_named_after() {
        let addrs = ["a:1", "b:1", "c:1"].map(str::to_owned);
        assert_eq!(after(&addrs, "a:1"), ["b:1", "c:1"]);
        assert_eq!(after(&addrs, "b:1"), ["c:1", "a:1"]);
        assert_eq!(after(&addrs, "c:1"), ["a:1", "b:1"]);
        assert!(after(&addrs[..1], "a:1").is_empty(), "a router alone has no next");
    }

    #[test]
    fn a_second_try_gets_what_is_left_of_the_deadline() {
        let millis = Duration::from_millis;
        let options = QueryOptions { deadline: Some(millis(300)), ..QueryOptions::default() };
        assert_eq!(left(&options, millis(100)).map(|left| left.deadline), Some(Some(millis(200))));
        assert!(left(&options, millis(300)).is_none());
        let patient = left(&QueryOptions::default(), millis(300)).map(|left| left.deadline);
        assert_eq!(patient, Some(None));
    }

    #[test]
    fn only_what_the_transport_made_up_is_a_lost_router() {
        let remote = |code: ErrorCode, help: &str| QueryError::Remote {
            code,
            message: "broken pipe".to_owned(),
            help: help.to_owned(),
        };
        let lost = QueryError::Unreachable { addr: "a:1".to_owned(), reason: "broken pipe".to_owned() };
        assert_eq!(named(remote(ErrorCode::Internal, ""), "a:1"), lost);
        for kept in [
            remote(ErrorCode::Internal, "report it"),
            remote(ErrorCode::Overloaded, ""),
            remote(ErrorCode::UnknownGraph, ""),
        ] {
            assert_eq!(named(kept.clone(), "a:1"), kept);
        }
    }
}
