//! Random runs with takeovers while the deposed leader is still running, crashes, lost answers, late and repeated
//! deliveries, and repeated writes. `KITH_RUNS` sets the number of runs. A run that fails prints its seed.

use super::client::State;
use super::world::{PendingTask, World};
use super::*;
use crate::leader::{CommitResult, Event};
use crate::{Conditions, Guards, Mutation, Write, fixture};
use kith_types::PartitionId;
use std::time::Duration;

const RUNS: u64 = 5_000;
/// The number of runs among which one must show what a rule prevents.
const SEARCHED: u64 = 30_000;

/// The random number generator SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

pub(super) struct Explorer {
    pub(super) world: World,
    random: Random,
    /// The pairs of ids that writes concern.
    pairs: Vec<(u64, u64)>,
    /// The association types that writes name.
    kinds: Vec<&'static str>,
    operations_max: usize,
    /// Whether faults are frequent.
    rough: bool,
    /// On average, one in this many steps takes the oldest pending item. All others take a random one.
    order: usize,
    /// Whether callers give up and repeat soon, while requests take long to arrive.
    hasty: bool,
    /// Whether the writes only add and delete a few associations.
    narrow: bool,
    /// Objects with indexes, which most writes then concern.
    accounts: Vec<u64>,
    /// Requests and deliveries that take long to arrive.
    slow: Vec<PendingTask>,
}

impl Explorer {
    fn new(seed: u64, guards: Guards, trusts_errors: bool) -> Self {
        let mut random = Random(seed);
        let partitions = 2 + u32::from(random.one_in(4));
        let mut world = World::new(2 + random.below(2), partitions, guards);
        world.client.trusts_errors_of_repeats = trusts_errors;
        let [a, b] =
            [0, 1].map(|it| ids_in(PartitionId(it), world.twin.count).take(40).collect::<Vec<u64>>());
        // Two pairs that partition 0 orders, with their other ends in partition 1; a pair that partition 1 orders, with its
        // other end in partition 0; a pair in partition 0; and an object with itself.
        let after = |ids: &[u64], low: u64| *ids.iter().find(|id| low < **id).unwrap();
        let mut pairs = vec![(a[0], after(&b, a[0])), (a[1], after(&b, a[1]))];
        pairs.extend([(b[0], after(&a, b[0])), (a[0], a[1]), (a[0], a[0])]);
        pairs.truncate(1 + random.below(5));
        let mut kinds: Vec<&str> =
            (0..1 + random.below(3)).map(|_| random.pick(&fixture::NAMES[1..6])).collect();
        if random.one_in(2) {
            kinds.push("friend");
        }
        let (operations_max, rough) = (3 + random.below(12), random.one_in(2));
        let (order, hasty, narrow) = (1 + random.below(6), random.one_in(2), random.one_in(2));
        if narrow {
            pairs.truncate(2);
            kinds = vec![random.pick(&fixture::NAMES[2..6])];
        }
        let (accounts, slow) = (Vec::new(), Vec::new());
        Self { world, random, pairs, kinds, operations_max, rough, order, hasty, narrow, accounts, slow }
    }

    /// Returns a run most of whose writes want few unique values, for objects of different partitions.
    pub(super) fn of_accounts(seed: u64, guards: Guards) -> Self {
        let mut explorer = Self::new(seed, guards, false);
        let ids = |partition| ids_in(partition, explorer.world.twin.count).skip(50).take(2);
        explorer.accounts = explorer.world.twin.count.iter().flat_map(ids).collect();
        explorer.operations_max = 10 + explorer.random.below(6);
        explorer
    }

    /// Returns a write to an object with indexes.
    fn account_write(&mut self) -> Mutation {
        let accounts = self.accounts.clone();
        let id = self.random.pick(&accounts);
        let value = self.random.pick(&["null", "1", "1", "2"]);
        let data = self.random.pick(&[format!("{{\"b\":{value}}}"), "{\"a\":7}".to_owned()]);
        match self.random.below(6) {
            0..3 => {
                let (kind, data) = ("account".to_owned(), Some(data));
                Mutation::AddObject { kind, data, id: Some(id), near: None, text_id: None }
            }
            3 | 4 => Mutation::UpdateObject { id, data },
            _ => Mutation::DeleteObject { id },
        }
    }

    fn write(&mut self) -> Write {
        let number = self.world.client.operations.len() as u64;
        let (one, other) = self.random.pick(&self.pairs);
        let (id1, id2) = if self.narrow || self.random.one_in(2) { (one, other) } else { (other, one) };
        let kind = self.random.pick(&self.kinds).to_owned();
        let choice = if self.narrow { 2 + self.random.below(8) } else { self.random.below(12) };
        let mutation = match choice {
            _ if !self.accounts.is_empty() && !self.random.one_in(6) => self.account_write(),
            0 => Mutation::AddObject {
                kind: "user".to_owned(),
                data: None,
                id: Some(id1),
                near: None,
                text_id: None,
            },
            1 => Mutation::DeleteObject { id: id1 },
            2..7 => Mutation::AddAssociation { id1, kind, id2, time: Some(number + 1), data: None },
            7..10 => Mutation::DeleteAssociation { id1, kind, id2 },
            _ => {
                let new_kind = self.random.pick(&fixture::NAMES[2..6]).to_owned();
                Mutation::ChangeType { id1, kind, id2, new_kind }
            }
        };
        let if_exists = match self.accounts.is_empty() {
            true => self.random.pick(&[None, None, Some(true), Some(false)]),
            false => None,
        };
        let write_id = (!self.random.one_in(4)).then(|| format!("w{number}").parse().unwrap());
        Write { mutation, conditions: Conditions { if_exists, if_version: None }, write_id }
    }

    /// Returns the node that a router believes to be the leader, which is right most of the time.
    fn node_for(&mut self, write: &Write) -> usize {
        let nodes = self.world.nodes.len();
        let partition = crate::ordering_partition(write, &self.world.twin.types, self.world.twin.count);
        match partition {
            Ok(partition) if !self.random.one_in(5) => self.world.leaders[&partition].0,
            _ => self.random.below(nodes),
        }
    }

    fn step(&mut self) {
        let rough = if self.rough { 12 } else { 60 };
        match self.random.below(rough) {
            0 => self.fault(),
            1..4 => self.caller(),
            4 => self.world.pass(Duration::from_millis(20 << self.random.below(7))),
            _ => {}
        }
        if self.world.pending.is_empty() {
            return self.world.pass(Duration::from_millis(100));
        }
        let at = if self.random.one_in(self.order) { 0 } else { self.random.below(self.world.pending.len()) };
        let pending = self.world.pending.remove(at);
        self.happen(pending);
    }

    fn fault(&mut self) {
        let nodes = self.world.nodes.len();
        let partition = PartitionId(self.random.below(self.world.twin.count.get() as usize) as u32);
        match self.random.below(5) {
            0 | 1 => self.world.elect(partition, self.random.below(nodes)),
            2 => self.world.crash(self.random.below(nodes)),
            3 => {
                let (node, _) = self.world.leaders[&partition];
                self.world.pending.push(PendingTask::Event { node, event: Event::HandOver { partition } });
            }
            _ => {
                // One node becomes the leader of all partitions, while the old leaders go on.
                let node = self.random.below(nodes);
                self.world.twin.count.iter().for_each(|partition| self.world.elect(partition, node));
            }
        }
    }

    fn caller(&mut self) {
        let before = self.world.pending.len();
        self.call();
        if before < self.world.pending.len() && self.hasty && self.random.one_in(2) {
            self.slow.extend(self.world.pending.pop());
        }
        if self.random.one_in(4) && !self.slow.is_empty() {
            let at = self.random.below(self.slow.len());
            self.world.pending.push(self.slow.remove(at));
        }
    }

    fn call(&mut self) {
        let operations = self.world.client.operations.len();
        if operations < self.operations_max && self.random.one_in(2) {
            let write = self.write();
            let node = self.node_for(&write);
            self.world.submit(node, write);
        } else if operations != 0 {
            let operation = self.random.below(operations);
            if self.world.client.may_repeat(operation) {
                let write = self.world.client.operations[operation].write.clone();
                let node = self.node_for(&write);
                self.world.repeat(node, operation);
            } else if self.hasty || self.random.one_in(4) {
                self.world.client.give_up(operation);
            }
        }
    }

    fn happen(&mut self, pending: PendingTask) {
        let goes_wrong = self.random.one_in(if self.rough { 4 } else { 20 });
        match pending {
            PendingTask::Commit { node, commit, batch } if goes_wrong => {
                let result = match self.random.below(4) {
                    0 => CommitResult::Refused,
                    1 => {
                        drop(self.world.twin.commit(&batch));
                        CommitResult::Unknown
                    }
                    _ => {
                        self.world.pending.push(PendingTask::LateCommit { batch });
                        CommitResult::Unknown
                    }
                };
                self.world.tell(node, Event::Committed { commit, result });
            }
            // Databases may name only one of the partitions that are led elsewhere.
            PendingTask::Commit { node, commit, batch } if self.random.one_in(2) => {
                let result = match self.world.twin.commit(&batch) {
                    Ok(()) => CommitResult::Done,
                    Err(CommitResult::Elsewhere(ends)) => {
                        CommitResult::Elsewhere(ends.into_iter().take(1).collect())
                    }
                    Err(result) => result,
                };
                self.world.tell(node, Event::Committed { commit, result });
            }
            PendingTask::LateCommit { .. } if self.random.one_in(3) => {}
            PendingTask::BeginTerm { node, partition, term } if goes_wrong => {
                if self.random.one_in(2) {
                    let _ = self.world.twin.begin_term(partition, term);
                }
                self.world.tell(node, Event::TermUnknown { partition, term });
            }
            PendingTask::Load { node, load, .. } if goes_wrong => {
                self.world.tell(node, Event::LoadFailed { load })
            }
            PendingTask::Load { node, load, queries } if self.random.one_in(2) => {
                self.world.load_outdated(node, load, &queries);
            }
            PendingTask::Deliver { .. } if self.random.one_in(4) => self.slow.push(pending),
            PendingTask::Deliver { node, from, to, delivery } => {
                if self.random.one_in(2) {
                    self.world.pending.push(PendingTask::LateDelivery { to, delivery: delivery.clone() });
                }
                if goes_wrong {
                    let (partition, stamp) = (from, delivery.intent.stamp);
                    return self.world.tell(node, Event::DeliveryFailed { partition, stamp });
                }
                let lost = self.random.one_in(6);
                let to =
                    if lost { self.random.below(self.world.nodes.len()) } else { self.world.leaders[&to].0 };
                self.world.deliver(to, node, from, delivery);
            }
            PendingTask::LateDelivery { .. } if !self.random.one_in(8) => {
                // The copy stays pending, so it may arrive more than once.
                self.world.pending.push(pending.clone());
                if self.random.one_in(8) {
                    self.world.happen(pending);
                }
            }
            other => self.world.happen(other),
        }
    }

    pub(super) fn run(&mut self) -> Vec<String> {
        for _ in 0..400 {
            self.step();
            if !self.world.twin.faults.is_empty() {
                return std::mem::take(&mut self.world.twin.faults);
            }
        }
        for operation in 0..self.world.client.operations.len() {
            self.world.client.give_up(operation);
        }
        self.world.pending.append(&mut self.slow);
        self.world.heal();
        self.world.verdict()
    }
}

fn runs() -> u64 {
    std::env::var("KITH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS)
}

#[test]
fn no_run_breaks_a_promise() {
    let mut counts = [0; 4];
    for seed in 0..runs() {
        let mut explorer = Explorer::new(seed, Guards::default(), false);
        assert_eq!(explorer.run(), [""; 0], "seed {seed}");
        for operation in &explorer.world.client.operations {
            counts[match operation.state {
                State::Done(_) => 0,
                State::Refused(_) => 1,
                State::Failed => 2,
                State::Running | State::Unknown => 3,
            }] += 1;
        }
    }
    // The runs would show little if most callers got the same answer.
    assert!(counts.iter().all(|times| runs() / 5 < *times), "done, refused, failed, unknown: {counts:?}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        let mut explorer = Explorer::new(seed, Guards::default(), false);
        explorer.run();
        (explorer.world.clock, explorer.world.now, explorer.world.twin.associations())
    };
    assert_eq!(run(7), run(7));
}

/// Whether one of the runs breaks a promise under these rules.
fn is_violated(guards: Guards, trusts_errors: bool) -> bool {
    (0..SEARCHED).any(|seed| !Explorer::new(seed, guards, trusts_errors).run().is_empty())
}

#[test]
fn without_a_rule_some_run_breaks_a_promise() {
    let all = Guards::default();
    let without = [
        ("forward_last", Guards { forward_last: false, ..all }),
        ("intents_block", Guards { intents_block: false, ..all }),
        ("refusals_recorded", Guards { refusals_recorded: false, ..all }),
        ("removed_rows_keep_stamps", Guards { removed_rows_keep_stamps: false, ..all }),
        ("stamps_kept_until_floor", Guards { stamps_kept_until_floor: false, ..all }),
        ("floor_refuses", Guards { floor_refuses: false, ..all }),
        ("floor_below_intents", Guards { floor_below_intents: false, ..all }),
        ("unknown_settled", Guards { unknown_settled: false, ..all }),
        ("answers_proven", Guards { answers_proven: false, ..all }),
    ];
    for (rule, guards) in without {
        assert!(is_violated(guards, false), "nothing shows what {rule} prevents");
    }
    assert!(is_violated(all, true), "nothing shows that the error of a repeat proves nothing");
}
