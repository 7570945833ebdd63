//! Streams through a router.

use super::{RouterClient, StreamRequest, overdue, timeout};
use crate::{compute::compute_stream_here, note_mismatches};
use futures::{Stream, StreamExt};
use kith_query::{
    ComputeAt, Outlet, Proofs, QueryError, QueryOptions, Question, Request,
    convert::{StreamReader, batch_to_wire, compute_to_wire},
    too_slow,
};
use kith_types::ErrorCode;
use kith_wire::v1;
use std::time::{Duration, Instant};
use tonic::Status;

/// Passes on values or computed results as the router sends them.
///
/// # Errors
/// Those of [`kith_query::Service::stream`].
pub(super) async fn stream_answer(
    client: &RouterClient,
    request: &Request,
    outlet: &Outlet,
) -> Result<(), QueryError> {
    let Request { question, options } = request;
    match question {
        Question::Values { store, keys } => {
            keys.check()?;
            // Items that were handed on cannot be taken back, so the router must check values before it sends them.
            let everywhere = QueryOptions { proofs: Proofs::Everywhere, ..options.clone() };
            let request = StreamRequest::Values(batch_to_wire(store, keys, &everywhere));
            let reader = StreamReader::proving(keys);
            RecordStream { client, options, outlet, started: Instant::now(), reader }.pass_on(request).await
        }
        Question::Compute { store, keys, query } => {
            keys.check()?;
            query.check_stream()?;
            if query.at == ComputeAt::Client {
                return outlet.put_all(compute_stream_here(client, store, keys, &query.plan, options)).await;
            }
            let request = StreamRequest::Compute(compute_to_wire(store, keys, &query.plan, options));
            let reader = StreamReader::new(keys.len());
            RecordStream { client, options, outlet, started: Instant::now(), reader }.pass_on(request).await
        }
        other => other.check_stream(),
    }
}

/// A stream of records under way.
struct RecordStream<'a> {
    client: &'a RouterClient,
    options: &'a QueryOptions,
    outlet: &'a Outlet,
    started: Instant,
    reader: StreamReader<'a>,
}

impl RecordStream<'_> {
    /// Passes on everything that the router sends. If the stream is cut and the caller accepts partial answers, ends it
    /// with a footer that says so.
    async fn pass_on(mut self, request: StreamRequest) -> Result<(), QueryError> {
        let read = self.read_messages(request).await;
        if 0 < self.reader.mismatches() {
            note_mismatches(self.reader.mismatches());
        }
        let error = match read {
            Ok(()) => return Ok(()),
            Err(Ended::Error(error)) => error,
            Err(Ended::Status(status)) => self.client.error(&status),
        };
        let code = cut_code(&error).filter(|_| self.options.partial && !self.reader.is_empty());
        let Some(code) = code else { return Err(error) };
        for item in self.reader.cut(code, self.started.elapsed())? {
            self.outlet.put(item).await;
        }
        Ok(())
    }

    /// Puts all messages up to the footer into the outlet.
    async fn read_messages(&mut self, request: StreamRequest) -> Result<(), Ended> {
        let timeout = timeout(self.options);
        let opened = tokio::time::timeout(timeout, self.client.messages(request, self.options)).await;
        let mut messages = opened.unwrap_or_else(|_| Err(overdue(timeout)))?;
        while !self.reader.is_over() {
            let message = next(&mut messages, self.started, timeout).await?;
            for item in self.reader.items(message).map_err(Ended::Error)? {
                self.outlet.put(item).await;
            }
        }
        Ok(())
    }
}

/// The reason why a stream ended before its footer.
enum Ended {
    Status(Status),
    Error(QueryError),
}

impl From<Status> for Ended {
    fn from(status: Status) -> Self {
        Ended::Status(status)
    }
}

/// The next message, if it arrives before `timeout` after `started` has passed.
async fn next(
    messages: &mut (impl Stream<Item = Result<v1::MultiGetPiece, Status>> + Unpin),
    started: Instant,
    timeout: Duration,
) -> Result<v1::MultiGetPiece, Ended> {
    match tokio::time::timeout_at((started + timeout).into(), messages.next()).await {
        Ok(Some(message)) => Ok(message?),
        Ok(None) => Err(Status::unavailable("the stream was cut before its footer").into()),
        Err(_) => Err(too_slow().into()),
    }
}

/// The code for the keys that are missing from a stream that was cut; `None` if the stream was refused. Errors of Kith
/// always have a help text, so an error without one comes from the transport.
fn cut_code(error: &QueryError) -> Option<ErrorCode> {
    match error {
        QueryError::Unreachable { .. } => Some(ErrorCode::Unreachable),
        QueryError::Remote { help, .. } if help.is_empty() => Some(ErrorCode::Unreachable),
        error if error.code() == ErrorCode::DeadlineExceeded => Some(ErrorCode::DeadlineExceeded),
        _ => None,
    }
}
