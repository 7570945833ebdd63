//! The time at which the caller of a traversal stops waiting.

use crate::{caller::gone, session::Run};
use kith_query::QueryError;
use kith_types::ErrorCode;
use std::{
    future::poll_fn,
    task::Poll,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// The time at which the caller stops waiting, and whether it has left.
#[derive(Clone, Debug)]
pub(super) struct Deadline {
    at: Instant,
    allowed_ms: u64,
    gone: CancellationToken,
}

impl Deadline {
    pub fn of(run: &Run<'_>) -> Self {
        Self { at: run.deadline(), allowed_ms: run.allowed_ms(), gone: gone() }
    }

    /// Returns the result of the work, unless it takes too long or the caller leaves. Work that has sent a write is not
    /// abandoned before the outcome of the write is known.
    pub async fn keep<T>(
        self,
        work: impl Future<Output = T>,
        is_writing: impl Fn() -> bool,
    ) -> Result<T, QueryError> {
        let mut work = std::pin::pin!(work);
        let error = tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = tokio::time::sleep_until(self.at.into()) => self.passed(),
            () = self.gone.cancelled() => left(),
        };
        let settled = poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if is_writing() => Poll::Pending,
            Poll::Pending => Poll::Ready(None),
        });
        if is_writing()
            && let Some(done) = settled.await
        {
            return Ok(done);
        }
        Err(error)
    }

    /// The time that an evaluation may spend on waiting for a caller who is slow to take results. It is a small part of the time
    /// left, so that the slowness of a caller does not make a traversal miss its deadline.
    pub fn patience(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now()) / 5
    }

    /// The rest of the time.
    ///
    /// # Errors
    /// It is over, or the caller has left.
    pub fn left(&self) -> Result<Duration, QueryError> {
        let rest = self.at.saturating_duration_since(Instant::now());
        match (self.gone.is_cancelled(), rest.is_zero()) {
            (true, _) => Err(left()),
            (false, true) => Err(self.passed()),
            (false, false) => Ok(rest),
        }
    }

    /// The error that the deadline has passed.
    fn passed(&self) -> QueryError {
        QueryError::DeadlineExceeded { deadline_ms: self.allowed_ms }
    }
}

/// The error that the caller has left.
fn left() -> QueryError {
    QueryError::Remote {
        code: ErrorCode::Cancelled,
        message: "the caller no longer waits for the results".to_owned(),
        help: String::new(),
    }
}
