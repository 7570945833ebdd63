//! Requests that are sent at most once.

use super::{Frames, only};
use crate::{SendFailure, unwritten::silence};
use kith_wire::{Message, frame::Op};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

impl Frames {
    /// Like [`Frames::ask`], for a request that must not be carried out twice. Waits at most `timeout`, also if the
    /// connection has to be opened first.
    ///
    /// # Errors
    /// [`SendFailure`] says whether the request may have been carried out.
    pub async fn ask_once<R: Message + Default>(
        &self,
        addr: &str,
        op: Op,
        timeout: Duration,
        body: &impl Message,
    ) -> Result<R, SendFailure> {
        let deadline = Instant::now() + timeout;
        let opened = timeout_at(deadline, self.connection(addr, op)).await;
        let connection = opened.unwrap_or_else(|_| Err(silence(timeout))).map_err(SendFailure::Unsent)?;
        // The frame carries no deadline, because the server would drop the answer to a request that is still under way.
        match timeout_at(deadline, self.call_over(&connection, addr, op, None, body)).await {
            Ok(pieces) => pieces.and_then(only).map_err(SendFailure::after_sending),
            Err(_) => Err(SendFailure::Lost(silence(timeout))),
        }
    }
}
