//! Random schedules of everything that can happen to an execution, compared with a simple model. A failing seed is printed;
//! make it a named test.

mod support;

use kith_routing::execution::{
    Action, Budgets, Disposition, Event, ExecutionOptions, FailureClass, MissingReason, Outcome, RequestId,
    Verdict,
};
use kith_routing::{
    Availability, Execution, GroupLimit, LoadSnapshot, PolicyInputs, PolicyState, RoutingTable, policy,
};
use kith_types::{Epoch, NodeId, PartitionId, StoreVersion, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use support::{damaged, random_keys, table};

const SCHEDULES: u64 = 120_000;

#[derive(Clone, Debug, PartialEq)]
enum Key {
    Waiting,
    Asked(RequestId),
    Answered,
}

/// The invariants of an execution, checked from its actions alone.
struct Model {
    partitions: Vec<PartitionId>,
    keys: Vec<Key>,
    /// The nodes that each key was ever requested from.
    asked: Vec<Vec<NodeId>>,
    open: BTreeMap<RequestId, (NodeId, Vec<u32>)>,
    sent: u32,
    outcome: Option<Outcome>,
}

impl Model {
    fn take(&mut self, action: Action) {
        assert!(self.outcome.is_none(), "{action:?} after the end");
        match action {
            Action::Send { request, node, keys, .. } => {
                assert_eq!(request.0, self.sent, "requests are numbered as they are sent");
                self.sent += 1;
                assert!(!keys.is_empty() && keys.is_sorted());
                for key in keys.iter() {
                    let state = &mut self.keys[*key as usize];
                    assert_eq!(*state, Key::Waiting, "key {key} is under way or answered already");
                    *state = Key::Asked(request);
                    let asked = &mut self.asked[*key as usize];
                    assert!(!asked.contains(&node), "key {key} is asked of {node} twice");
                    asked.push(node);
                }
                self.open.insert(request, (node, keys.to_vec()));
            }
            Action::Use { request } => panic!("{request:?} is no hedge: nothing is held"),
            Action::Cancel { request, .. } => {
                let (_, keys) = self.open.remove(&request).expect("only open requests are cancelled");
                keys.iter().for_each(|key| self.keys[*key as usize] = Key::Waiting);
            }
            Action::Refresh { epoch } => assert!(Epoch(0) < epoch),
            Action::Finish(outcome) => self.outcome = Some(outcome),
        }
    }

    /// Records that a request is over. The keys for which `failed` is true have no answer.
    fn close(&mut self, request: RequestId, failed: &dyn Fn(u32) -> bool) {
        let (_, keys) = self.open.remove(&request).expect("an open request");
        for key in keys {
            self.keys[key as usize] = if failed(key) { Key::Waiting } else { Key::Answered };
        }
    }

    fn answered(&self) -> u32 {
        self.keys.iter().filter(|key| **key == Key::Answered).count() as u32
    }
}

struct Run {
    rng: StdRng,
    table: RoutingTable,
    availability: Availability,
    options: ExecutionOptions,
    execution: Execution,
    budgets: Budgets,
    model: Model,
    now: Timestamp,
    cancelled: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let (groups, nodes) = (rng.random_range(1..=4), rng.random_range(1..=4));
        let table = table(groups, nodes, rng.random_range(nodes..=12), seed);
        let availability =
            if rng.random_bool(0.3) { damaged(&table, seed) } else { Availability::all(&table) };
        let count = rng.random_range(0..=16);
        let partitions = random_keys(&table, count, &mut rng);
        let options = ExecutionOptions {
            deadline: rng.random_bool(0.5).then(|| Timestamp(Duration::from_millis(rng.random_range(0..60)))),
            partial: rng.random_bool(0.5),
            stop_early: rng.random_bool(0.3),
            retries_max: rng.random_range(0..=3),
            seed,
            ..ExecutionOptions::default()
        };
        let policy = policy::ALL[rng.random_range(0..policy::ALL.len())];
        let (mut state, load) = (PolicyState::new(seed), LoadSnapshot::default());
        let limit = GroupLimit(rng.random_range(1..=groups));
        let view = table.view(&availability);
        let inputs = PolicyInputs { view, keys: &partitions, limit, load: &load };
        let plan = policy::plan_what_is_up(policy, &inputs, &mut state, &mut rng).expect("partitions exist");
        let execution = Execution::new(&plan, &partitions, options, Timestamp::ZERO);
        let model = Model {
            keys: vec![Key::Waiting; count],
            asked: vec![Vec::new(); count],
            partitions,
            open: BTreeMap::new(),
            sent: 0,
            outcome: None,
        };
        let budgets = Budgets::unlimited();
        let now = Timestamp::ZERO;
        Self { rng, table, availability, options, execution, budgets, model, now, cancelled: false }
    }

    fn go(mut self) -> Outcome {
        self.next();
        let mut steps = 0;
        while self.model.outcome.is_none() {
            assert!(!self.model.open.is_empty(), "nothing is under way and it has not ended");
            self.step();
            self.next();
            steps += 1;
            assert!(steps < 2_000, "it does not end");
        }
        self.check_end();
        self.check_silence();
        self.model.outcome.expect("it ended")
    }

    fn next(&mut self) {
        let actions = self.execution.next(&self.table.view(&self.availability), &mut self.budgets);
        actions.into_iter().for_each(|action| self.model.take(action));
        assert_eq!(self.execution.outstanding(), self.model.open.len());
        assert_eq!(self.execution.is_finished(), self.model.outcome.is_some());
    }

    /// Makes one random event happen.
    fn step(&mut self) {
        self.now = self.now + Duration::from_millis(self.rng.random_range(0..5));
        match self.rng.random_range(0..100) {
            0..45 => self.reply(),
            45..50 => self.reply_in_part(),
            50..55 => self.reply_so_far(),
            55..75 => self.fail(),
            75..82 => self.lose_node(),
            82..86 => self.stray(),
            86..90 => self.availability = damaged(&self.table, self.rng.random_range(0..50)),
            90..94 => self.deadline(),
            94..98 => self.satisfied(),
            _ if self.rng.random_bool(0.2) => {
                self.cancelled = true;
                assert_eq!(self.execution.on(Event::Cancelled, self.now), Disposition::Accepted);
            }
            _ => {}
        }
    }

    fn some_open(&mut self) -> RequestId {
        let index = self.rng.random_range(0..self.model.open.len());
        *self.model.open.keys().nth(index).expect("in range")
    }

    fn class(&mut self) -> FailureClass {
        let classes = [
            FailureClass::Connection,
            FailureClass::Timeout,
            FailureClass::NotOwner { epoch: Epoch(self.rng.random_range(1..4)) },
            FailureClass::VersionUnavailable { version: StoreVersion(2) },
            FailureClass::OtherPosition,
            FailureClass::Damaged,
            FailureClass::Unsupported,
            FailureClass::Internal,
            FailureClass::Overloaded,
            FailureClass::DeadlineExceeded,
            FailureClass::Cancelled,
            FailureClass::BadRequest,
        ];
        // Mostly choose failures that another replica can compensate for.
        let last = if self.rng.random_bool(0.9) { 8 } else { classes.len() };
        classes[self.rng.random_range(0..last)]
    }

    fn reply(&mut self) {
        let request = self.some_open();
        self.accept(Event::Reply { request });
        self.model.close(request, &|_| false);
    }

    fn reply_in_part(&mut self) {
        let request = self.some_open();
        let class = self.class();
        let keys = self.model.open[&request].1.clone();
        let failed: Vec<(u32, FailureClass)> =
            keys.iter().filter(|_| self.rng.random_bool(0.4)).map(|key| (*key, class)).collect();
        self.accept(Event::ReplyInPart { request, failed: failed.clone() });
        self.model.close(request, &|key| failed.iter().any(|(failed, _)| *failed == key));
    }

    /// Answers the first of the keys that a request still owes.
    fn reply_so_far(&mut self) {
        let request = self.some_open();
        let class = self.class();
        let (_, owed) = self.model.open.get_mut(&request).expect("it is open");
        let count = self.rng.random_range(0..owed.len());
        let keys: Vec<u32> = owed.drain(..count).collect();
        let failed: Vec<(u32, FailureClass)> =
            keys.iter().filter(|_| self.rng.random_bool(0.2)).map(|key| (*key, class)).collect();
        self.accept(Event::ReplySoFar { request, keys: count as u32, failed: failed.clone() });
        for key in keys {
            let lost = failed.iter().any(|(failed, _)| *failed == key);
            self.model.keys[key as usize] = if lost { Key::Waiting } else { Key::Answered };
        }
    }

    fn fail(&mut self) {
        let (request, class) = (self.some_open(), self.class());
        self.accept(Event::Failed { request, class });
        self.model.close(request, &|_| true);
    }

    fn lose_node(&mut self) {
        let node = NodeId(self.rng.random_range(0..self.table.nodes().len() as u32));
        let owes = self.model.open.values().any(|(asked, _)| *asked == node);
        let expected = if owes { Disposition::Accepted } else { Disposition::Ignored };
        assert_eq!(self.execution.on(Event::NodeDown { node }, self.now), expected);
        if self.rng.random_bool(0.7) {
            self.availability.mark_down(self.table.node_index(node).expect("a node of the table"));
        }
    }

    /// Reports the answer of a request that is over or never existed.
    fn stray(&mut self) {
        let request = RequestId(self.rng.random_range(0..self.model.sent + 3));
        if !self.model.open.contains_key(&request) {
            let class = self.class();
            assert_eq!(self.execution.on(Event::Reply { request }, self.now), Disposition::Ignored);
            assert_eq!(self.execution.on(Event::Failed { request, class }, self.now), Disposition::Ignored);
        }
    }

    fn deadline(&mut self) {
        let due = self.options.deadline.is_some_and(|deadline| deadline <= self.now);
        let expected = if due { Disposition::Accepted } else { Disposition::Ignored };
        assert_eq!(self.execution.on(Event::Deadline, self.now), expected);
    }

    fn satisfied(&mut self) {
        let expected = if self.options.stop_early { Disposition::Accepted } else { Disposition::Ignored };
        assert_eq!(self.execution.on(Event::Satisfied, self.now), expected);
    }

    fn accept(&mut self, event: Event) {
        assert_eq!(self.execution.on(event, self.now), Disposition::Accepted);
    }

    fn check_end(&self) {
        let outcome = self.model.outcome.as_ref().expect("it ended");
        assert!(self.model.open.is_empty(), "requests are left open");
        assert_eq!(outcome.keys as usize, self.model.keys.len());
        assert_eq!(outcome.answered, self.model.answered());
        assert_eq!(outcome.answered + outcome.missing_keys() + outcome.abandoned, outcome.keys);
        assert_eq!(outcome.requests, self.model.sent);
        assert!(self.model.asked.iter().all(|asked| asked.len() as u32 <= 1 + self.options.retries_max));
        assert!(outcome.missing.is_sorted_by_key(|missing| missing.partition));
        for missing in &outcome.missing {
            // Keys that a node which seems down still owes are requested elsewhere, or waited for.
            assert_ne!(
                missing.reason,
                MissingReason::Failed(FailureClass::NodeDown),
                "{missing:?}: nobody failed it"
            );
            let waiting = |key: &usize| {
                self.model.partitions[*key] == missing.partition && self.model.keys[*key] == Key::Waiting
            };
            let waiting = (0..self.model.keys.len()).filter(waiting).count();
            assert!(missing.keys as usize <= waiting, "{missing:?}: answered keys are said to be missing");
        }
        match outcome.verdict {
            Verdict::Complete if outcome.stopped_early => assert!(self.options.stop_early),
            Verdict::Complete => assert_eq!(outcome.answered, outcome.keys),
            Verdict::Incomplete => {
                assert!(self.options.partial && 0 < outcome.missing_keys() && outcome.abandoned == 0);
            }
            Verdict::Failed => assert!(!outcome.missing.is_empty()),
            Verdict::Cancelled => assert!(self.cancelled),
        }
        if outcome.verdict == Verdict::Failed && !self.options.partial {
            self.check_nothing_was_left_to_try(outcome);
        }
    }

    /// A failure that another replica could have compensated for must be final only if there was no such replica, or no
    /// retry left.
    fn check_nothing_was_left_to_try(&self, outcome: &Outcome) {
        let view = self.table.view(&self.availability);
        for missing in &outcome.missing {
            let MissingReason::Failed(class) = missing.reason else { continue };
            let final_in_itself = matches!(
                class,
                FailureClass::Overloaded
                    | FailureClass::DeadlineExceeded
                    | FailureClass::Cancelled
                    | FailureClass::BadRequest
            );
            let spent = self.options.retries_max < missing.tried.len() as u32;
            let fresh =
                view.replicas(missing.partition).any(|node| !missing.tried.contains(&view.node(node).id));
            assert!(final_in_itself || spent || !fresh, "{missing:?} could have been tried again");
        }
    }

    /// Checks that no event has an effect after the end.
    fn check_silence(&mut self) {
        for request in (0..self.model.sent).map(RequestId) {
            assert_eq!(self.execution.on(Event::Reply { request }, self.now), Disposition::Ignored);
        }
        assert_eq!(self.execution.on(Event::Cancelled, self.now), Disposition::Ignored);
        assert!(self.execution.next(&self.table.view(&self.availability), &mut self.budgets).is_empty());
    }
}

#[test]
fn any_schedule_ends_once_with_every_key_accounted_for() {
    let mut verdicts: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..SCHEDULES {
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| Run::new(seed).go()));
        let outcome = ended.unwrap_or_else(|_| panic!("schedule with seed {seed} failed"));
        let early = if outcome.stopped_early { " early" } else { "" };
        let retried = if 0 < outcome.retries { " with retries" } else { "" };
        *verdicts.entry(format!("{:?}{early}{retried}", outcome.verdict)).or_default() += 1;
    }
    // The schedules reach all ends, each many times.
    assert_eq!(verdicts.len(), 10, "{verdicts:?}");
    assert!(verdicts.values().all(|count| SCHEDULES as u32 / 500 < *count), "{verdicts:?}");
}

#[test]
fn equal_seeds_end_alike() {
    for seed in 0..200 {
        assert_eq!(Run::new(seed).go(), Run::new(seed).go());
    }
}

#[test]
fn a_replica_that_lives_is_enough() {
    // Every request except those to one group fails with a connection error. No query may fail.
    for seed in 0..5_000 {
        let mut run = Run::new(seed);
        run.options = ExecutionOptions { retries_max: 3, ..ExecutionOptions::default() };
        let whole = Availability::all(&run.table);
        let (mut state, load) = (PolicyState::new(seed), LoadSnapshot::default());
        let policy = policy::ALL[seed as usize % policy::ALL.len()];
        let view = run.table.view(&whole);
        let partitions = run.model.partitions.clone();
        let limit = GroupLimit(1);
        let inputs = PolicyInputs { view, keys: &partitions, limit, load: &load };
        let plan = policy.plan(&inputs, &mut state, &mut run.rng).unwrap();
        run.execution = Execution::new(&plan, &partitions, run.options, Timestamp::ZERO);
        run.availability = whole;
        let living = run.table.groups()[seed as usize % run.table.groups().len()].id;
        run.next();
        while run.model.outcome.is_none() {
            let request = run.some_open();
            let node = run.model.open[&request].0;
            let lives = run.table.node(node).is_some_and(|node| node.group == living);
            let class = FailureClass::Connection;
            run.accept(if lives { Event::Reply { request } } else { Event::Failed { request, class } });
            run.model.close(request, &|_| !lives);
            run.next();
        }
        assert_eq!(run.model.outcome.map(|outcome| outcome.verdict), Some(Verdict::Complete), "seed {seed}");
    }
}
