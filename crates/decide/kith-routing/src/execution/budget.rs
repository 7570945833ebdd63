//! Budgets for asking twice: a share of the keys asked recently, plus a floor for clients that ask little (0008).

use kith_types::Timestamp;
use std::time::Duration;

/// The share is taken of the keys of the last `SLOTS × SLOT`, which is ten seconds.
const SLOTS: usize = 20;
const SLOT: Duration = Duration::from_millis(500);

/// The limits on second requests of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetOptions {
    /// The number of keys that may be asked again for each key asked in the last ten seconds. Infinite for no bound.
    pub share: f64,
    /// The number of requests, or of whole queries ([`Budget::take_for`]), that are allowed per second in addition to
    /// the share. At most the amount of one second is saved up.
    pub floor_per_second: u32,
}

/// A budget in keys over ten sliding seconds. All queries of a process share it.
#[derive(Clone, Debug)]
pub struct Budget {
    options: BudgetOptions,
    slots: [Slot; SLOTS],
    /// The rest of the floor at the time `floor_at`.
    floor: f64,
    floor_at: Timestamp,
}

/// The counts of half a second.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The number of this half second since the start.
    number: u64,
    asked: u64,
    spent: u64,
}

impl Budget {
    /// Returns a budget for which nothing was asked or spent yet.
    pub fn new(options: BudgetOptions) -> Self {
        let floor = f64::from(options.floor_per_second);
        Self { options, slots: [Slot::default(); SLOTS], floor, floor_at: Timestamp::ZERO }
    }

    /// Records that `keys` keys are asked for the first time.
    pub fn on_asked(&mut self, keys: usize, now: Timestamp) {
        self.slot(now).asked += keys as u64;
    }

    /// Spends `keys` keys on one request. Returns whether there was enough.
    pub fn take(&mut self, keys: usize, now: Timestamp) -> bool {
        self.take_for(&mut false, keys, now)
    }

    /// Spends `keys` keys on one request of a query. The floor is charged only once for all of a query's requests, and
    /// `is_paid` remembers this. A query ends with its last request, so asking only some of them twice would be useless.
    pub fn take_for(&mut self, is_paid: &mut bool, keys: usize, now: Timestamp) -> bool {
        let oldest = number_of(now).saturating_sub(SLOTS as u64 - 1);
        let (asked, spent) = self
            .slots
            .iter()
            .filter(|slot| oldest <= slot.number)
            .fold((0, 0), |(asked, spent), slot| (asked + slot.asked, spent + slot.spent));
        let within = (spent + keys as u64) as f64 <= self.options.share * asked as f64;
        if !within {
            *is_paid = *is_paid || self.take_floor(now);
        }
        let enough = within || *is_paid;
        self.slot(now).spent += if enough { keys as u64 } else { 0 };
        enough
    }

    fn take_floor(&mut self, now: Timestamp) -> bool {
        let rate = f64::from(self.options.floor_per_second);
        let gained = now.since(self.floor_at).as_secs_f64() * rate;
        self.floor = (self.floor + gained).min(rate);
        self.floor_at = self.floor_at.max(now);
        let enough = 1.0 <= self.floor;
        self.floor -= f64::from(u8::from(enough));
        enough
    }

    fn slot(&mut self, now: Timestamp) -> &mut Slot {
        let number = number_of(now);
        let slot = &mut self.slots[number as usize % SLOTS];
        if slot.number < number {
            *slot = Slot { number, ..Slot::default() };
        }
        slot
    }
}

fn number_of(now: Timestamp) -> u64 {
    u64::try_from(now.0.as_millis() / SLOT.as_millis()).unwrap_or(u64::MAX)
}

/// The budgets of one process.
#[derive(Clone, Debug)]
pub struct Budgets {
    /// The budget for hedges.
    pub hedges: Budget,
    /// The budget for retries of failed keys.
    pub retries: Budget,
}

impl Default for Budgets {
    /// Hedges may use a tenth of the keys (Venice), and one query per second. Retries may use as many keys as were asked: a
    /// dead node then fails no query, and failures everywhere at most double the load.
    fn default() -> Self {
        Self {
            hedges: Budget::new(BudgetOptions { share: 0.1, floor_per_second: 1 }),
            retries: Budget::new(BudgetOptions { share: 1.0, floor_per_second: 100 }),
        }
    }
}

impl Budgets {
    /// Returns budgets without bounds, for tests of everything else.
    pub fn unlimited() -> Self {
        let endless = Budget::new(BudgetOptions { share: f64::INFINITY, floor_per_second: u32::MAX });
        Self { hedges: endless.clone(), retries: endless }
    }

    /// Returns budgets that allow nothing to be asked twice.
    pub fn nothing() -> Self {
        let none = Budget::new(BudgetOptions { share: 0.0, floor_per_second: 0 });
        Self { hedges: none.clone(), retries: none }
    }

    /// Records that `keys` keys are asked for the first time.
    pub fn on_asked(&mut self, keys: usize, now: Timestamp) {
        self.hedges.on_asked(keys, now);
        self.retries.on_asked(keys, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp(Duration::from_millis(millis))
    }

    fn tenth() -> Budget {
        Budget::new(BudgetOptions { share: 0.1, floor_per_second: 1 })
    }

    #[test]
    fn a_tenth_of_the_keys_of_ten_seconds_may_be_asked_twice() {
        let mut budget = tenth();
        assert!(budget.take(1, at(0)), "the floor");
        budget.on_asked(1_000, at(0));
        assert!(budget.take(60, at(10)) && budget.take(39, at(20)));
        assert!(!budget.take(1, at(30)), "spent, and so is the floor");
        budget.on_asked(100, at(40));
        assert!(budget.take(10, at(50)) && !budget.take(1, at(60)));
    }

    #[test]
    fn what_is_older_than_ten_seconds_no_longer_counts() {
        let mut budget = tenth();
        budget.on_asked(1_000, at(400));
        assert!(budget.take(100, at(9_900)), "its half second began 9.5 s ago");
        budget.on_asked(200, at(10_600));
        assert!(budget.take(1, at(10_700)) && !budget.take(1, at(10_701)), "the floor; 1,000 are forgotten");
        assert!(budget.take(0, at(60_000)));
    }

    #[test]
    fn the_floor_is_a_request_a_second_and_is_not_saved_up() {
        let mut budget = tenth();
        let taken = (0..10_000u64).filter(|now| budget.take(500, at(*now))).count();
        assert_eq!(taken, 10);
        assert!(budget.take(500, at(90_000)) && !budget.take(500, at(90_001)));
    }

    #[test]
    fn the_floor_covers_all_requests_of_one_query_a_second() {
        let mut budget = tenth();
        let (mut first, mut second) = (false, false);
        budget.on_asked(1_500, at(0));
        assert!(budget.take_for(&mut first, 150, at(1)) && !first, "a tenth");
        assert!((0..3).all(|_| budget.take_for(&mut first, 500, at(2))) && first);
        assert!(!budget.take_for(&mut second, 1, at(3)) && !second, "another query");
        assert!(budget.take_for(&mut second, 1, at(1_002)));
    }

    #[test]
    fn a_long_silence_does_not_freeze_it() {
        // Venice's budget stopped for good after a window without traffic.
        let mut budget = tenth();
        budget.on_asked(100, at(0));
        budget.on_asked(100, at(3_600_000));
        assert!(budget.take(10, at(3_600_000)));
    }

    #[test]
    fn bounds_may_be_lifted_or_absolute() {
        assert!(Budgets::unlimited().hedges.take(1_000_000, at(0)));
        let mut nothing = Budgets::nothing();
        nothing.on_asked(1_000_000, at(0));
        assert!(!nothing.hedges.take(1, at(0)) && !nothing.retries.take(1, at(1_000)));
    }
}
