//! A watch over a connection together with the timer that calls it. All protocols use it: frames, HTTP, and the doors.

use super::{ActivitySample, OpenConnection, Reason, Watch, closed};
use crate::Charge;
use std::{
    future::poll_fn,
    mem,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// A watch over a connection, and its timer.
#[derive(Debug)]
pub struct Lookout {
    watch: Watch,
    timer: Interval,
    /// The time from the last check to the next one.
    step: Duration,
    /// This time while a request arrives.
    step_at_request: Duration,
}

impl Lookout {
    /// Returns a lookout for a connection that has just begun. Must be called within a tokio runtime, whose timer it uses.
    pub fn new(connected: &OpenConnection) -> Self {
        let (watch, pace) = connected.watch();
        let (step, step_at_request) = (pace.interval, pace.interval_at_request);
        let mut timer = interval_at(Instant::now() + step, step);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { watch, timer, step, step_at_request }
    }

    /// Ready when the connection has to be checked with [`Lookout::look`]. `has_begun` says whether a request arrives; this must be
    /// called again once one does.
    pub fn poll_due(&mut self, cx: &mut Context<'_>, has_begun: bool) -> Poll<()> {
        if has_begun && self.step_at_request < self.step {
            self.step = self.step_at_request;
            self.timer.reset_after(self.step);
        }
        self.timer.poll_tick(cx).map(drop)
    }

    /// Records a check. Returns why the connection must be closed, if it must; the metrics count that.
    pub fn look(&mut self, seen: ActivitySample) -> Option<Reason> {
        // Not the time that has passed: a process that was paused has not read meanwhile.
        let step = mem::replace(&mut self.step, self.timer.period());
        let reason = self.watch.look(seen, step)?;
        closed(reason.code().name());
        Some(reason)
    }
}

/// The request that a connection has begun to receive: the memory that it is charged for, and whether it arrives too slowly.
#[derive(Debug)]
pub struct Arrival {
    connected: Arc<OpenConnection>,
    charge: Option<Charge>,
    lookout: Lookout,
    /// Bytes received so far, of all requests.
    received: u64,
    /// The number of whole requests so far.
    messages: u64,
}

impl Arrival {
    /// Returns the state of a connection of which nothing has been received.
    pub fn new(connected: &Arc<OpenConnection>) -> Self {
        let lookout = Lookout::new(connected);
        Self { connected: Arc::clone(connected), charge: None, lookout, received: 0, messages: 0 }
    }

    /// Notes that this many bytes were received.
    pub fn received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// Notes that a request is complete, so that the next one has its whole time again.
    pub fn finished(&mut self) {
        self.messages += 1;
    }

    /// Charges the request for this many bytes in all. Returns `false` if there is no memory for them.
    #[must_use]
    pub fn pay(&mut self, bytes: usize) -> bool {
        self.charge.get_or_insert_with(|| self.connected.charge()).grow_to(bytes)
    }

    /// Gives back what was charged.
    pub fn refund(&mut self) {
        self.charge = None;
    }

    /// Hands over what was charged, for the request that is complete now.
    pub fn take_charge(&mut self) -> Charge {
        self.charge.take().unwrap_or_else(|| self.connected.charge())
    }

    /// Ready when a request that has begun should have been complete. The metrics then count a closed connection.
    /// `has_begun` says whether there is such a request.
    pub fn poll_too_slow(&mut self, cx: &mut Context<'_>, has_begun: bool) -> Poll<()> {
        loop {
            ready!(self.lookout.poll_due(cx, has_begun));
            // Only a slow request is of interest: other code ends connections that are idle.
            let seen = ActivitySample {
                messages: self.messages,
                received: self.received,
                has_begun,
                is_under_way: true,
                ..ActivitySample::default()
            };
            if self.lookout.look(seen) == Some(Reason::SlowRequest) {
                return Poll::Ready(());
            }
        }
    }

    /// Ends when the request that has begun should have been complete.
    pub async fn is_too_slow(&mut self) {
        poll_fn(|cx| self.poll_too_slow(cx, true)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::{super::testing::known_hasty, *};
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_request_that_trickles_is_too_slow_and_the_time_of_each_request_is_its_own() {
        let mut arrival = Arrival::new(&known_hasty());
        let mut trickle = async |finishes: bool| {
            for _ in 0..60 {
                arrival.received(1);
                if finishes {
                    arrival.finished();
                }
                if timeout(Duration::from_millis(10), arrival.is_too_slow()).await.is_ok() {
                    return true;
                }
            }
            false
        };
        assert!(!trickle(true).await, "each byte is a request");
        assert!(trickle(false).await);
    }

    #[tokio::test]
    async fn a_request_has_the_same_time_whenever_it_begins() {
        for idle in [0, 30, 700] {
            let mut arrival = Arrival::new(&known_hasty());
            let not_begun = poll_fn(|cx| arrival.poll_too_slow(cx, false));
            assert!(timeout(Duration::from_millis(idle), not_begun).await.is_err());
            arrival.received(4);
            let began = Instant::now();
            assert!(timeout(Duration::from_secs(5), arrival.is_too_slow()).await.is_ok(), "after {idle} ms");
            assert!(Duration::from_millis(200) <= began.elapsed(), "after {idle} ms");
        }
    }
}
