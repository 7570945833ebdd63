//! The counts of each step for `profile`: its results, its time, and the graph's work for it.

use super::traverser::Batch;
use crate::{
    graph::Notes,
    plan::{Step, Traversal, nested},
    value::{ELEMENT_COUNT, Metrics, TRAVERSER_COUNT, Value},
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// The nanoseconds since any moment that stays the same.
pub type Clock<'a> = &'a (dyn Fn() -> u64 + Send + Sync);

/// The counts of the steps so far.
pub(super) struct Profile<'a> {
    clock: Clock<'a>,
    tallies: Mutex<Tallies>,
}

#[derive(Default)]
struct Tallies {
    /// By the address of the step in the plan, which outlives the evaluation.
    steps: HashMap<usize, Tally>,
    /// The step that runs.
    current: Option<usize>,
}

#[derive(Clone, Default)]
struct Tally {
    /// With the time of the steps before it in its traversal.
    nanos: u64,
    traversers: i64,
    elements: i64,
    /// How many results were wanted first, unless all were.
    wanted: Option<i64>,
    counts_of_graph: BTreeMap<&'static str, i64>,
    members: BTreeMap<&'static str, BTreeSet<u64>>,
}

/// A step that has begun to make a batch.
pub(super) struct RunningStep {
    step: usize,
    outer: Option<usize>,
    since: u64,
}

impl<'a> Profile<'a> {
    pub fn new(clock: Clock<'a>) -> Self {
        Self { clock, tallies: Mutex::default() }
    }

    /// A step begins to make a batch. What the graph has noted until now belongs to the step that ran before.
    pub fn begin(&self, step: &Arc<Step>, notes: Notes) -> RunningStep {
        let step = address(step);
        let mut tallies = self.tallies.lock();
        tallies.note(notes);
        let outer = tallies.current.replace(step);
        RunningStep { step, outer, since: (self.clock)() }
    }

    /// The step has made the batch.
    pub fn end(&self, running: &RunningStep, batch: Option<&Batch>, notes: Notes) {
        let nanos = (self.clock)().saturating_sub(running.since);
        let mut tallies = self.tallies.lock();
        tallies.note(notes);
        tallies.current = running.outer;
        let tally = tallies.steps.entry(running.step).or_default();
        tally.nanos += nanos;
        for traverser in batch.into_iter().flatten() {
            tally.traversers += 1;
            tally.elements = tally.elements.saturating_add(traverser.bulk);
        }
    }

    /// Notes how many results of the step that runs are wanted. Only the first number counts: later ones only ask for the rest.
    pub fn wanted(&self, count: usize) {
        let mut tallies = self.tallies.lock();
        let Some(current) = tallies.current else { return };
        let tally = tallies.steps.entry(current).or_default();
        tally.wanted.get_or_insert(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts something that the step that runs has done in the graph.
    pub fn count(&self, name: &'static str, count: usize) {
        let counts = vec![(name, i64::try_from(count).unwrap_or(i64::MAX))];
        self.tallies.lock().note(Notes { counts, members: Vec::new() });
    }

    /// The metrics of the steps of a traversal, up to the one at which the profile is taken.
    pub fn metrics(&self, steps: &[Arc<Step>], parent: &str) -> Vec<Metrics> {
        let mut before = 0;
        let mut all = Vec::with_capacity(steps.len());
        for (at, step) in steps.iter().enumerate() {
            let tally = self.tallies.lock().steps.get(&address(step)).cloned().unwrap_or_default();
            let id = format!("{at}.{parent}");
            let of_nested =
                |(index, traversal): (usize, &Traversal)| self.metrics(traversal, &format!("{index}({id})"));
            all.push(Metrics {
                nanos: i64::try_from(tally.nanos.saturating_sub(before)).unwrap_or(i64::MAX),
                name: step.to_string(),
                nested: nested(&step.kind).into_iter().enumerate().flat_map(of_nested).collect(),
                counts: tally.counts(),
                annotations: tally.annotations(),
                id,
            });
            before = tally.nanos;
        }
        all
    }
}

impl Tallies {
    fn note(&mut self, notes: Notes) {
        let Some(current) = self.current else { return };
        let tally = self.steps.entry(current).or_default();
        for (name, count) in notes.counts {
            *tally.counts_of_graph.entry(name).or_default() += count;
        }
        for (name, member) in notes.members {
            tally.members.entry(name).or_default().insert(member);
        }
    }
}

impl Tally {
    /// The graph's work, by name.
    fn annotations(&self) -> Vec<(String, Value)> {
        let members = |(name, members): (&&'static str, &BTreeSet<u64>)| (*name, members.len() as i64);
        let counts = self.counts_of_graph.iter().map(|(name, count)| (*name, *count));
        let wanted = self.wanted.map(|count| ("wanted", count));
        let all: BTreeMap<&str, i64> = counts.chain(self.members.iter().map(members)).chain(wanted).collect();
        all.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect()
    }

    fn counts(&self) -> Vec<(String, i64)> {
        let counts = [(TRAVERSER_COUNT, self.traversers), (ELEMENT_COUNT, self.elements)];
        counts
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.to_owned(), count))
            .collect()
    }
}

fn address(step: &Arc<Step>) -> usize {
    Arc::as_ptr(step) as usize
}
