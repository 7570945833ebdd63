//! Fails over between routers: if a router goes away while it has a request, an idempotent request is sent to the next
//! router, once. So is a write that has a name or was not sent.
//!
//! This concerns only the hop to the router. Failures of nodes are handled where plans are carried out
//! (`kith-session`).

use crate::{RouterClient, TransportKind};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use kith_net::security::Dialer;
use kith_query::{AfterAttempt, FailedAttempt, WriteAttempts};
use kith_query::{BatchStream, Outlet, QueryError, QueryOptions, Question, Reply, Request, Service, driven};
use kith_types::ErrorCode;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Mutex;

/// A list of routers, one of which is used.
pub struct Failover {
    /// The addresses, in the given order.
    addrs: Vec<String>,
    /// The transport of queries.
    transport: TransportKind,
    dialer: Dialer,
    /// The router that is in use. A query that found it gone holds the lock while it connects to the next one; the others
    /// wait instead of connecting too.
    current: Mutex<RouterClient>,
}

impl Failover {
    /// Connects without TLS to the first router that can be reached.
    ///
    /// # Errors
    /// Those of [`Failover::connect_by`].
    pub async fn connect(addrs: Vec<String>, transport: TransportKind) -> Result<Self, QueryError> {
        Self::connect_by(addrs, transport, Dialer::default()).await
    }

    /// Connects to the first router that can be reached and accepts this process.
    ///
    /// # Errors
    /// [`QueryError::Unreachable`] with the last reason if none can be reached; [`QueryError::Tls`]; the router's error if
    /// it does not accept the identity of this process.
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
            Err(error @ (QueryError::Unreachable { .. } | QueryError::OutcomeUnknown { .. })) => error,
            other => return other,
        };
        // Connects after a request that is not repeated too, because the next request must not go to the same router.
        let Some(next) = self.instead_of(&addr).await else { return Err(lost) };
        if !is_repeated(&request.question, &lost) {
            return Err(lost);
        }
        let Some(repeat) = left(&request, started.elapsed()) else { return Err(lost) };
        let addr = next.addr().to_owned();
        let answer = next.call(repeat).await;
        answer.map_err(|error| outcome(&request.question, lost, named(error, &addr)))
    }

    /// Replaces a router that goes away before its first item. After that, the items that were handed on cannot be taken
    /// back.
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

    /// Connects to another router than the one that is gone; `None` if none can be reached.
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

/// Whether a request whose router was lost is sent to the next one.
fn is_repeated(question: &Question, lost: &QueryError) -> bool {
    match question {
        Question::Write { write, .. } => {
            let mut attempts = WriteAttempts::new(write.write_id.is_some());
            attempts.fail(failed_attempt(lost)) == AfterAttempt::SendAgain
        }
        question => question.is_idempotent(),
    }
}

/// The error of a request that was sent to a second router. `lost` is the error of the first attempt, and `error` that of the
/// second.
fn outcome(question: &Question, lost: QueryError, error: QueryError) -> QueryError {
    let Question::Write { write, .. } = question else { return error };
    let mut attempts = WriteAttempts::new(write.write_id.is_some());
    let (first, second) = (failed_attempt(&lost), failed_attempt(&error));
    attempts.fail(first);
    match attempts.fail(second) {
        // The second attempt wrote nothing, and says nothing about the first one.
        AfterAttempt::SendAgain if first.is_unknown() && !second.is_unknown() => lost,
        _ => error,
    }
}

fn failed_attempt(error: &QueryError) -> FailedAttempt {
    match error {
        QueryError::Unreachable { .. } => FailedAttempt::Unsent(error.code()),
        QueryError::OutcomeUnknown { .. } => FailedAttempt::Lost,
        answer => FailedAttempt::Refused(answer.code()),
    }
}

/// The end of the stream of one router.
enum Forwarded {
    Done,
    /// The router is gone, and no item came from it.
    Lost(QueryError),
    Ended(QueryError),
}

/// Passes on the items of one router.
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

/// The other addresses, beginning with the one after `gone`.
fn after(addrs: &[String], gone: &str) -> Vec<String> {
    let next = addrs.iter().position(|addr| addr == gone).map_or(0, |index| index + 1);
    let (before, after) = addrs.split_at(next);
    after.iter().chain(before).filter(|addr| *addr != gone).cloned().collect()
}

/// The request with the rest of its deadline; `None` if the deadline has passed.
fn left(request: &Arc<Request>, elapsed: Duration) -> Option<Arc<Request>> {
    let deadline = request.options.left(elapsed)?;
    let options = QueryOptions { deadline, ..request.options.clone() };
    Some(Arc::new(Request { question: request.question.clone(), options }))
}

/// Turns an error of the transport into [`QueryError::Unreachable`]: the router is gone. Errors of Kith always have a help
/// text, so an error without one comes from the transport.
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
    use kith_schema::live::{Conditions, Mutation, Write};

    #[test]
    fn the_next_router_is_the_one_named_after() {
        let addrs = ["a:1", "b:1", "c:1"].map(str::to_owned);
        assert_eq!(after(&addrs, "a:1"), ["b:1", "c:1"]);
        assert_eq!(after(&addrs, "b:1"), ["c:1", "a:1"]);
        assert_eq!(after(&addrs, "c:1"), ["a:1", "b:1"]);
        assert!(after(&addrs[..1], "a:1").is_empty(), "a router alone has no next");
    }

    fn write(write_id: Option<&str>) -> Question {
        let mutation = Mutation::DeleteAssociation { id1: 1, kind: "likes".to_owned(), id2: 2 };
        let write_id = write_id.map(|name| name.parse().unwrap());
        let write = Write { mutation, conditions: Conditions::default(), write_id };
        Question::Write { graph: "social".to_owned(), write }
    }

    #[test]
    fn a_write_is_repeated_if_that_cannot_carry_it_out_twice() {
        let unsent = QueryError::Unreachable { addr: "a:1".to_owned(), reason: "refused".to_owned() };
        let lost = QueryError::OutcomeUnknown { detail: "no answer".to_owned() };
        assert!(is_repeated(&write(None), &unsent) && is_repeated(&write(Some("w")), &unsent));
        assert!(!is_repeated(&write(None), &lost) && is_repeated(&write(Some("w")), &lost));
        let shape = Question::Shape { store: "s".to_owned() };
        assert!(is_repeated(&shape, &unsent));
    }

    #[test]
    fn a_write_that_may_have_been_carried_out_never_fails_as_if_it_had_not() {
        let unsent = QueryError::Unreachable { addr: "a:1".to_owned(), reason: "refused".to_owned() };
        let lost = QueryError::OutcomeUnknown { detail: "no answer".to_owned() };
        let busy = QueryError::Overloaded { detail: "busy".to_owned() };
        let decided = QueryError::WriteIdTaken { write_id: "w".to_owned() };
        let named = write(Some("w"));
        assert_eq!(outcome(&named, lost.clone(), busy.clone()), lost);
        assert_eq!(outcome(&named, lost.clone(), unsent.clone()), lost);
        assert_eq!(outcome(&named, lost, decided.clone()), decided);
        assert_eq!(outcome(&named, unsent, busy.clone()), busy);
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
