//! The traffic through a watched stream, and the regular looks at its connection.

use super::{ActivitySample, Lookout, OpenConnection, Reason};
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, ReadBuf};

/// Counts the bytes of one stream, and finds out when the limits on connections require that it is closed.
pub struct Traffic {
    connected: Arc<OpenConnection>,
    lookout: Lookout,
    received: u64,
    sent: u64,
    writes: u64,
    /// Whether the last write waits for the peer.
    is_unsent: bool,
}

impl Traffic {
    /// The traffic of a connection that has just begun. Must be called within a tokio runtime, whose timer it uses.
    pub fn new(connected: Arc<OpenConnection>) -> Self {
        let lookout = Lookout::new(&connected);
        Self { connected, lookout, received: 0, sent: 0, writes: 0, is_unsent: false }
    }

    /// The connection whose traffic this is.
    pub fn connected(&self) -> &Arc<OpenConnection> {
        &self.connected
    }

    /// Bytes received so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Successful writes so far.
    pub(super) fn writes(&self) -> u64 {
        self.writes
    }

    /// Ready once the connection must be closed, which is counted in the metrics.
    ///
    /// Only whole requests count as messages here. A request that arrives too slowly therefore counts as idleness, unless
    /// whoever reads its body closes it earlier.
    pub fn poll_reason(&mut self, cx: &mut Context<'_>) -> Poll<Reason> {
        loop {
            ready!(self.lookout.poll_due(cx, false));
            let (messages, is_under_way) = self.connected.requests();
            let (received, sent, is_unsent) = (self.received, self.sent, self.is_unsent);
            let seen = ActivitySample { messages, received, sent, has_begun: false, is_unsent, is_under_way };
            if let Some(reason) = self.lookout.look(seen) {
                return Poll::Ready(reason);
            }
        }
    }

    /// Reads from `stream`, and counts what was read.
    pub fn poll_read<S: AsyncRead>(
        &mut self,
        stream: Pin<&mut S>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(stream.poll_read(cx, buffer))?;
        self.received += (buffer.filled().len() - before) as u64;
        Poll::Ready(Ok(()))
    }

    /// Counts the bytes of one write.
    pub fn count_written(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.sent += *bytes as u64;
            self.writes += 1;
            self.connected.has_taken(self.sent);
        }
    }

    /// Notes whether the last write, flush or shutdown waits for the peer.
    pub fn set_unsent(&mut self, is_unsent: bool) {
        self.is_unsent = is_unsent;
    }
}
