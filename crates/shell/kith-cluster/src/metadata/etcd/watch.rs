//! Watches a prefix: reads it, watches from that revision, and reads again at each event.
//!
//! Whatever ends a watch (a compaction, a lost connection, a restarted member, a member without a leader), the response is
//! the same: the prefix is read again. So no state is missed, and no state is reported that never existed.

use super::{Root, endpoints::Line};
use crate::metadata::Snapshot;
use futures::{StreamExt, stream::BoxStream};
use kith_wire::etcd::{
    WatchCreateRequest, WatchRequest, WatchResponse, watch_client::WatchClient, watch_request::RequestUnion,
};
use std::{sync::Arc, time::Duration};
use tonic::{Status, Streaming, metadata::MetadataValue};

/// The pause before a lost watch is opened again.
const RETRY: Duration = Duration::from_millis(200);
/// The header that asks etcd to end the watch if its member is cut off from the others.
const HAS_LEADER: &str = "hasleader";

/// A watch, which may be open or not.
pub(super) struct WatchState {
    root: Arc<Root>,
    prefix: String,
    /// The last revision that was reported.
    seen: u64,
    open: Option<Streaming<WatchResponse>>,
    /// Whether the revision was found below `seen` and this has been logged.
    went_back: bool,
}

impl WatchState {
    pub fn new(root: Arc<Root>, prefix: String, seen: u64) -> Self {
        Self { root, prefix, seen, open: None, went_back: false }
    }

    pub fn stream(self) -> BoxStream<'static, Snapshot> {
        futures::stream::unfold(self, |mut watching| async move {
            let snapshot = watching.next().await;
            Some((snapshot, watching))
        })
        .boxed()
    }

    async fn next(&mut self) -> Snapshot {
        loop {
            if self.open.is_some() {
                self.changed().await;
            }
            match self.root.read(&self.prefix).await {
                Ok(snapshot) => {
                    self.look_back(snapshot.revision);
                    let is_newer = self.seen < snapshot.revision;
                    self.seen = self.seen.max(snapshot.revision);
                    if self.open.is_none() {
                        self.open().await;
                    }
                    if is_newer {
                        return snapshot;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a watch waits for etcd");
                    self.give_up().await;
                }
            }
        }
    }

    /// Opens the watch after `seen`. If this fails, `next` reads again and calls this again.
    async fn open(&mut self) {
        let Ok(line) = self.root.endpoints.line().await else { return tokio::time::sleep(RETRY).await };
        match self.create(&line).await {
            Ok(stream) => self.open = Some(stream),
            Err(error) => {
                tracing::debug!(%error, "a watch could not be opened");
                self.root.endpoints.leave(&line);
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    async fn create(&self, line: &Line) -> Result<Streaming<WatchResponse>, Status> {
        let key = self.root.key(&self.prefix);
        let create = WatchCreateRequest {
            range_end: self.root.end(&self.prefix),
            key,
            start_revision: super::signed(self.seen + 1),
        };
        let create = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
        // The watch lasts as long as its input, which never ends.
        let input = futures::stream::iter([create]).chain(futures::stream::pending());
        let mut request = line.request(input);
        request.metadata_mut().insert(HAS_LEADER, MetadataValue::from_static("true"));
        Ok(WatchClient::new(line.channel.clone()).watch(request).await?.into_inner())
    }

    /// Closes the watch and waits before the next attempt.
    async fn give_up(&mut self) {
        self.open = None;
        tokio::time::sleep(RETRY).await;
    }

    /// Returns once there is a reason to read again: an event, or the end of the watch.
    async fn changed(&mut self) {
        while let Some(stream) = &mut self.open {
            match stream.message().await {
                Ok(Some(response)) if response.canceled => {
                    let (compacted, reason) = (response.compact_revision, response.cancel_reason);
                    tracing::debug!(compacted, reason, "etcd ended a watch");
                    self.open = None;
                    if compacted == 0 {
                        tokio::time::sleep(RETRY).await;
                    }
                }
                Ok(Some(response)) if response.events.is_empty() => {}
                Ok(Some(_)) => return,
                Ok(None) | Err(_) => {
                    self.give_up().await;
                }
            }
        }
    }

    /// Logs once that the revision went back, so that an operator who restored a backup knows why changes are not followed.
    fn look_back(&mut self, revision: u64) {
        let is_back = revision < self.seen;
        if is_back && !self.went_back {
            let seen = self.seen;
            tracing::error!(
                revision,
                seen,
                "etcd went back: changes are not followed until it has passed what was seen; restart this process"
            );
        }
        self.went_back = is_back;
    }
}
