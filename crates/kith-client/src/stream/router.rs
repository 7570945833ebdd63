//! Streams through a router.

use super::compute_stream_here;
use crate::store::note_mismatches;
use crate::{
    RouterClient,
    router_client::{StreamRequest, overdue, patience},
};
use futures::{Stream, StreamExt};
use kith_api::{
    BatchKeys, ComputeAt, ComputeQuery, Proofs, QueryError, QueryOptions,
    convert::{StreamReader, batch_to_wire, compute_to_wire},
};
use kith_api::{BatchStream, Outlet, driven, too_slow};
use kith_types::ErrorCode;
use kith_wire::v1;
use std::time::{Duration, Instant};
use tonic::Status;

impl RouterClient {
    pub(crate) fn stream<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        options: &'a QueryOptions,
    ) -> BatchStream<'a> {
        driven(async move |outlet: Outlet| {
            keys.check()?;
            // What was handed on cannot be taken back: the router has checked it before.
            let asked = QueryOptions { proofs: Proofs::Everywhere, ..options.clone() };
            let request = StreamRequest::Values(batch_to_wire(store, keys, &asked));
            self.stream_into(request, keys, options, &outlet).await
        })
    }

    pub(crate) fn computed_stream<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a ComputeQuery,
        options: &'a QueryOptions,
    ) -> BatchStream<'a> {
        driven(async move |outlet: Outlet| {
            keys.check()?;
            query.check_stream()?;
            if query.at == ComputeAt::Nodes {
                let request = StreamRequest::Compute(compute_to_wire(store, keys, &query.plan, options));
                return self.stream_into(request, keys, options, &outlet).await;
            }
            outlet.put_all(compute_stream_here(self, store, keys, &query.plan, options)).await
        })
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

    /// Puts what comes until the footer into `outlet`.
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

/// Why a stream ended before its footer.
enum Ended {
    Status(Status),
    Error(QueryError),
}

impl From<Status> for Ended {
    fn from(status: Status) -> Self {
        Ended::Status(status)
    }
}

/// The next message, if it comes before `patience` after `started` has passed.
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

/// The code for the keys that are missing from a stream that ended so, if it was cut rather than refused: every error of Kith's own says what to do,
/// one that does not was made up by the transport.
fn cut_code(error: &QueryError) -> Option<ErrorCode> {
    match error {
        QueryError::Unreachable { .. } => Some(ErrorCode::Unreachable),
        QueryError::Remote { help, .. } if help.is_empty() => Some(ErrorCode::Unreachable),
        error if error.code() == ErrorCode::DeadlineExceeded => Some(ErrorCode::DeadlineExceeded),
        _ => None,
    }
}
