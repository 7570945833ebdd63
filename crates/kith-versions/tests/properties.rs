//! Any interleaving of commands and crashes against a naive twin, and against nodes that keep only what they were told to.

use kith_types::{NodeId, StoreVersion};
use kith_versions::{
    Command, Context, Effect, HISTORY_MAX, Holders, Policy, PushId, StoreState, Trust, UnixMillis,
    VersionState,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const NODES: u32 = 4;

/// Node 0 and 1 are one group, 2 and 3 the other: two partitions, two replicas.
fn holders() -> Holders {
    Holders { groups: vec![vec![NodeId(0), NodeId(1)], vec![NodeId(2), NodeId(3)]], drained: vec![] }
}

#[derive(Clone, Debug)]
enum Step {
    Begin {
        push: u8,
        missing_max: u32,
    },
    Offer,
    Ready(u32),
    Fails(u32),
    Flip,
    Abort,
    /// The push of this id, begun or not; `None`: the one under way.
    Cancel(Option<u8>),
    Freeze,
    Thaw,
    /// The coordinator dies between two writes, or within one: what only it knew is gone.
    Crash,
    Recover,
    /// Indices into the versions that ever were.
    Swap(usize, bool),
    Rollback(Option<usize>, bool),
    Hold(usize, bool),
    Block(usize, bool),
    /// A node fetches a version that it was left out of.
    Repair(usize, u32),
    Define(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let version = || 0usize..8;
    prop_oneof![
        4 => (0u8..12, 0u32..3).prop_map(|(push, missing_max)| Step::Begin { push, missing_max }),
        4 => Just(Step::Offer),
        12 => (0..NODES).prop_map(Step::Ready),
        2 => (0..NODES).prop_map(Step::Fails),
        6 => Just(Step::Flip),
        1 => Just(Step::Abort),
        1 => prop::option::of(0u8..12).prop_map(Step::Cancel),
        1 => Just(Step::Freeze),
        2 => Just(Step::Thaw),
        1 => Just(Step::Crash),
        1 => Just(Step::Recover),
        2 => (version(), any::<bool>()).prop_map(|(version, force)| Step::Swap(version, force)),
        2 => (prop::option::of(version()), any::<bool>()).prop_map(|(to, force)| Step::Rollback(to, force)),
        1 => (version(), any::<bool>()).prop_map(|(version, held)| Step::Hold(version, held)),
        1 => (version(), any::<bool>()).prop_map(|(version, blocked)| Step::Block(version, blocked)),
        2 => (version(), 0..NODES).prop_map(|(version, node)| Step::Repair(version, node)),
        1 => (0u32..4).prop_map(Step::Define),
    ]
}

struct TwinPush {
    version: u64,
    push: u8,
    ready: BTreeSet<u32>,
    left_out: BTreeSet<u32>,
    missing_max: u32,
    offered: bool,
}

/// What was agreed on, as plain lists, and its rules written out a second time.
#[derive(Default)]
struct Twin {
    served: Option<u64>,
    retained: BTreeSet<u64>,
    blocked: BTreeSet<u64>,
    held: BTreeSet<u64>,
    running: Option<TwinPush>,
    left_out: BTreeMap<u64, BTreeSet<u32>>,
    pushed: BTreeSet<u8>,
    /// The last end of each push that did not serve, and whether somebody wanted it.
    ended: BTreeMap<u8, bool>,
    frozen: bool,
    last: u64,
    retain: usize,
    recorded: usize,
}

impl Twin {
    fn covered(without: &BTreeSet<u32>) -> bool {
        // Partition 0 lies on nodes 0 and 2, partition 1 on nodes 1 and 3.
        !(without.contains(&0) && without.contains(&2) || without.contains(&1) && without.contains(&3))
    }

    fn kept(&self, version: u64) -> bool {
        self.served == Some(version) || self.retained.contains(&version) || self.blocked.contains(&version)
    }

    fn servable(&self, version: u64, force: bool) -> bool {
        let state_allows = self.retained.contains(&version) || force && self.blocked.contains(&version);
        state_allows && Self::covered(self.left_out.get(&version).unwrap_or(&BTreeSet::new()))
    }

    fn serve(&mut self, version: u64, block_old: bool) {
        if let Some(old) = self.served.replace(version) {
            if block_old {
                self.blocked.insert(old)
            } else {
                self.retained.insert(old)
            };
        }
        self.retained.remove(&version);
        self.blocked.remove(&version);
        self.recorded += 1;
    }

    fn fail(&mut self) -> bool {
        self.end(false)
    }

    fn end(&mut self, cancelled: bool) -> bool {
        let Some(push) = self.running.take() else { return false };
        self.ended.insert(push.push, cancelled);
        self.recorded += 1;
        true
    }

    fn cancel(&mut self, push: Option<u8>) -> bool {
        let running = self.running.as_ref().map(|running| running.push);
        match push {
            None => self.end(true),
            Some(push) if running == Some(push) => self.end(true),
            Some(push) if self.pushed.contains(&push) => false,
            Some(push) if self.ended.get(&push) == Some(&true) => true,
            Some(push) => {
                self.ended.insert(push, true);
                true
            }
        }
    }

    fn clean(&mut self) {
        loop {
            let free = |set: &BTreeSet<u64>| {
                set.iter().copied().filter(|v| !self.held.contains(v)).collect::<Vec<_>>()
            };
            let (blocked, retained) = (free(&self.blocked), free(&self.retained));
            if blocked.len() + retained.len() <= self.retain {
                return;
            }
            match blocked.first() {
                Some(version) => self.blocked.remove(version),
                None => self.retained.remove(&retained[0]),
            };
        }
    }

    /// Whether the command is granted.
    fn step(&mut self, step: &Step, now: u64, version_of: impl Fn(usize) -> u64) -> bool {
        let granted = self.push_step(step, now).unwrap_or_else(|| self.version_step(step, version_of));
        self.clean();
        granted
    }

    /// `None` for steps that are not a push's.
    fn push_step(&mut self, step: &Step, now: u64) -> Option<bool> {
        Some(match step {
            Step::Begin { push, missing_max } => match &self.running {
                Some(running) => running.push == *push,
                None if self.pushed.contains(push) => false,
                None if self.ended.get(push) == Some(&true) || self.frozen => false,
                None => {
                    self.last = now.max(self.last + 1);
                    self.running = Some(TwinPush {
                        version: self.last,
                        push: *push,
                        ready: BTreeSet::new(),
                        left_out: BTreeSet::new(),
                        missing_max: *missing_max,
                        offered: false,
                    });
                    true
                }
            },
            Step::Offer => self.running.as_mut().map(|running| running.offered = true).is_some(),
            Step::Ready(node) => {
                let running = self.running.as_mut();
                running.map(|running| (running.left_out.remove(node), running.ready.insert(*node))).is_some()
            }
            Step::Fails(node) => match &mut self.running {
                None => false,
                Some(running) => {
                    let mut more = running.left_out.clone();
                    more.insert(*node);
                    if more.len() <= running.missing_max as usize && Self::covered(&more) {
                        running.left_out = more;
                        running.ready.remove(node);
                        true
                    } else {
                        self.fail()
                    }
                }
            },
            Step::Flip => match &self.running {
                Some(TwinPush { version, push, ready, left_out, offered: true, .. })
                    if (0..NODES).all(|node| ready.contains(&node) || left_out.contains(&node)) =>
                {
                    let (version, push, left_out) = (*version, *push, left_out.clone());
                    self.running = None;
                    self.pushed.insert(push);
                    self.left_out.insert(version, left_out);
                    self.serve(version, false);
                    true
                }
                _ => false,
            },
            Step::Abort | Step::Recover => self.fail(),
            Step::Cancel(push) => self.cancel(*push),
            Step::Freeze => {
                if !self.frozen {
                    self.end(true);
                    self.frozen = true;
                    self.recorded += 1;
                }
                true
            }
            Step::Thaw => {
                self.recorded += usize::from(self.frozen);
                self.frozen = false;
                true
            }
            Step::Crash => {
                if let Some(running) = &mut self.running {
                    running.ready.clear();
                }
                true
            }
            _ => return None,
        })
    }

    fn version_step(&mut self, step: &Step, version_of: impl Fn(usize) -> u64) -> bool {
        match step {
            Step::Swap(index, force) => {
                let version = version_of(*index);
                let may = self.servable(version, *force);
                if may {
                    self.end(true);
                    self.serve(version, false);
                }
                may
            }
            Step::Rollback(to, force) => {
                let served = self.served.unwrap_or(0);
                let to = match to {
                    Some(index) => Some(version_of(*index)),
                    None => self.retained.iter().copied().filter(|version| *version < served).max(),
                };
                let to = to.filter(|to| *to < served && self.servable(*to, *force));
                if let Some(to) = to {
                    self.end(true);
                    self.serve(to, true);
                }
                to.is_some()
            }
            Step::Hold(index, held) => {
                let version = version_of(*index);
                let may = self.kept(version);
                if may {
                    if *held {
                        self.held.insert(version)
                    } else {
                        self.held.remove(&version)
                    };
                    self.recorded += 1;
                }
                may
            }
            Step::Block(index, blocked) => {
                let version = version_of(*index);
                let may = self.kept(version) && self.served != Some(version);
                if may {
                    let (from, to) = match blocked {
                        true => (&mut self.retained, &mut self.blocked),
                        false => (&mut self.blocked, &mut self.retained),
                    };
                    from.remove(&version);
                    to.insert(version);
                    self.recorded += 1;
                }
                may
            }
            Step::Repair(index, node) => {
                let version = version_of(*index);
                let may = self.kept(version);
                if may && self.left_out.entry(version).or_default().remove(node) {
                    self.recorded += 1;
                }
                may
            }
            Step::Define(retain) => {
                self.retain = *retain as usize;
                self.recorded += 1;
                true
            }
            _ => unreachable!("a push's step"),
        }
    }
}

fn command(step: &Step, running: &PushId, version_of: impl Fn(usize) -> u64) -> Option<Command> {
    let version = |index: usize| StoreVersion(version_of(index));
    let push = running.clone();
    Some(match step {
        Step::Begin { push, missing_max } => Command::Begin {
            push: PushId(format!("p{push}")),
            coordinator: "router 0".to_owned(),
            version: None,
            missing_max: *missing_max,
        },
        Step::Offer => Command::Offer { push, records: 1, bytes: 1, force: false },
        Step::Ready(node) => Command::Ready { push, node: NodeId(*node) },
        Step::Fails(node) => Command::NodeFailed { push, node: NodeId(*node), reason: "gone".to_owned() },
        Step::Flip => Command::Flip { push },
        Step::Abort => Command::Abort { push, reason: "no".to_owned() },
        Step::Cancel(push) => Command::Cancel { push: push.map(|push| PushId(format!("p{push}"))) },
        Step::Freeze => Command::Freeze,
        Step::Thaw => Command::Thaw,
        Step::Crash => return None,
        Step::Recover => Command::Recover { push },
        Step::Swap(to, force) => Command::Swap { to: version(*to), force: *force },
        Step::Rollback(to, force) => Command::Rollback { to: to.map(version), force: *force },
        Step::Hold(at, true) => Command::Hold { version: version(*at) },
        Step::Hold(at, false) => Command::Release { version: version(*at) },
        Step::Block(at, true) => Command::Block { version: version(*at) },
        Step::Block(at, false) => Command::Unblock { version: version(*at) },
        Step::Repair(at, node) => Command::Repaired { version: version(*at), node: NodeId(*node) },
        Step::Define(retain) => Command::Define { policy: Policy { retain: *retain, ..Policy::default() } },
    })
}

fn numbers(state: &StoreState, wanted: VersionState) -> BTreeSet<u64> {
    let entries = state.versions.iter().filter(|entry| entry.state == wanted);
    entries.map(|entry| entry.version.0).collect()
}

/// What every moment must look like, whatever came before.
fn check(state: &StoreState, twin: &Twin, disks: &BTreeMap<u32, BTreeSet<u64>>) {
    let served: Vec<u64> = numbers(state, VersionState::Current).into_iter().collect();
    assert_eq!(served, twin.served.into_iter().collect::<Vec<_>>(), "exactly one version is served");
    assert_eq!(numbers(state, VersionState::Retained), twin.retained);
    assert_eq!(numbers(state, VersionState::Blocked), twin.blocked);
    assert_eq!(
        state.running.as_ref().map(|running| running.version.0),
        twin.running.as_ref().map(|it| it.version)
    );
    assert_eq!(state.frozen.is_some(), twin.frozen);
    let ascending = state.versions.windows(2).all(|pair| pair[0].version < pair[1].version);
    assert!(ascending && state.versions.iter().all(|entry| entry.version <= state.version_last));
    let free = state.versions.iter().filter(|entry| !entry.held && entry.state.is_kept());
    let free = free.filter(|entry| entry.state != VersionState::Current).count();
    assert!(free <= state.policy.retain as usize, "{free} are kept");
    assert_eq!(state.history.len(), twin.recorded.min(HISTORY_MAX), "every change is in the history");
    for entry in state.versions.iter().filter(|entry| entry.state.is_kept()) {
        assert!(holders().uncovered(&entry.excluded).is_none(), "a partition has no replica");
        for node in (0..NODES).filter(|node| !entry.excluded.contains(&NodeId(*node))) {
            assert!(disks[&node].contains(&entry.version.0), "{} is not on node {node}", entry.version);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn one_prepared_version_is_served_whatever_happens(steps in prop::collection::vec(step(), 1..120)) {
        let holders = holders();
        let mut state = StoreState::new(Policy::default(), StoreVersion(0));
        let mut twin = Twin { retain: 2, ..Twin::default() };
        let mut disks: BTreeMap<u32, BTreeSet<u64>> = (0..NODES).map(|node| (node, BTreeSet::new())).collect();
        let mut ever: Vec<u64> = vec![7];
        for (index, step) in steps.iter().enumerate() {
            // Sometimes the clock goes back.
            let now = if index % 7 == 3 { 5 } else { 10 * index as u64 + 10 };
            let context =
                Context { now: UnixMillis(now), who: "ada", standing: Trust::Claimed, holders: &holders, rebalance: None };
            let version_of = |index: usize| ever[index % ever.len()];
            let running = state.running.as_ref().map_or(PushId::from("none"), |running| running.push.clone());
            // A node has the files before it says so.
            match (step, &state.running) {
                (Step::Ready(node), Some(running)) => {
                    disks.get_mut(node).unwrap().insert(running.version.0);
                }
                (Step::Repair(index, node), _) => {
                    let version = version_of(*index);
                    if state.version(StoreVersion(version)).is_some_and(|entry| entry.state.is_kept()) {
                        disks.get_mut(node).unwrap().insert(version);
                    }
                }
                _ => {}
            }
            let command = command(step, &running, version_of);
            let expected = twin.step(step, now, version_of);
            match command.map(|command| state.apply(&command, &context)) {
                None => {
                    if let Some(running) = &mut state.running {
                        running.ready.clear();
                    }
                }
                Some(Ok(transition)) => {
                    prop_assert!(expected, "granted against the twin: {step:?}");
                    state = transition.state;
                    for effect in transition.effects {
                        if let Effect::Drop { version } = effect {
                            for disk in disks.values_mut() {
                                disk.remove(&version.0);
                            }
                        }
                    }
                }
                Some(Err(refusal)) => {
                    prop_assert!(!expected, "refused against the twin: {step:?}: {refusal}");
                    prop_assert!(!refusal.help().is_empty());
                }
            }
            if let Some(running) = &state.running && !ever.contains(&running.version.0) {
                prop_assert!(ever.iter().all(|before| *before < running.version.0 || *before == 7), "a number was used again");
                ever.push(running.version.0);
            }
            check(&state, &twin, &disks);
        }
    }
}
