//! Counts the connections of a process, and which of them belong to strangers: peers that have not authenticated yet.
//! Decides whether one more connection may be accepted.
//!
//! It is pure: ids and times are passed in. Strangers make way for later connections, so that peers that never authenticate
//! keep nobody out, not even from their own address. Of the addresses with a stranger that has been here long enough, the one
//! with the most strangers loses its oldest.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

/// A stranger keeps its place for at least this long. A handshake takes some milliseconds, and more while many peers
/// connect at once.
pub(super) const SECURE_FOR: Duration = Duration::from_millis(100);
/// The same on a port without handshakes, where a request usually comes with its connection and is answered at once.
pub(super) const SECURE_FOR_OF_HTTP: Duration = Duration::from_millis(10);

/// The next connection waits while this many strangers have been asked to leave and are not gone yet, because each of them
/// still holds its descriptor and memory.
const LEAVING_MAX: usize = 64;
/// How long it waits then. A connection that leaves needs only as long as its task takes to run.
const LEAVING_FOR: Duration = Duration::from_millis(5);

/// The decision about one more connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is accepted.
    Welcome,
    /// It is accepted, and the stranger with this id must leave.
    Instead(u64),
    /// It must wait for this long and ask again: all strangers have only just come, or too many of them are still leaving.
    Wait(Duration),
    /// It is refused.
    Full,
}

/// The connections of a process.
#[derive(Debug)]
pub(super) struct Census {
    open_max: usize,
    strangers_max: usize,
    /// How long a stranger keeps its place at least.
    secure_for: Duration,
    /// Whether peers stay strangers although they have sent a request, because the port authenticates nobody.
    are_all_strangers: bool,
    open: usize,
    /// The strangers by id: when each came, and its address. Ids ascend; connections over a Unix socket have no address.
    strangers: HashMap<u64, (Duration, Option<IpAddr>)>,
    by_address: HashMap<Option<IpAddr>, BTreeSet<u64>>,
    /// Strangers that were asked to leave and are not gone yet.
    leaving: HashSet<u64>,
}

impl Census {
    /// Returns a census without connections.
    pub fn new(open_max: usize, strangers_max: usize) -> Self {
        let (strangers, by_address, leaving) = (HashMap::new(), HashMap::new(), HashSet::new());
        let (secure_for, are_all_strangers, open) = (SECURE_FOR, false, 0);
        Self { open_max, strangers_max, secure_for, are_all_strangers, open, strangers, by_address, leaving }
    }

    /// Returns a census for a port that authenticates nobody. Everybody there makes way for later connections, whatever they
    /// have sent, so that no number of peers keeps a health check out.
    pub fn of_strangers(open_max: usize) -> Self {
        let census = Self::new(open_max, open_max);
        Self { secure_for: SECURE_FOR_OF_HTTP, are_all_strangers: true, ..census }
    }

    #[cfg(test)]
    fn open(&self) -> usize {
        self.open
    }

    #[cfg(test)]
    fn strangers(&self) -> usize {
        self.strangers.len()
    }

    /// Decides whether one more connection may be accepted at `now`.
    pub fn verdict(&self, now: Duration) -> Verdict {
        if self.open < self.open_max && self.strangers.len() < self.strangers_max {
            return Verdict::Welcome;
        }
        if LEAVING_MAX <= self.leaving.len() {
            return Verdict::Wait(LEAVING_FOR);
        }
        let left = |id: &u64| {
            let since = self.strangers.get(id).map_or(Duration::ZERO, |(since, _)| *since);
            self.secure_for.saturating_sub(now.saturating_sub(since))
        };
        // Most strangers first, then the oldest, so that as many peers with an address each are no better off.
        let oldest = |ids: &BTreeSet<u64>| ids.first().map(|id| (left(id), Reverse(ids.len()), *id));
        match self.by_address.values().filter_map(oldest).min() {
            None => Verdict::Full,
            Some((Duration::ZERO, _, id)) => Verdict::Instead(id),
            Some((left, ..)) => Verdict::Wait(left),
        }
    }

    /// Adds a connection, whose peer is a stranger.
    pub fn enters(&mut self, id: u64, now: Duration, address: Option<IpAddr>) {
        let address = address.map(network);
        self.open += 1;
        self.strangers.insert(id, (now, address));
        self.by_address.entry(address).or_default().insert(id);
    }

    /// Tells a stranger to leave, because its place is given to another connection.
    pub fn makes_way(&mut self, id: u64) {
        let is_stranger = self.strangers.contains_key(&id);
        self.forget(id);
        if is_stranger {
            self.leaving.insert(id);
        }
    }

    /// Marks a peer as authenticated. It may have been asked to leave a moment ago; then it no longer counts as leaving.
    pub fn is_known(&mut self, id: u64) {
        if !self.are_all_strangers {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: u64) {
        self.leaving.remove(&id);
        let Some((_, address)) = self.strangers.remove(&id) else { return };
        if let Some(ids) = self.by_address.get_mut(&address) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_address.remove(&address);
            }
        }
    }

    /// Removes a connection that was closed.
    pub fn leaves(&mut self, id: u64) {
        self.forget(id);
        self.open -= 1;
    }
}

/// The address of a network whose addresses count as one: a host with IPv6 usually has 2⁶⁴ of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(own) => IpAddr::V6(Ipv6Addr::from_bits(own.to_bits() >> 64 << 64)),
        own @ IpAddr::V4(_) => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    const LATER: Duration = Duration::from_secs(5);

    #[test]
    fn strangers_make_way_and_those_who_are_known_do_not() {
        let mut census = Census::new(4, 2);
        census.enters(1, Duration::ZERO, address(1));
        census.is_known(1);
        census.enters(2, Duration::ZERO, address(1));
        census.enters(3, Duration::ZERO, address(1));
        assert!(matches!(census.verdict(Duration::ZERO), Verdict::Wait(_)));
        assert_eq!(census.verdict(LATER), Verdict::Instead(2));
        census.is_known(2);
        census.is_known(3);
        census.enters(4, LATER, address(1));
        census.is_known(4);
        assert_eq!(census.verdict(LATER + LATER), Verdict::Full);
        census.leaves(4);
        assert_eq!(census.verdict(LATER + LATER), Verdict::Welcome);
    }

    #[test]
    fn the_address_with_most_strangers_loses_its_oldest() {
        let mut census = Census::new(100, 4);
        census.enters(1, Duration::ZERO, address(1));
        (2..5).for_each(|id| census.enters(id, Duration::ZERO, address(2)));
        assert_eq!(census.verdict(LATER), Verdict::Instead(2), "older ones of other addresses stay");
    }

    #[test]
    fn strangers_of_many_addresses_keep_nobody_waiting() {
        let mut census = Census::new(1_000, 200);
        // Each new one comes from another address than all before it, at first one in a millisecond.
        let at = |id: u64| Some(IpAddr::from([10, 1, (id / 250) as u8, (id % 250) as u8]));
        (0..200).for_each(|id| census.enters(id, Duration::from_millis(id), at(id)));
        let mut now = Duration::from_millis(200);
        for id in 200..2_000 {
            let verdict = census.verdict(now);
            assert_eq!(verdict, Verdict::Instead(id - 200), "the oldest of them makes way at once");
            census.leaves(id - 200);
            census.enters(id, now, at(id));
            now += Duration::from_millis(1);
        }
        // One who has just come does not make others wait, although two are at its address.
        census.leaves(1_999);
        census.enters(2_000, now, at(1_998));
        assert_eq!(census.verdict(now), Verdict::Instead(1_800));
    }

    #[test]
    fn addresses_of_one_network_count_as_one() {
        let mut census = Census::new(100, 3);
        census.enters(1, Duration::ZERO, address(1));
        let own = |last: u64| Some(IpAddr::from(Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(last))));
        census.enters(2, Duration::ZERO, own(7));
        census.enters(3, Duration::ZERO, own(8));
        assert_eq!(census.verdict(LATER), Verdict::Instead(2));
    }

    #[test]
    fn nobody_keeps_a_place_on_a_port_without_authentication() {
        let mut census = Census::of_strangers(4);
        for id in 0..4 {
            census.enters(id, Duration::from_millis(id), address(1));
            census.is_known(id);
        }
        assert_eq!(census.verdict(SECURE_FOR_OF_HTTP / 2), Verdict::Wait(SECURE_FOR_OF_HTTP / 2));
        assert_eq!(census.verdict(SECURE_FOR_OF_HTTP), Verdict::Instead(0));
        // A thousand peers of one address that stay are gone through in less than a second, four at a time.
        let (mut now, mut next) = (SECURE_FOR_OF_HTTP, 4);
        while next < 1_000 {
            match census.verdict(now) {
                Verdict::Instead(id) => {
                    census.leaves(id);
                    census.enters(next, now, address(1));
                    next += 1;
                }
                Verdict::Wait(wait) => now += wait,
                other => panic!("{other:?}"),
            }
        }
        assert!(now <= 250 * SECURE_FOR_OF_HTTP, "{now:?}");
    }

    #[test]
    fn few_are_about_to_leave_at_once() {
        let mut census = Census::new(10_000, 100);
        let mut next = 0;
        let mut fill = |census: &mut Census| {
            while census.verdict(LATER) == Verdict::Welcome {
                next += 1;
                census.enters(next, Duration::ZERO, address(1));
            }
        };
        for left in 1..=LEAVING_MAX as u64 {
            fill(&mut census);
            assert_eq!(census.verdict(LATER), Verdict::Instead(left));
            census.makes_way(left);
        }
        fill(&mut census);
        assert_eq!(census.verdict(LATER), Verdict::Wait(LEAVING_FOR));
        census.leaves(1);
        assert!(matches!(census.verdict(LATER), Verdict::Instead(_)));
        census.makes_way(LEAVING_MAX as u64 + 1);
        fill(&mut census);
        assert_eq!(census.verdict(LATER), Verdict::Wait(LEAVING_FOR));
        census.is_known(2);
        assert!(
            matches!(census.verdict(LATER), Verdict::Instead(_)),
            "it showed at the last moment who it is"
        );
    }

    proptest! {
        #[test]
        fn no_program_lets_in_too_many(steps in prop::collection::vec((0u8..4, 0u8..3, 0u64..300), 1..300)) {
            let mut census = Census::new(8, 4);
            let (mut now, mut next) = (Duration::ZERO, 0);
            let mut open: Vec<u64> = Vec::new();
            for (step, from, millis) in steps {
                now += Duration::from_millis(millis);
                let some = (!open.is_empty()).then(|| open[millis as usize % open.len().max(1)]);
                match (step, some) {
                    (0 | 1, _) => {
                        let verdict = census.verdict(now);
                        if let Verdict::Instead(id) = verdict {
                            prop_assert!(open.contains(&id));
                            census.leaves(id);
                            open.retain(|other| *other != id);
                        }
                        if matches!(verdict, Verdict::Welcome | Verdict::Instead(_)) {
                            next += 1;
                            census.enters(next, now, address(from));
                            open.push(next);
                        }
                    }
                    (2, Some(id)) => census.is_known(id),
                    (_, Some(id)) => {
                        census.leaves(id);
                        open.retain(|other| *other != id);
                    }
                    _ => {}
                }
                prop_assert!(census.open() == open.len() && census.open() <= 8 && census.strangers() <= 4);
                prop_assert_eq!(census.strangers(), census.by_address.values().map(BTreeSet::len).sum::<usize>());
            }
        }
    }
}
