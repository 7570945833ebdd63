//! Batch reads and computations whose records are handed on as they arrive, with a footer that accounts for every key
//! (`docs/design/0010-streaming.md`).

use crate::QueryError;
use futures::{FutureExt, Stream, StreamExt, future::BoxFuture, stream::BoxStream};
use kith_operators::{RecordCounts, Records};
use kith_schema::{Schema, SchemaId};
use kith_types::ErrorCode;
use kith_wire::v1;
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use strum::IntoStaticStr;
use tokio::sync::mpsc;

/// The pieces in any order, with each key in one of them, followed by the footer. An error ends the stream: keys that have
/// not arrived by then have no answer. No work is done between polls and little is buffered, so a reader that stops costs
/// little.
pub type BatchStream<'a> = BoxStream<'a, Result<StreamItem, QueryError>>;

/// An item of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    /// Some of the records.
    Piece(BatchPiece),
    /// The last item.
    Footer(Box<StreamFooter>),
}

/// A piece of a stream: some of its records.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchPiece {
    /// The places of the records' keys among the requested keys, ascending.
    pub positions: Vec<u32>,
    /// One record per position.
    pub records: Records,
    /// The version that answers; the same in the whole stream.
    pub version: u64,
    /// The schema of the records, for [`crate::Service::schema`]; for a computation, that of its results.
    pub schema: Option<SchemaId>,
    /// For a computation: the schema of its results.
    pub result: Option<Arc<Schema>>,
}

/// Accounts for every key of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamFooter {
    /// The outcome in one word.
    pub status: StreamStatus,
    /// The number of keys with each outcome. The four counts sum to the number of keys.
    pub counts: RecordCounts,
    /// The failures, one entry for all keys that failed in the same way; only in partial answers.
    pub failures: Vec<StreamFailure>,
    /// The version that answered; 0 if none did.
    pub version: u64,
    /// The schema of the records.
    pub schema: Option<SchemaId>,
    /// The CRC-32C of the pieces as they were sent, which matched. `None` for a fast client, where no stream was sent.
    pub crc32c: Option<u32>,
    /// Time from the request's arrival to the footer, as measured by the process that made the footer.
    pub total: Duration,
    /// The longest time that a node worked on a request whose answer counts.
    pub service: Duration,
    /// The plan and its timings, if requested.
    pub profile: Option<v1::Profile>,
}

/// The outcome of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub enum StreamStatus {
    /// Every key is found or absent.
    Ok,
    /// Some keys are neither found nor absent.
    Partial,
    /// No key is found or absent.
    Failed,
}

/// Keys that failed in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamFailure {
    /// The partitions of the keys, ascending.
    pub partitions: Vec<u32>,
    /// The number of keys.
    pub keys: u64,
    /// The code that a whole read would fail with; [`ErrorCode::Unreachable`] if the stream itself was cut.
    pub code: ErrorCode,
    /// The nodes that were asked, in order. More than one means that the request was retried.
    pub nodes: Vec<u32>,
}

impl StreamStatus {
    /// The status for these counts.
    pub fn of(counts: &RecordCounts) -> Self {
        match (counts.found + counts.absent, counts.error + counts.unanswered) {
            (_, 0) => StreamStatus::Ok,
            (0, _) => StreamStatus::Failed,
            _ => StreamStatus::Partial,
        }
    }

    /// The name of the status.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The place where `work` puts the items of its stream.
#[derive(Clone, Debug)]
pub struct Outlet(mpsc::Sender<StreamItem>);

impl Outlet {
    /// Passes an item on. Returns when there is room for the next.
    pub async fn put(&self, item: StreamItem) {
        // Sending fails only if the stream was dropped, and with it this work.
        let _ = self.0.send(item).await;
    }

    /// Passes on all items of a stream.
    ///
    /// # Errors
    /// The error of the stream.
    pub async fn put_all(&self, mut items: BatchStream<'_>) -> Result<(), QueryError> {
        while let Some(item) = items.next().await {
            self.put(item?).await;
        }
        Ok(())
    }
}

/// Returns a stream of the items that `work` puts into its outlet, ended by the error of `work` if there is one. The work
/// makes progress only while the stream is polled, and is at most one item ahead.
pub fn driven<'a, Work>(work: impl FnOnce(Outlet) -> Work) -> BatchStream<'a>
where
    Work: Future<Output = Result<(), QueryError>> + Send + 'a,
{
    let (sender, items) = mpsc::channel(1);
    let work = work(Outlet(sender)).boxed();
    Driven { work: Some(work), items, error: None }.boxed()
}

struct Driven<'a> {
    work: Option<BoxFuture<'a, Result<(), QueryError>>>,
    items: mpsc::Receiver<StreamItem>,
    error: Option<QueryError>,
}

impl Stream for Driven<'_> {
    type Item = Result<StreamItem, QueryError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(work) = &mut self.work
            && let Poll::Ready(ended) = work.poll_unpin(cx)
        {
            self.error = ended.err();
            self.work = None;
        }
        match self.items.poll_recv(cx) {
            Poll::Ready(Some(item)) => Poll::Ready(Some(Ok(item))),
            Poll::Ready(None) => Poll::Ready(self.error.take().map(Err)),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn piece(version: u64) -> StreamItem {
        StreamItem::Piece(BatchPiece {
            positions: vec![],
            records: Records::default(),
            version,
            schema: None,
            result: None,
        })
    }

    #[tokio::test]
    async fn work_is_one_item_ahead_and_its_error_comes_last() {
        let made = AtomicU32::new(0);
        let mut stream = driven(async |outlet: Outlet| {
            for version in 0..5 {
                made.fetch_add(1, Ordering::Relaxed);
                outlet.put(piece(version)).await;
            }
            Err(QueryError::BadRequest { detail: "at the end".to_owned() })
        });
        for version in 0..5 {
            assert_eq!(stream.next().await, Some(Ok(piece(version))));
            assert!(u64::from(made.load(Ordering::Relaxed)) <= version + 3);
        }
        assert!(matches!(stream.next().await, Some(Err(QueryError::BadRequest { .. }))));
        assert_eq!(stream.next().await, None);
    }

    #[test]
    fn a_status_follows_from_the_counts() {
        let counts = |found, absent, error, unanswered| RecordCounts { found, absent, error, unanswered };
        assert_eq!(StreamStatus::of(&counts(0, 0, 0, 0)), StreamStatus::Ok);
        assert_eq!(StreamStatus::of(&counts(1, 2, 0, 0)), StreamStatus::Ok);
        assert_eq!(StreamStatus::of(&counts(0, 2, 0, 1)), StreamStatus::Partial);
        assert_eq!(StreamStatus::of(&counts(0, 0, 1, 1)), StreamStatus::Failed);
    }
}
