//! The network: how long messages take, and whether they arrive.

use super::{Shared, World};
use super::{database::Database, promise::promise, truth::Truth};
use kith_types::Timestamp;
use rand::RngExt;
use rand::rngs::StdRng;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// The time that a caller waits for the database.
pub(super) const DATABASE_TIMEOUT: Duration = Duration::from_secs(1);

/// The current state of the network.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NetworkState {
    /// The number of messages in a thousand that are lost.
    pub(super) lost_permille: u32,
    /// One in this many messages takes up to two seconds. With 0, no message does.
    pub(super) slow_one_in: u32,
    /// The maximum delay of news from the metadata store, if it is longer than the usual one.
    pub(super) news_delay: Duration,
}

/// The reasons for which a call of the database returns no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The call did not take effect, and never will.
    Unavailable,
    /// No answer came. The call may have taken effect, or may still do so.
    Lost,
}

/// What is left to chance in a run: the network, and the choices of clients and faults.
pub(super) struct Network {
    random: RefCell<StdRng>,
    pub(super) state: Cell<NetworkState>,
}

impl Network {
    pub(super) fn new(random: StdRng, slow_one_in: u32) -> Self {
        let state = NetworkState { slow_one_in, ..NetworkState::default() };
        Self { random: RefCell::new(random), state: Cell::new(state) }
    }

    pub(super) fn below(&self, limit: u64) -> u64 {
        self.random.borrow_mut().random_range(0..limit)
    }

    pub(super) fn one_in(&self, times: u32) -> bool {
        times != 0 && self.random.borrow_mut().random_ratio(1, times)
    }

    /// Draws the delay of the next message; `None` if the message is lost.
    pub(super) fn hop(&self) -> Option<Duration> {
        let state = self.state.get();
        if self.below(1_000) < u64::from(state.lost_permille) {
            return None;
        }
        let micros = match self.one_in(state.slow_one_in) {
            true => 1_000 << self.below(12),
            false => 100 + self.below(2_000),
        };
        Some(Duration::from_micros(micros))
    }

    /// Draws the delay of news from the metadata store.
    pub(super) fn news_delay(&self) -> Duration {
        let most = self.state.get().news_delay.as_micros() as u64;
        Duration::from_micros(200 + self.below(most.max(3_000)))
    }
}

impl World {
    /// Waits until an answer has come back; `None` if the answer is lost.
    pub(super) async fn back(&self) -> Option<()> {
        let delay = self.network.hop()?;
        self.executor.sleep(delay).await;
        Some(())
    }

    /// Calls the database. The call reaches the database even if the caller has ended by then.
    pub(super) async fn database<T: 'static>(
        self: &Shared,
        call: impl FnOnce(&mut Database, &mut Truth, Timestamp) -> T + 'static,
    ) -> Result<T, Fault> {
        let Some(delay) = self.network.hop() else {
            self.executor.sleep(DATABASE_TIMEOUT).await;
            return Err(Fault::Lost);
        };
        let (giver, answer) = promise(&self.executor.wakes);
        let connection = self.database.borrow().replaced;
        self.executor.after(delay, move |world| {
            let now = world.executor.now();
            let mut database = world.database.borrow_mut();
            let is_broken = connection != database.replaced;
            let result = match now < database.down_until {
                _ if is_broken => Err(Fault::Lost),
                true => Err(Fault::Unavailable),
                false => Ok(call(&mut database, &mut world.truth.borrow_mut(), now)),
            };
            match world.network.hop() {
                Some(delay) => world.executor.after(delay, move |_| giver.give(result)),
                // The connection hangs.
                None => world.executor.after(DATABASE_TIMEOUT, move |_| drop(giver)),
            }
        });
        let result = self.executor.within(DATABASE_TIMEOUT, answer).await.flatten();
        // The caller's process may have been frozen since the answer came, and the connection may have broken meanwhile.
        let is_broken = connection != self.database.borrow().replaced;
        result.filter(|_| !is_broken).unwrap_or(Err(Fault::Lost))
    }
}
