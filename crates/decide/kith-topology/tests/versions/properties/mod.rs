//! Any interleaving of commands and crashes, compared with a naive twin and with nodes that keep only the versions that
//! they were asked to keep.

mod twin;

use kith_topology::versions::{
    Command, Context, Effect, HISTORY_MAX, Holders, Policy, PushId, StoreState, Trust, UnixMillis,
    VersionState,
};
use kith_types::{NodeId, StoreVersion};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use twin::Twin;

const NODES: u32 = 4;

/// Nodes 0 and 1 are one group, 2 and 3 the other: two partitions, two replicas.
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
    /// Cancels the push with this id, begun or not; `None` for the running one.
    Cancel(Option<u8>),
    Freeze,
    Thaw,
    /// The coordinator dies between two writes or during one, and what only it knew is lost.
    Crash,
    Recover,
    /// Indexes into all versions that ever existed.
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

/// Returns the node that has fetched a version by this step, and the version.
fn fetched(step: &Step, state: &StoreState, version_of: impl Fn(usize) -> u64) -> Option<(u32, u64)> {
    match step {
        Step::Ready(node) => Some((*node, state.running.as_ref()?.version.0)),
        Step::Repair(index, node) => {
            let version = version_of(*index);
            let entry = state.version(StoreVersion(version))?;
            entry.state.is_kept().then_some((*node, version))
        }
        _ => None,
    }
}

fn drop_files(effect: &Effect, disks: &mut BTreeMap<u32, BTreeSet<u64>>) {
    if let Effect::Drop { version } = effect {
        for disk in disks.values_mut() {
            disk.remove(&version.0);
        }
    }
}

fn numbers(state: &StoreState, wanted: VersionState) -> BTreeSet<u64> {
    let entries = state.versions.iter().filter(|entry| entry.state == wanted);
    entries.map(|entry| entry.version.0).collect()
}

/// Checks the invariants, which hold at every moment.
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
        let mut twin = Twin::new(2);
        let mut disks: BTreeMap<u32, BTreeSet<u64>> = (0..NODES).map(|node| (node, BTreeSet::new())).collect();
        let mut ever: Vec<u64> = vec![7];
        for (index, step) in steps.iter().enumerate() {
            // Sometimes the clock goes back.
            let now = if index % 7 == 3 { 5 } else { 10 * index as u64 + 10 };
            let context =
                Context { now: UnixMillis(now), who: "ada", standing: Trust::Claimed, holders: &holders, rebalance: None };
            let version_of = |index: usize| ever[index % ever.len()];
            let running = state.running.as_ref().map_or(PushId::from("none"), |running| running.push.clone());
            // A node has the files before it reports that.
            if let Some((node, version)) = fetched(step, &state, version_of) {
                disks.get_mut(&node).unwrap().insert(version);
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
                    transition.effects.iter().for_each(|effect| drop_files(effect, &mut disks));
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
