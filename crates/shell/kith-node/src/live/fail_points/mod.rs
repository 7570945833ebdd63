//! Tests in which every step of every kind of write fails in every way. No acknowledged write is lost, no write is invented
//! or carried out twice, reads are not behind their tickets, and both directions of an association agree.
//!
//! The steps are the calls of which a write consists: the caller's request, and the calls of leaders to the database and to
//! each other. Nodes and the database run production code. Calls go through wrappers (`faulty.rs`), which follow a plan.

mod caller;
mod cases;
mod cluster;
mod election;
mod faulty;
mod plan;
mod rows;
mod truth;

use cases::{CASES, Case};
use cluster::Cluster;
use kith_live::{Conditions, Mutation, Write};
use kith_types::{PartitionId, partition_of_id};
use plan::Fault;
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};
use tokio::runtime::Builder;
use truth::Truth;

const GRAPH: &str = "social";
const NODES: usize = 3;
const PARTITIONS: u32 = 2;
/// A time limit that is far longer than any step of the tests takes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The interval at which conditions are checked.
const LOOK: Duration = Duration::from_millis(5);
/// The number of cases that run at the same time. They wait most of the time.
const AT_A_TIME: usize = 6;

/// The first faults of pairs of faults in a short run. After the first one, a leader finds out the outcome of a commit;
/// after the second one, another leader takes over an intent.
const SHORT: [(&str, &str, Fault); 2] = [
    ("a one-sided assoc_add", "commit", Fault::RequestLost),
    ("an assoc_change_type over two partitions", "deliver", Fault::Deposed),
];

/// A run of one case: its cluster, and the expected content of the graph.
struct Run<'c> {
    case: &'c Case,
    cluster: Cluster,
    truth: Truth,
    /// The last id that was used.
    last: u64,
    writes: u64,
}

impl<'c> Run<'c> {
    async fn start(case: &'c Case) -> Self {
        let cluster = Cluster::start().await;
        let truth = Truth::new(&cluster.types);
        let mut run = Self { case, cluster, truth, last: 0, writes: 0 };
        // Once these writes are done, both partitions have leaders.
        let (one, other) = (run.next_id(0), run.next_id(1));
        run.write_all(vec![cases::object(one, 1), cases::object(other, 1)]).await;
        run
    }

    /// Returns a new id in a partition. Each id is greater than all earlier ones.
    fn next_id(&mut self, partition: u32) -> u64 {
        let is_there = |id: &u64| partition_of_id(*id, self.cluster.count) == PartitionId(partition);
        self.last = (self.last + 1..).find(is_there).expect("there are enough");
        self.last
    }

    fn named(&mut self, write: Write) -> Write {
        self.writes += 1;
        let name = format!("w{}", self.writes).parse().expect("a name");
        Write { write_id: Some(name), ..write }
    }

    /// Carries out writes without faults.
    async fn write_all(&mut self, mutations: Vec<Mutation>) {
        for mutation in mutations {
            let write = Write { mutation, conditions: Conditions::default(), write_id: None };
            let (write, caller) = (self.named(write), self.cluster.caller());
            let outcome = self.cluster.while_faults(caller.insist(&write)).await;
            self.truth.take(&write, outcome);
        }
    }

    /// Carries out the case once, with these faults. Returns whether all of them have happened, and the steps of the write.
    async fn with(&mut self, faults: &[(usize, Fault)]) -> (bool, Vec<&'static str>) {
        let _context = FailureContext(format!("{}, {faults:?}", self.case.name));
        let (first, second) = self.case.partitions;
        let (one, other) = (self.next_id(first), self.next_id(second));
        self.write_all((self.case.before)(one, other)).await;
        let write = self.named((self.case.write)(one, other));
        let (plan, caller) = (self.cluster.plan.clone(), self.cluster.caller());
        plan.begin(faults);
        let outcome = self.cluster.while_faults(caller.write(&write)).await;
        let ended = plan.end();
        self.truth.take(&write, outcome);
        self.truth.check(&self.cluster, (one, other), self.case.kinds).await;
        self.write_all((self.case.after)(one, other)).await;
        if self.case.is_split && plan.has_late() {
            // This write moves the floor past the tested write.
            let (one, other) = (self.next_id(first), self.next_id(second));
            self.write_all(vec![cases::friends(one, other)]).await;
        }
        self.cluster.while_faults(plan.arrive()).await;
        self.truth.check(&self.cluster, (one, other), self.case.kinds).await;
        ended
    }

    /// Tests each fault at each step after the faults `before`. Returns the number of faults.
    async fn at_each_step(&mut self, before: &[(usize, Fault)]) -> usize {
        let mut count = 0;
        for fault in Fault::ALL {
            for step in 0.. {
                if !self.with(&[before, &[(step, fault)]].concat()).await.0 {
                    break;
                }
                count += 1;
            }
        }
        count
    }
}

/// A description of the current run, which is printed if the test fails.
struct FailureContext(String);

impl Drop for FailureContext {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

async fn check(case: &Case) {
    let mut run = Run::start(case).await;
    let (_, steps) = run.with(&[]).await;
    let count = run.at_each_step(&[]).await;
    eprintln!("{}: {count} faults at the steps {steps:?}", case.name);
    // If one node leads both partitions, it delivers to itself, which is not a step.
    let least = Fault::ALL.len() * (steps.len() - usize::from(case.is_split));
    assert!(least <= count, "{}: {count} faults at {steps:?}", case.name);
    assert_eq!(steps.contains(&"deliver"), case.is_split);
    for first in firsts(case, &steps) {
        let count = run.at_each_step(&[first]).await;
        eprintln!("{}: {count} faults after {first:?}", case.name);
    }
}

/// Returns the first faults of pairs of faults: all of them with `KITH_TEST_FULL`, otherwise those in [`SHORT`].
fn firsts(case: &Case, steps: &[&'static str]) -> Vec<(usize, Fault)> {
    if is_full() {
        let each = |fault| (0..steps.len()).map(move |step| (step, fault));
        return [Fault::Deposed, Fault::DiesAfter, Fault::RequestLost, Fault::AnswerLost]
            .into_iter()
            .flat_map(each)
            .collect();
    }
    let some = SHORT.iter().filter(|(name, ..)| *name == case.name);
    some.filter_map(|(_, what, fault)| Some((steps.iter().position(|step| step == what)?, *fault))).collect()
}

fn is_full() -> bool {
    std::env::var_os("KITH_TEST_FULL").is_some()
}

#[test]
fn whatever_step_of_a_write_fails_nothing_is_lost_or_invented() {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(case) = CASES.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
                    runtime.block_on(check(case));
                }
            });
        }
    });
}
