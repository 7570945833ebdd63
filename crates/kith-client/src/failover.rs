//! A router that goes away while a request is with it: the request is sent to the next router, once, if it is idempotent.
//!
//! This is about the hop to the router alone; what happens to requests of nodes is decided where plans are carried
//! out (`kith_routing::execution`).

use crate::{RouterClient, TransportKind};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use kith_api::{BatchStream, Outlet, QueryError, QueryOptions, Reply, Request, Service, driven};
use kith_net::security::Dialer;
use kith_types::ErrorCode;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
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

    async fn ask(&self, request: Arc<Request>) -> Result<Reply, QueryError> {
        let started = Instant::now();
        let client = self.current.lock().await.clone();
        let addr = client.addr().to_owned();
        let lost = match client.call(Arc::clone(&request)).await.map_err(|error| named(error, &addr)) {
            Err(error @ QueryError::Unreachable { .. }) => error,
            other => return other,
        };
        // Also after a request that is not repeated: the next one must not go to the same router.
        let Some(next) = self.instead_of(&addr).await else { return Err(lost) };
        if !request.question.is_idempotent() {
            return Err(lost);
        }
        let Some(request) = left(&request, started.elapsed()) else { return Err(lost) };
        let addr = next.addr().to_owned();
        next.call(request).await.map_err(|error| named(error, &addr))
    }

    /// A router that goes away before anything came is replaced; after that, what came cannot be taken back.
    async fn stream_into(&self, request: Arc<Request>, outlet: Outlet) -> Result<(), QueryError> {
        let started = Instant::now();
        let client = self.current.lock().await.clone();
        let lost = match forward(&client, Arc::clone(&request), &outlet).await {
            Forwarded::Done => return Ok(()),
            Forwarded::Lost(error) if request.question.is_idempotent() => error,
            Forwarded::Ended(error) | Forwarded::Lost(error) => return Err(error),
        };
        let Some(next) = self.instead_of(client.addr()).await else { return Err(lost) };
        let Some(request) = left(&request, started.elapsed()) else { return Err(lost) };
        match forward(&next, request, &outlet).await {
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

impl Service for Failover {
    fn call(&self, request: Arc<Request>) -> BoxFuture<'_, Result<Reply, QueryError>> {
        self.ask(request).boxed()
    }

    fn stream(&self, request: Arc<Request>) -> BatchStream<'_> {
        driven(move |outlet| self.stream_into(request, outlet))
    }
}

/// How the stream of one router ended.
enum Forwarded {
    Done,
    /// The router is gone, and nothing came from it.
    Lost(QueryError),
    Ended(QueryError),
}

/// Hands on what one router answers.
async fn forward(client: &RouterClient, request: Arc<Request>, outlet: &Outlet) -> Forwarded {
    let mut items = client.stream(request);
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

/// The others, the one named after `gone` first.
fn after(addrs: &[String], gone: &str) -> Vec<String> {
    let next = addrs.iter().position(|addr| addr == gone).map_or(0, |place| place + 1);
    let (before, after) = addrs.split_at(next);
    after.iter().chain(before).filter(|addr| *addr != gone).cloned().collect()
}

/// The request with what is left of its deadline; `None` if nothing is.
fn left(request: &Arc<Request>, elapsed: Duration) -> Option<Arc<Request>> {
    let deadline = request.options.left(elapsed)?;
    let options = QueryOptions { deadline, ..request.options.clone() };
    Some(Arc::new(Request { question: request.question.clone(), options }))
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
    use kith_api::Question;

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
        let left_of = |deadline: Option<u64>, elapsed| {
            let options = QueryOptions { deadline: deadline.map(millis), ..QueryOptions::default() };
            let question = Question::Shape { store: "s".to_owned() };
            left(&Arc::new(Request { question, options }), millis(elapsed)).map(|left| left.options.deadline)
        };
        assert_eq!(left_of(Some(300), 100), Some(Some(millis(200))));
        assert_eq!(left_of(Some(300), 300), None);
        assert_eq!(left_of(None, 300), Some(None));
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
