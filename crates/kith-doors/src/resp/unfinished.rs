//! The command that a connection has begun to receive: the memory that it is charged for, and whether it arrives too slowly.

use kith_net::{
    Charge,
    server::connections::{Connected, Reason, Seen, Watch, closed},
};
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// A command of which only a part has been read.
pub(super) struct Unfinished {
    charge: Option<Charge>,
    watch: Watch,
    look: Interval,
    /// Bytes read since the connection was opened.
    received: u64,
    /// How often commands were taken out of what was read.
    taken: u64,
}

impl Unfinished {
    /// Returns the state of a connection of which nothing has been read.
    pub fn new(place: &Connected) -> Self {
        let (watch, every) = place.watch();
        let mut look = tokio::time::interval_at(Instant::now() + every, every);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { charge: None, watch, look, received: 0, taken: 0 }
    }

    /// Notes that this many bytes were read.
    pub fn received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// Notes that commands were complete, and another one begins.
    pub fn finished(&mut self) {
        self.taken += 1;
    }

    /// Charges the command for this many bytes in all. Returns `false` if there is no memory for them.
    #[must_use]
    pub fn pay(&mut self, place: &Connected, bytes: usize) -> bool {
        self.charge.get_or_insert_with(|| place.charge()).grow_to(bytes)
    }

    /// Gives back what was charged.
    pub fn refund(&mut self) {
        self.charge = None;
    }

    /// Ends when the command should have been complete.
    pub async fn is_too_slow(&mut self) {
        loop {
            self.look.tick().await;
            let (messages, received) = (self.taken, self.received);
            let seen = Seen { messages, received, has_begun: true, ..Seen::default() };
            if self.watch.look(seen) == Some(Reason::SlowRequest) {
                return closed(Reason::SlowRequest.code().name());
            }
        }
    }
}
