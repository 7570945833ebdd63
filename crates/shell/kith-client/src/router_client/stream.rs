//! Streams through a router.

use super::{RouterClient, StreamRequest, overdue, patience};
use crate::{compute::compute_stream_here, note_mismatches};
use futures::{Stream, StreamExt};
use kith_query::{
    BatchKeys, ComputeAt, Outlet, Proofs, QueryError, QueryOptions, Question, Request,
    convert::{StreamReader, batch_to_wire, compute_to_wire},
    too_slow,
};
use kith_types::ErrorCode;
use kith_wire::v1;
use std::time::{Duration, Instant};
use tonic::Status;

impl RouterClient {
    /// Passes on values or computed results as the router sends them.
    ///
    /// # Errors
    /// Those of [`kith_query::Service::stream`].
    pub(crate) async fn stream_answer(&self, asked: &Request, outlet: &Outlet) -> Result<(), QueryError> {
        let Request { question, options } = asked;
        match question {
            Question::Values { store, keys } => {
                keys.check()?;
                // Items that were handed on cannot be taken back, so the router must check values before it sends them.
                let everywhere = QueryOptions { proofs: Proofs::Everywhere, ..options.clone() };
                let request = StreamRequest::Values(batch_to_wire(store, keys, &everywhere));
                self.stream_into(request, keys, options, outlet).await
            }
            Question::Compute { store, keys, query } => {
                keys.check()?;
                query.check_stream()?;
                if query.at == ComputeAt::Client {
                    return outlet
                        .put_all(compute_stream_here(self, store, keys, &query.plan, options))
                        .await;
                }
                let request = StreamRequest::Compute(compute_to_wire(store, keys, &query.plan, options));
                self.stream_into(request, keys, options, outlet).await
            }
            other => other.check_stream(),
        }
    }

    async fn stream_into(
        &self,
        request: StreamRequest,
        keys: &BatchKeys,
        options: &QueryOptions,
        outlet: &Outlet,
    ) -> Result<(), QueryError> {
        let started = Instant::now();
        let mut reader = match request {
            StreamRequest::Values(_) => StreamReader::proving(keys),
            StreamRequest::Compute(_) => StreamReader::new(keys.len()),
        };
        let read = self.read_messages(request, options, started, &mut reader, outlet).await;
        if 0 < reader.mismatches() {
            note_mismatches(reader.mismatches());
        }
        let error = match read {
            Ok(()) => return Ok(()),
            Err(Ended::Error(error)) => error,
            Err(Ended::Status(status)) => self.error(&status),
        };
        let code = cut_code(&error).filter(|_| options.partial && !reader.is_empty());
        let Some(code) = code else { return Err(error) };
        for item in reader.cut(code, started.elapsed())? {
            outlet.put(item).await;
        }
        Ok(())
    }

    /// Puts all messages up to the footer into `outlet`.
    async fn read_messages(
        &self,
        request: StreamRequest,
        options: &QueryOptions,
        started: Instant,
        reader: &mut StreamReader<'_>,
        outlet: &Outlet,
    ) -> Result<(), Ended> {
        let patience = patience(options);
        let asked = tokio::time::timeout(patience, self.messages(request, options)).await;
        let mut messages = asked.unwrap_or_else(|_| Err(overdue(patience)))?;
        while !reader.is_over() {
            let message = next(&mut messages, started, patience).await?;
            for item in reader.items(message).map_err(Ended::Error)? {
                outlet.put(item).await;
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

/// The next message, if it arrives before `patience` after `started` has passed.
async fn next(
    messages: &mut (impl Stream<Item = Result<v1::MultiGetPiece, Status>> + Unpin),
    started: Instant,
    patience: Duration,
) -> Result<v1::MultiGetPiece, Ended> {
    match tokio::time::timeout_at((started + patience).into(), messages.next()).await {
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
