//! The execution of plans in a model world in which everything goes wrong: nodes die, copies fail, answers get lost, the
//! driver is killed, a user aborts.

use crate::shapes::{labelled, node, random_cluster, random_shape, random_stores};
use kith_routing::rebalance::{
    BeginRefusal, Conditions, CopyFault, Move, Phase, PlanOptions, RebalanceAction, RebalanceEnding,
    RebalanceEvent, RebalanceParts, RebalanceState, ResumeRefusal, StopReason, StoreSizes, TargetShape, plan,
};
use kith_routing::{GroupRole, RoutingTable, Strategy};
use kith_types::{Epoch, NodeId, PartitionId, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(60);

type Item = (NodeId, PartitionId, u32);

struct World {
    rng: StdRng,
    now: Timestamp,
    stores: Vec<StoreSizes>,
    /// The metadata: the table in force, the stored execution and its driver.
    table: RoutingTable,
    stored: RebalanceParts,
    driver: u64,
    /// Every table that was ever in force. Tables from `oldest` on are in use.
    history: Vec<RoutingTable>,
    oldest: Epoch,
    has: BTreeSet<Item>,
    /// The items that nodes lacked from the start, and those that abandoned copies left behind.
    lacked: BTreeSet<Item>,
    litter: BTreeSet<Item>,
    down: BTreeSet<NodeId>,
    state: Option<RebalanceState>,
    copies: BTreeMap<usize, Move>,
    /// Copies that were begun for a driver that is gone.
    orphans: Vec<Move>,
    /// The table to be written, and its driver.
    commit: Option<(RoutingTable, u64)>,
    reclaiming: Vec<(NodeId, PartitionId, Vec<u32>)>,
    ended: Option<RebalanceEnding>,
}

fn held(table: &RoutingTable, stores: &[StoreSizes], serving_only: bool) -> BTreeSet<Item> {
    let mut held = BTreeSet::new();
    for (number, store) in stores.iter().enumerate() {
        let groups = table.groups_of_store(&store.name, store.replication);
        for partition in table.partition_count().iter() {
            for (group, index) in table.replicas(partition).iter().enumerate() {
                let role = table.groups()[group].role;
                let counts = role == GroupRole::Serving || !serving_only && role != GroupRole::Joining;
                if counts && groups >> group & 1 == 1 {
                    held.insert((table.node_at(*index).id, partition, number as u32));
                }
            }
        }
    }
    held
}

impl World {
    fn new(seed: u64) -> Option<Self> {
        let mut rng = StdRng::seed_from_u64(seed);
        let table = random_cluster(&mut rng);
        let stores = random_stores(&table, &mut rng);
        let shape = random_shape(&table, &mut rng);
        let options = PlanOptions { batch_size: rng.random_range(1..9), seed, ..PlanOptions::default() };
        let plan = plan(&table, &shape, &stores, &options).ok()?;
        let state = RebalanceState::begin(plan, GRACE, &table, &Conditions::default()).unwrap();
        let mut has = held(&table, &stores, false);
        let lacks = |item: &Item| stores[item.2 as usize].excluded.contains(&item.0);
        let lacked: BTreeSet<Item> = has.iter().copied().filter(lacks).collect();
        has.retain(|item| !lacked.contains(item));
        let mut world = Self {
            rng,
            now: Timestamp::ZERO,
            stores,
            oldest: table.epoch(),
            history: vec![table.clone()],
            table,
            stored: state.parts().clone(),
            driver: 0,
            has,
            lacked,
            litter: BTreeSet::new(),
            down: BTreeSet::new(),
            state: Some(state),
            copies: BTreeMap::new(),
            orphans: Vec::new(),
            commit: None,
            reclaiming: Vec::new(),
            ended: None,
        };
        world.pump();
        Some(world)
    }

    /// Acts as the shell: asks what to do, stores the state, then does it.
    fn pump(&mut self) {
        let Some(state) = &mut self.state else { return };
        let actions = state.next(self.now);
        self.stored = state.parts().clone();
        self.act(actions);
    }

    fn act(&mut self, actions: Vec<RebalanceAction>) {
        for action in actions {
            match action {
                RebalanceAction::Copy(index) => {
                    let copy = self.state.as_ref().unwrap().parts().transfers[index].copy.clone();
                    self.check_donor(&copy);
                    let others = self.copies.values().filter(|other| other.donor == copy.donor);
                    assert!(
                        others.into_iter().all(|other| other.stealer == copy.stealer),
                        "two stealers of {}",
                        copy.donor
                    );
                    assert!(self.copies.insert(index, copy).is_none(), "copy {index} begun twice");
                }
                RebalanceAction::Cancel(index) => self.orphans.extend(self.copies.remove(&index)),
                RebalanceAction::Commit(parts) => {
                    let table = RoutingTable::new(*parts).unwrap();
                    self.commit = Some((table, self.driver));
                }
                RebalanceAction::Reclaim(node, partition, stores) => {
                    self.reclaiming.push((node, partition, stores))
                }
                RebalanceAction::Stopped(_) => {}
                RebalanceAction::Ended(ending) => self.ended = Some(ending),
            }
        }
    }

    fn check_donor(&self, copy: &Move) {
        for moved in &copy.stores {
            assert!(
                self.has.contains(&(copy.donor, copy.partition, moved.store)),
                "{} has not {copy:?}",
                copy.donor
            );
        }
    }

    fn tell(&mut self, event: RebalanceEvent) {
        if let Some(state) = &mut self.state {
            let actions = state.on(event, self.now);
            self.act(actions);
            self.pump();
        }
    }

    /// Checks the invariants.
    fn check(&self) {
        for table in self.history.iter().filter(|table| self.oldest <= table.epoch()) {
            for item in held(table, &self.stores, true) {
                let there = self.has.contains(&item) || self.lacked.contains(&item);
                assert!(
                    there,
                    "{item:?} is served by nobody at {} (in force: {})",
                    table.epoch(),
                    self.table.epoch()
                );
            }
        }
    }

    fn pick(&mut self, count: usize) -> usize {
        self.rng.random_range(0..count)
    }

    fn finish_copy(&mut self) {
        if self.copies.is_empty() {
            return;
        }
        let position = self.pick(self.copies.len());
        let (index, copy) =
            self.copies.iter().nth(position).map(|(index, copy)| (*index, copy.clone())).unwrap();
        if self.down.contains(&copy.donor) || self.down.contains(&copy.stealer) {
            return;
        }
        self.copies.remove(&index);
        let fault = match self.rng.random_range(0..20) {
            0 => Some(CopyFault::Transient),
            1 => Some(CopyFault::Stealer),
            2 => Some(CopyFault::Donor),
            _ => None,
        };
        match fault {
            Some(fault) => self.tell(RebalanceEvent::CopyFailed(index, fault)),
            None => {
                self.check_donor(&copy);
                self.has.extend(copy.stores.iter().map(|moved| (copy.stealer, copy.partition, moved.store)));
                self.tell(RebalanceEvent::Copied(index));
            }
        }
    }

    fn resolve_commit(&mut self) {
        let Some((table, driver)) = self.commit.take() else { return };
        if driver != self.driver {
            // Another driver has taken over: the compare-and-set fails, and its writer is gone.
            return;
        }
        if self.rng.random_bool(0.1) {
            // A conflict that changed nothing relevant here.
            return self.tell(RebalanceEvent::CommitRefused(Box::new(self.table.clone())));
        }
        self.table = table.clone();
        self.history.push(table);
        self.check();
        match self.rng.random_range(0..10) {
            0 => self.crash(),
            1 => self.tell(RebalanceEvent::CommitRefused(Box::new(self.table.clone()))),
            _ => self.tell(RebalanceEvent::Committed),
        }
    }

    fn crash(&mut self) {
        self.state = None;
        self.orphans.extend(std::mem::take(&mut self.copies).into_values());
        self.reclaiming.clear();
    }

    fn restart(&mut self) {
        if self.state.is_some() {
            return;
        }
        let mut state = RebalanceState::resume(self.stored.clone(), &self.table, self.now).unwrap();
        for node in &self.down {
            state.on(RebalanceEvent::NodeDown(*node), self.now);
        }
        self.state = Some(state);
        self.driver += 1;
        self.pump();
    }

    fn reclaim(&mut self) {
        if self.reclaiming.is_empty() {
            return;
        }
        let index = self.pick(self.reclaiming.len());
        let (node, partition, stores) = self.reclaiming.swap_remove(index);
        if self.down.contains(&node) {
            return;
        }
        for store in stores.clone() {
            self.has.remove(&(node, partition, store));
            self.litter.remove(&(node, partition, store));
        }
        self.tell(RebalanceEvent::Reclaimed(node, partition, stores));
    }

    fn toggle(&mut self) {
        let index = self.pick(self.table.nodes().len());
        let node = self.table.nodes()[index].id;
        if self.down.remove(&node) {
            self.tell(RebalanceEvent::NodeUp(node));
        } else {
            self.down.insert(node);
            self.reclaiming.retain(|(of, ..)| *of != node);
            self.tell(RebalanceEvent::NodeDown(node));
        }
    }

    fn litter(&mut self) {
        if self.orphans.is_empty() {
            return;
        }
        let index = self.pick(self.orphans.len());
        let copy = self.orphans.swap_remove(index);
        // Data that arrives late changes nothing for nodes that have it, and belongs to no other node.
        for moved in &copy.stores {
            let item = (copy.stealer, copy.partition, moved.store);
            if self.has.insert(item) {
                self.litter.insert(item);
            }
        }
    }

    fn step(&mut self, aborts: bool) {
        match self.rng.random_range(0..100) {
            0..45 => self.finish_copy(),
            45..60 => self.resolve_commit(),
            60..66 => self.reclaim(),
            66..70 => self.toggle(),
            70..73 => self.crash(),
            73..81 => self.restart(),
            81..84 => self.litter(),
            84..89 => {
                self.now = self.now + Duration::from_secs(self.rng.random_range(0..50));
                self.pump();
            }
            89..94 => {
                let newest = self.table.epoch().0;
                self.oldest = Epoch(self.rng.random_range(self.oldest.0..=newest));
                self.tell(RebalanceEvent::InUse(self.oldest));
            }
            94..99 => self.tell(RebalanceEvent::Continue),
            _ if aborts => self.tell(RebalanceEvent::Abort),
            _ => {}
        }
        self.check();
    }

    /// Lets everything heal, and stops fatal faults.
    fn settle(&mut self) {
        for _ in 0..20_000 {
            self.restart();
            for node in std::mem::take(&mut self.down) {
                self.tell(RebalanceEvent::NodeUp(node));
            }
            if self.state.as_ref().is_some_and(RebalanceState::is_settled) {
                return;
            }
            self.finish_copy();
            self.resolve_commit();
            self.reclaim();
            self.now = self.now + Duration::from_secs(5);
            self.oldest = self.table.epoch();
            self.tell(RebalanceEvent::InUse(self.oldest));
            self.tell(RebalanceEvent::Continue);
            self.check();
        }
        panic!("never settles: {:?}", self.state.as_ref().map(RebalanceState::phase));
    }
}

#[test]
fn whatever_happens_every_owner_has_what_it_owns_and_nothing_is_left_behind() {
    let (mut finished, mut aborted) = (0, 0);
    // Seed 3632: a node was asked twice to free one partition, of different stores, and one confirmation was taken for
    // both. After a crash, the other was forgotten.
    for seed in (0..600).chain([3632]) {
        let Some(mut world) = World::new(seed) else { continue };
        let begun = world.table.clone();
        for _ in 0..world.rng.random_range(0..400) {
            world.step(seed % 2 == 0);
        }
        world.settle();
        let state = world.state.take().unwrap();
        let plan = &state.parts().plan;
        match state.phase() {
            Phase::Ended(RebalanceEnding::Finished) => {
                finished += 1;
                assert_eq!(world.table.to_parts().owners, plan.check().unwrap().to_parts().owners);
            }
            Phase::Ended(RebalanceEnding::Aborted) => {
                aborted += 1;
                // The owners are those of an epoch of the plan. The list of nodes is the one before, plus new nodes that own
                // something by now.
                assert_eq!(world.table.groups(), begun.groups());
                for node in world.table.nodes() {
                    match begun.node(node.id) {
                        Some(before) => assert_eq!(node, before),
                        None => assert!(!world.table.partitions_of(node.id).is_empty()),
                    }
                }
            }
            other => panic!("seed {seed}: {other:?}"),
        }
        let expected = held(&world.table, &world.stores, false);
        let listed = |item: &&Item| world.table.node(item.0).is_some();
        let extra: Vec<_> = world
            .has
            .iter()
            .filter(listed)
            .filter(|item| !expected.contains(item) && !world.litter.contains(item))
            .collect();
        assert!(extra.is_empty(), "seed {seed}: not reclaimed: {extra:?}");
    }
    assert!(100 < finished && 20 < aborted, "{finished} finished, {aborted} aborted");
}

#[test]
fn equal_seeds_give_equal_histories() {
    let run = || {
        let mut world = World::new(5).unwrap();
        (0..300).for_each(|_| world.step(true));
        (world.history, world.has, world.stored)
    };
    assert_eq!(run(), run());
}

fn two_groups() -> (RoutingTable, RebalanceState) {
    let nodes = (0..4).map(|id| node(id, id / 2, "")).collect();
    let table = labelled(Strategy::ReplicaGroups, 2, nodes, 8, 3);
    let stores = [StoreSizes { name: "people".to_owned(), bytes: vec![10; 8], ..StoreSizes::default() }];
    let shape = TargetShape::AddNodes(vec![node(9, 0, "")]);
    let plan = plan(&table, &shape, &stores, &PlanOptions::default()).unwrap();
    let state = RebalanceState::begin(plan, GRACE, &table, &Conditions::default()).unwrap();
    (table, state)
}

/// Lets a state run to the first copies.
fn announced() -> RebalanceState {
    let (_, mut state) = two_groups();
    assert!(matches!(state.next(Timestamp::ZERO)[..], [RebalanceAction::Commit(_)]));
    assert_eq!(state.next(Timestamp::ZERO), [], "said once");
    state.on(RebalanceEvent::Committed, Timestamp::ZERO);
    state
}

#[test]
fn a_rebalance_does_not_begin_beside_a_push_or_on_another_table() {
    let (table, state) = two_groups();
    let plan = &state.parts().plan;
    let pushing = Conditions { push_running: Some("people".to_owned()), ..Conditions::default() };
    let refused = RebalanceState::begin(plan.clone(), GRACE, &table, &pushing).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a push of store people is running: wait for it or abort it, then rebalance"
    );
    let waiting = Conditions { reclaims_left: 3, ..Conditions::default() };
    let refused = RebalanceState::begin(plan.clone(), GRACE, &table, &waiting).unwrap_err();
    assert_eq!(refused, BeginRefusal::NotSettled { left: 3 });
    let mut parts = table.to_parts();
    parts.epoch = Epoch(9);
    let other = RoutingTable::new(parts).unwrap();
    let refused = RebalanceState::begin(plan.clone(), GRACE, &other, &Conditions::default()).unwrap_err();
    assert_eq!(refused, BeginRefusal::TableChanged { planned: Epoch(7), in_force: Epoch(9) });
    let refused = RebalanceState::resume(state.parts().clone(), &other, Timestamp::ZERO).unwrap_err();
    assert_eq!(refused, ResumeRefusal::TableChanged { stored: Epoch(7), in_force: Epoch(9) });
    let mut damaged = state.parts().clone();
    damaged.steps_done = 99;
    let refused = RebalanceState::resume(damaged, &table, Timestamp::ZERO).unwrap_err();
    assert_eq!(refused.to_string(), "the stored rebalance makes no sense: 99 steps are done of 2");
}

#[test]
fn another_replica_takes_the_place_of_a_dead_donor() {
    let mut state = announced();
    let donors = |state: &RebalanceState| {
        let open = state
            .parts()
            .transfers
            .iter()
            .filter(|transfer| transfer.state != kith_routing::rebalance::TransferState::Replaced);
        open.map(|transfer| transfer.copy.donor.0).collect::<BTreeSet<_>>()
    };
    assert_eq!(donors(&state), BTreeSet::from([0, 1]));
    let begun = state.next(Timestamp::ZERO).len();
    assert_eq!(begun, 2);
    let cancelled = state.on(RebalanceEvent::NodeDown(NodeId(0)), Timestamp::ZERO);
    assert!(matches!(cancelled[..], [RebalanceAction::Cancel(_)]));
    assert!(matches!(state.next(Timestamp::ZERO)[..], [RebalanceAction::Copy(_)]));
    let donors = donors(&state);
    assert!(!donors.contains(&0) && donors.iter().any(|donor| 2 <= *donor), "group 1 gives: {donors:?}");
}

#[test]
fn a_copy_that_fails_again_and_again_comes_from_another_replica_before_a_person_is_asked() {
    let mut state = announced();
    state.next(Timestamp::ZERO);
    let fail = |state: &mut RebalanceState, index| {
        let mut said = Vec::new();
        for _ in 0..5 {
            assert_eq!(said, []);
            said = state.on(RebalanceEvent::CopyFailed(index, CopyFault::Transient), Timestamp::ZERO);
            state.next(Timestamp::ZERO);
        }
        said
    };
    let first = state.parts().transfers[0].copy.clone();
    assert_eq!(fail(&mut state, 0), []);
    let second = state.parts().transfers[2].copy.clone();
    assert_eq!((second.partition, second.stealer), (first.partition, first.stealer));
    assert!(first.donor.0 < 2 && 2 <= second.donor.0, "the other group gives");
    let (partition, donor, stealer) = (first.partition, second.donor, first.stealer);
    let reason = StopReason::CopyFailed { partition, donor, stealer };
    assert_eq!(fail(&mut state, 2), [RebalanceAction::Stopped(reason)]);
    state.on(RebalanceEvent::Continue, Timestamp::ZERO);
    assert_eq!(state.next(Timestamp::ZERO), [RebalanceAction::Copy(2)]);
}

#[test]
fn a_dead_stealer_stops_it_until_a_person_decides() {
    let mut state = announced();
    state.next(Timestamp::ZERO);
    state.on(RebalanceEvent::NodeDown(NodeId(9)), Timestamp::ZERO);
    let reason = StopReason::StealerDown { node: NodeId(9) };
    assert_eq!(reason.to_string(), "stealer n9 is down: bring it back and go on, or abort");
    assert_eq!(state.next(Timestamp::ZERO), [RebalanceAction::Stopped(reason.clone())]);
    // Continuing does not help while it is down.
    state.on(RebalanceEvent::Continue, Timestamp::ZERO);
    assert_eq!(state.next(Timestamp::ZERO), [RebalanceAction::Stopped(reason)]);
    state.on(RebalanceEvent::NodeUp(NodeId(9)), Timestamp::ZERO);
    assert_eq!(state.next(Timestamp::ZERO), []);
    state.on(RebalanceEvent::Continue, Timestamp::ZERO);
    assert_eq!(state.next(Timestamp::ZERO).len(), 2);
    assert_eq!(state.progress().moves_done, 0);
    state.on(RebalanceEvent::Copied(0), Timestamp::ZERO);
    let progress = state.progress();
    assert_eq!((progress.moves_done, progress.moves, progress.bytes_done, progress.bytes), (1, 2, 10, 20));
}

#[test]
fn what_was_given_up_is_kept_for_the_grace_and_for_whoever_uses_the_old_table() {
    let mut state = announced();
    state.next(Timestamp::ZERO);
    for index in 0..2 {
        state.on(RebalanceEvent::Copied(index), Timestamp::ZERO);
    }
    assert!(matches!(state.next(Timestamp::ZERO)[..], [RebalanceAction::Commit(_)]));
    state.on(RebalanceEvent::Committed, Timestamp::ZERO);
    assert_eq!(state.next(Timestamp::ZERO), [RebalanceAction::Ended(RebalanceEnding::Finished)]);
    assert!(!state.is_settled());
    let late = Timestamp::ZERO + GRACE * 2;
    assert_eq!(state.next(late), [], "a table is still in use that names the donors");
    state.on(RebalanceEvent::InUse(state.table().epoch), late);
    assert_eq!(state.next(Timestamp::ZERO), [], "the grace has not passed");
    let reclaims = state.next(late);
    assert_eq!(reclaims.len(), 2);
    for action in reclaims {
        let RebalanceAction::Reclaim(node, partition, stores) = action else { panic!("{action:?}") };
        assert!(node.0 < 2 && stores == [0]);
        state.on(RebalanceEvent::Reclaimed(node, partition, stores), late);
    }
    assert!(state.is_settled());
}

#[test]
fn a_table_changed_by_another_is_left_alone() {
    let (table, mut state) = two_groups();
    state.next(Timestamp::ZERO);
    let mut parts = table.to_parts();
    parts.epoch = Epoch(30);
    let other = Box::new(RoutingTable::new(parts).unwrap());
    let said = state.on(RebalanceEvent::CommitRefused(other), Timestamp::ZERO);
    assert_eq!(said, [RebalanceAction::Stopped(StopReason::TableChanged { in_force: Epoch(30) })]);
    state.on(RebalanceEvent::Continue, Timestamp::ZERO);
    assert_eq!(state.next(Timestamp::ZERO), []);
    state.on(RebalanceEvent::Abort, Timestamp::ZERO);
    assert_eq!(state.next(Timestamp::ZERO), [RebalanceAction::Ended(RebalanceEnding::Aborted)]);
}

/// The end of such an abort was not reported: only aborts that write nothing reported that they are over.
#[test]
fn an_abort_that_writes_a_table_says_that_it_is_over() {
    let mut state = announced();
    state.next(Timestamp::ZERO);
    state.on(RebalanceEvent::Abort, Timestamp::ZERO);
    let is_commit = |action: &RebalanceAction| matches!(action, RebalanceAction::Commit(_));
    assert!(state.next(Timestamp::ZERO).iter().any(is_commit), "the new node is taken off the list");
    state.on(RebalanceEvent::Committed, Timestamp::ZERO);
    assert_eq!(state.next(Timestamp::ZERO), [RebalanceAction::Ended(RebalanceEnding::Aborted)]);
    assert_eq!(state.next(Timestamp::ZERO), [], "once");
}

/// On a ring, a batch may bring back what an earlier one took away. If it is then aborted, the node keeps the data as long
/// as a table that names it as an owner may be in use.
#[test]
fn what_a_ring_brings_back_is_not_thrown_away_by_an_abort() {
    let mut met = 0;
    for seed in 0..3_000 {
        let nodes = (0..5).map(|id| node(id, 0, "")).collect();
        let table = labelled(Strategy::Ring, 3, nodes, 20, seed);
        let stores = [StoreSizes { name: "people".to_owned(), bytes: vec![10; 20], ..StoreSizes::default() }];
        let shape = TargetShape::RemoveNodes(vec![NodeId(0), NodeId(1)]);
        let options = PlanOptions { batch_size: 1, seed, ..PlanOptions::default() };
        let plan = plan(&table, &shape, &stores, &options).unwrap();
        let mut state = RebalanceState::begin(plan, GRACE, &table, &Conditions::default()).unwrap();
        let late = Timestamp::ZERO + GRACE * 2;
        while !matches!(state.phase(), Phase::Ended(_)) {
            let pending: BTreeSet<_> =
                state.parts().reclaims.iter().map(|old| (old.node, old.partition)).collect();
            let copies = state.parts().transfers.iter().map(|transfer| &transfer.copy);
            let again =
                copies.map(|copy| (copy.stealer, copy.partition)).find(|position| pending.contains(position));
            if let Some((node, partition)) = again {
                met += 1;
                let mut aborted = state.clone();
                aborted.on(RebalanceEvent::Abort, late);
                let freed = |action: &RebalanceAction| matches!(action, RebalanceAction::Reclaim(of, what, _) if (*of, *what) == (node, partition));
                assert!(
                    !aborted.next(late).iter().any(freed),
                    "seed {seed}: freed while an old table is in use"
                );
            }
            for action in state.next(Timestamp::ZERO) {
                match action {
                    RebalanceAction::Copy(index) => {
                        drop(state.on(RebalanceEvent::Copied(index), Timestamp::ZERO))
                    }
                    RebalanceAction::Commit(_) => drop(state.on(RebalanceEvent::Committed, Timestamp::ZERO)),
                    _ => {}
                }
            }
        }
        if 20 < met {
            return;
        }
    }
    panic!("met {met} times only");
}
