//! PT-1: for every order of {hedge timer; budget yes or no; original ok, partly ok, in parts, failed or silent; hedge
//! likewise; node down; version gone; caller gone; deadline}, a query ends exactly once by its deadline, every key is
//! accounted for, load counters return to zero, and no node is asked for a key twice at a time.
//!
//! Time is simulated, with one seed per schedule. A failing seed is printed; make it a named test. There are 20,000
//! schedules in a plain `cargo test`, and a million with `KITH_TEST_FULL=1` or in release builds.

mod support;

use kith_routing::execution::{
    Action, Answers, Budgets, Cause, Disposition, Event, ExecutionOptions, FailureClass, HedgeAbort,
    HedgeRule, Outcome, RequestId, Verdict,
};
use kith_routing::load::{COOL_OFF, Charge, RequestEnd, Work};
use kith_routing::{
    Availability, Execution, GroupLimit, LoadMeter, PolicyInputs, PolicyState, RoutingTable, policy,
};
use kith_types::{Epoch, FanOutKind, NodeId, PartitionId, StoreVersion, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use support::table;

const SCHEDULES: u64 = 20_000;
const SCHEDULES_FULL: u64 = 1_000_000;
/// The delay after its deadline with which a query may end ("completes exactly once by its deadline + 5 ms"). Timers
/// are up to 4 ms late here.
const LATE_MAX: Duration = Duration::from_millis(5);

/// A fast source of random numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        kith_types::fmix64(self.0)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// The behaviour of a node towards a request.
enum Fate {
    Reply,
    ReplyInPart,
    Fail(FailureClass),
    Silent,
}

/// A request that is in flight or held.
struct Call {
    node: NodeId,
    keys: Vec<u32>,
    cause: Cause,
    charge: Option<Charge>,
    held: bool,
}

enum Happens {
    SoFar(RequestId),
    End(RequestId, Fate),
    Down(NodeId),
    Up(NodeId),
    HedgeTimer,
    Deadline,
    Gone,
    Satisfied,
}

struct Run<'a> {
    dice: Dice,
    table: &'a RoutingTable,
    availability: Availability,
    down: Vec<NodeId>,
    execution: Execution,
    meter: LoadMeter,
    budgets: Budgets,
    answers: Answers,
    keys: usize,
    /// The number of times that each key was sent.
    sendings: Vec<u32>,
    /// The number of answers to each key that count.
    counted: Vec<u32>,
    calls: BTreeMap<RequestId, Call>,
    sent: u32,
    agenda: BTreeMap<(Timestamp, u64), Happens>,
    timers: u64,
    now: Timestamp,
    hedge_timer: Option<Timestamp>,
    caught_up: Timestamp,
    deadline: Timestamp,
    outcome: Option<(Outcome, Timestamp)>,
    in_parts: u32,
}

const WORK: Work = Work { asked: kith_routing::load::RequestKind::Values, kind: FanOutKind::NonUnion };

impl<'a> Run<'a> {
    fn new(seed: u64, tables: &'a [RoutingTable]) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0xD129_0F5B_3A71_C64D));
        let table = &tables[dice.below(tables.len() as u64) as usize];
        let availability = Availability::all(table);
        let keys = dice.below(13) as usize;
        let count = u64::from(table.partition_count().get());
        let partitions: Vec<PartitionId> = (0..keys).map(|_| PartitionId(dice.below(count) as u32)).collect();
        let answers = if dice.once_in(3) { Answers::Together } else { Answers::ByKey };
        let rule = HedgeRule::fixed(micros(1_000 + dice.below(9_000)), micros(dice.below(3_000)));
        let options = ExecutionOptions {
            deadline: Some(Timestamp(micros(4_000 + dice.below(50_000)))),
            partial: dice.once_in(2),
            stop_early: dice.once_in(5),
            retries_max: dice.below(4) as u32,
            seed,
            hedging: (!dice.once_in(8)).then_some(rule),
            answers,
        };
        let policy = policy::ALL[dice.below(policy::ALL.len() as u64) as usize];
        let limit = GroupLimit(1 + dice.below(3) as u32);
        let (mut state, mut rng) = (PolicyState::new(seed), StdRng::seed_from_u64(seed));
        let mut meter = LoadMeter::default();
        let load = meter.snapshot(Timestamp::ZERO);
        meter.follow(table);
        let view = table.view(&availability);
        let inputs = PolicyInputs { view, keys: &partitions, limit, load: &load };
        let plan = policy.plan(&inputs, &mut state, &mut rng).expect("all is up");
        let budgets = match dice.below(4) {
            0 => Budgets::nothing(),
            1 => Budgets { hedges: Budgets::unlimited().hedges, retries: Budgets::default().retries },
            2 => Budgets::default(),
            _ => Budgets::unlimited(),
        };
        let mut run = Self {
            execution: Execution::new(&plan, &partitions, options, Timestamp::ZERO),
            dice,
            table,
            availability,
            down: Vec::new(),
            meter,
            budgets,
            answers,
            keys,
            sendings: vec![0; keys],
            counted: vec![0; keys],
            calls: BTreeMap::new(),
            sent: 0,
            agenda: BTreeMap::new(),
            timers: 0,
            now: Timestamp::ZERO,
            hedge_timer: None,
            caught_up: Timestamp::ZERO,
            deadline: options.deadline.expect("it has one"),
            outcome: None,
            in_parts: 0,
        };
        run.arrange(options.stop_early);
        run
    }

    /// Schedules the events that happen whatever the execution does.
    fn arrange(&mut self, stop_early: bool) {
        let late = micros(self.dice.below(4_000));
        self.at(self.deadline + late, Happens::Deadline);
        for _ in 0..self.dice.below(3) {
            let node = NodeId(self.dice.below(self.table.nodes().len() as u64) as u32);
            let when = Timestamp(micros(self.dice.below(30_000)));
            self.at(when, Happens::Down(node));
            let back = when + micros(self.dice.below(20_000));
            self.at(back, Happens::Up(node));
        }
        if self.dice.once_in(12) {
            let when = Timestamp(micros(self.dice.below(30_000)));
            self.at(when, Happens::Gone);
        }
        if stop_early && self.dice.once_in(3) {
            let when = Timestamp(micros(self.dice.below(30_000)));
            self.at(when, Happens::Satisfied);
        }
    }

    fn at(&mut self, when: Timestamp, what: Happens) {
        self.timers += 1;
        self.agenda.insert((when, self.timers), what);
    }

    /// Runs the schedule. Returns the outcome and the number of partial replies.
    fn go(mut self) -> (Outcome, u32) {
        self.next();
        while self.outcome.is_none() {
            let ((when, _), what) = self.agenda.pop_first().expect("it has not ended and nothing is to come");
            self.now = self.now.max(when);
            assert!(self.timers < 5_000, "it does not end");
            self.happen(what);
        }
        self.check()
    }

    fn happen(&mut self, what: Happens) {
        let now = self.now;
        match what {
            Happens::SoFar(request) => self.so_far(request),
            Happens::End(request, fate) => self.end(request, fate),
            Happens::Down(node) => {
                self.down.push(node);
                self.availability = Availability::all_but(self.table, &self.down);
                if self.dice.once_in(2) {
                    self.availability.rescue(self.table);
                }
                let _ = self.execution.on(Event::NodeDown { node }, now);
            }
            Happens::Up(node) => {
                self.down.retain(|down| *down != node);
                self.availability = Availability::all_but(self.table, &self.down);
                self.meter.on_return(node);
            }
            Happens::HedgeTimer => {
                self.hedge_timer = None;
                if self.dice.once_in(20) {
                    self.caught_up = now;
                }
                let _ = self.execution.on(Event::HedgeDue { caught_up: self.caught_up }, now);
            }
            Happens::Deadline => assert_eq!(self.execution.on(Event::Deadline, now), Disposition::Accepted),
            Happens::Gone => assert_eq!(self.execution.on(Event::Cancelled, now), Disposition::Accepted),
            Happens::Satisfied => assert_eq!(self.execution.on(Event::Satisfied, now), Disposition::Accepted),
        }
        self.next();
    }

    fn next(&mut self) {
        let view = self.table.view(&self.availability);
        for action in self.execution.next(&view, &mut self.budgets) {
            assert!(self.outcome.is_none(), "{action:?} after the end");
            match action {
                Action::Send { request, node, keys, cause } => self.send(request, node, keys.to_vec(), cause),
                Action::Cancel { request, end } => self.close(request, end),
                Action::Use { request } => {
                    let call = self.calls.remove(&request).expect("what is used was held");
                    assert!(call.held && self.answers == Answers::Together);
                    call.keys.iter().for_each(|key| self.counted[*key as usize] += 1);
                }
                Action::Refresh { epoch } => assert!(Epoch(0) < epoch),
                Action::Finish(outcome) => self.outcome = Some((outcome, self.now)),
            }
        }
        let next = self.execution.next_hedge();
        if next != self.hedge_timer
            && let Some(due) = next
        {
            // Mostly on time, and occasionally so late that it must be our own fault.
            let late = if self.dice.once_in(10) { self.dice.below(30_000) } else { self.dice.below(1_000) };
            self.hedge_timer = next;
            let when = due.max(self.now) + micros(late);
            self.at(when, Happens::HedgeTimer);
        }
    }

    fn send(&mut self, request: RequestId, node: NodeId, keys: Vec<u32>, cause: Cause) {
        assert_eq!(request.0, self.sent, "requests are numbered as they are sent");
        self.sent += 1;
        assert!(!keys.is_empty() && keys.is_sorted());
        let open = || self.calls.values().filter(|call| !call.held);
        for key in &keys {
            let asked: Vec<&Call> = open().filter(|call| call.keys.contains(key)).collect();
            assert!(
                asked.iter().all(|call| call.node != node),
                "{node} is asked for key {key} twice at once"
            );
            assert!(asked.len() <= usize::from(matches!(cause, Cause::Hedge { .. })), "key {key}: {cause:?}");
            assert_eq!(self.counted[*key as usize], 0, "key {key} is answered already");
        }
        if let Cause::Hedge { of } = cause {
            let of = &self.calls[&of];
            assert_eq!(of.cause, Cause::Plan, "neither retries nor hedges are hedged");
            let owing = |call: &Call| !matches!(call.cause, Cause::Hedge { .. }) && call.node == node;
            assert!(!open().any(owing), "{node} owes this query an answer that was planned");
        }
        for key in &keys {
            self.sendings[*key as usize] += 1;
        }
        let charge = Some(self.meter.on_send(WORK, node, keys.len(), self.now));
        self.calls.insert(request, Call { node, keys, cause, charge, held: false });
        let fate = self.fate();
        let after =
            micros(if self.dice.once_in(4) { self.dice.below(40_000) } else { self.dice.below(3_000) });
        let when = self.now + after;
        // This includes replies that stop or fail in the middle.
        let parts = if self.dice.once_in(3) { 1 + self.dice.below(3) } else { 0 };
        for _ in 0..parts {
            let earlier = self.now + micros(self.dice.below(after.as_micros() as u64 + 1));
            self.at(earlier, Happens::SoFar(request));
        }
        if !matches!(fate, Fate::Silent) {
            self.at(when, Happens::End(request, fate));
        }
    }

    fn fate(&mut self) -> Fate {
        match self.dice.below(20) {
            0..12 => Fate::Reply,
            12..14 => Fate::ReplyInPart,
            14..16 => Fate::Silent,
            16 => Fate::Fail(FailureClass::VersionUnavailable { version: StoreVersion(2) }),
            17 => Fate::Fail(FailureClass::Connection),
            18 => Fate::Fail(if self.dice.once_in(2) {
                FailureClass::Overloaded
            } else {
                FailureClass::NotOwner { epoch: Epoch(1 + self.dice.below(3)) }
            }),
            _ => Fate::Fail(match self.dice.below(4) {
                0 => FailureClass::BadRequest,
                1 => FailureClass::Timeout,
                2 => FailureClass::DeadlineExceeded,
                _ => FailureClass::Internal,
            }),
        }
    }

    /// Returns the charge exactly once: it is moved out.
    fn close(&mut self, request: RequestId, end: RequestEnd) {
        let call = self.calls.remove(&request).expect("only what is under way is cancelled");
        assert!(!call.held, "what is held is answered");
        self.meter.on_end(call.charge.expect("it is open"), end, self.now);
    }

    /// Sends a part of a reply: the first of the keys that are owed.
    fn so_far(&mut self, request: RequestId) {
        let Some(call) = self.calls.get_mut(&request).filter(|call| !call.held && 1 < call.keys.len()) else {
            return;
        };
        let count = self.dice.below(call.keys.len() as u64) as usize;
        let lost = call.keys[..count].iter().filter(|_| self.dice.once_in(5));
        let failed: Vec<_> = lost.map(|key| (*key, FailureClass::Damaged)).collect();
        let event = Event::ReplySoFar { request, keys: count as u32, failed: failed.clone() };
        let late = match self.execution.on(event, self.now) {
            Disposition::Accepted => Vec::new(),
            Disposition::AcceptedInPart { late } => late,
            Disposition::Ignored if self.answers == Answers::Together => return,
            other => panic!("a part of what is under way is {other:?}"),
        };
        let is_first = |key: &u32| !late.contains(key) && !failed.iter().any(|(lost, _)| lost == key);
        let keys = call.keys.drain(..count).filter(is_first);
        keys.for_each(|key| self.counted[key as usize] += 1);
        self.in_parts += 1;
    }

    fn end(&mut self, request: RequestId, fate: Fate) {
        // The request was cancelled meanwhile, so a late answer has no effect.
        if self.calls.get(&request).is_none_or(|call| call.held) {
            assert_eq!(self.execution.on(Event::Reply { request }, self.now), Disposition::Ignored);
            return;
        }
        let mut call = self.calls.remove(&request).expect("looked at above");
        let charge = call.charge.take().expect("it is open");
        let end = if matches!(fate, Fate::Fail(_)) { RequestEnd::Failed } else { RequestEnd::Answered };
        self.meter.on_end(charge, end, self.now);
        let mut failed = Vec::new();
        let event = match fate {
            Fate::Fail(class) => {
                let actions = self.execution.on(Event::Failed { request, class }, self.now);
                return assert_eq!(actions, Disposition::Accepted);
            }
            Fate::ReplyInPart => {
                let lost = call.keys.iter().filter(|_| self.dice.once_in(2));
                failed = lost.map(|key| (*key, FailureClass::Damaged)).collect();
                Event::ReplyInPart { request, failed: failed.clone() }
            }
            Fate::Reply | Fate::Silent => Event::Reply { request },
        };
        let fresh = |key: &&u32| !failed.iter().any(|(lost, _)| lost == *key);
        match self.execution.on(event, self.now) {
            Disposition::Accepted => {
                call.keys.iter().filter(fresh).for_each(|key| self.counted[*key as usize] += 1);
            }
            Disposition::AcceptedInPart { late } => {
                assert_eq!(self.answers, Answers::ByKey, "sums cannot be taken apart");
                let first = call.keys.iter().filter(fresh).filter(|key| !late.contains(key));
                first.for_each(|key| self.counted[*key as usize] += 1);
            }
            Disposition::Held => {
                assert_eq!(self.answers, Answers::Together);
                call.held = true;
                self.calls.insert(request, call);
            }
            Disposition::Ignored => {
                assert!(
                    self.answers == Answers::Together && !failed.is_empty(),
                    "a part of a sum is of no use"
                );
            }
        }
    }

    fn check(mut self) -> (Outcome, u32) {
        let (outcome, ended) = self.outcome.take().expect("it ended");
        assert!(ended <= self.deadline + LATE_MAX);
        let answered = self.counted.iter().filter(|times| **times == 1).count() as u32;
        assert!(self.counted.iter().all(|times| *times <= 1), "a key counts twice: {:?}", self.counted);
        assert_eq!(outcome.answered, answered);
        assert_eq!(outcome.keys as usize, self.keys);
        assert_eq!(outcome.answered + outcome.missing_keys() + outcome.abandoned, outcome.keys);
        assert_eq!(outcome.requests, self.sent);
        assert!(self.calls.values().all(|call| call.held), "requests are left open");
        assert_eq!((self.execution.outstanding(), self.execution.next_hedge()), (0, None));
        if outcome.verdict == Verdict::Complete && !outcome.stopped_early {
            assert_eq!(outcome.answered, outcome.keys);
        }
        // From now on, no event has an effect.
        let now = self.now;
        for request in (0..self.sent).map(RequestId) {
            assert_eq!(self.execution.on(Event::Reply { request }, now), Disposition::Ignored);
        }
        assert!(self.execution.next(&self.table.view(&self.availability), &mut self.budgets).is_empty());
        for node in self.meter.snapshot(now + COOL_OFF).nodes {
            assert_eq!((node.outstanding_keys, node.outstanding_requests), (0, 0), "{node:?}");
        }
        (outcome, self.in_parts)
    }
}

fn tables() -> Vec<RoutingTable> {
    let shapes = [(1, 1, 1), (1, 3, 6), (2, 1, 4), (2, 2, 8), (2, 3, 12), (3, 2, 6), (3, 3, 12), (4, 2, 8)];
    let seeds = 0..3;
    let table = |seed| move |(groups, nodes, partitions)| table(groups, nodes, partitions, seed);
    seeds.flat_map(|seed| shapes.map(table(seed))).collect()
}

#[test]
fn pt_1_any_order_of_events_ends_a_query_once_and_in_time() {
    let full = std::env::var_os("KITH_TEST_FULL").is_some() || !cfg!(debug_assertions);
    let schedules = if full { SCHEDULES_FULL } else { SCHEDULES };
    let tables = tables();
    let mut reached: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 0..schedules {
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| Run::new(seed, &tables).go()));
        let (outcome, in_parts) = ended.unwrap_or_else(|_| panic!("the schedule with seed {seed} failed"));
        let mut note = |what: &str, times: u32| {
            *reached.entry(what.to_owned()).or_default() += u64::from(0 < times);
        };
        note(&format!("{:?}", outcome.verdict), 1);
        note("hedges", outcome.hedges.sent);
        note("hedges that won", outcome.hedges.won);
        note("hedges that lost", outcome.hedges.keys_wasted());
        note("retries", outcome.retries);
        note("parts", in_parts);
        for reason in HedgeAbort::ALL {
            note(reason.name(), outcome.hedges.aborted(reason));
        }
    }
    // The schedules reach everything, each many times.
    assert_eq!(reached.len(), 15, "{reached:?}");
    assert!(reached.values().all(|times| schedules / 1_000 < *times), "{reached:?}");
}
