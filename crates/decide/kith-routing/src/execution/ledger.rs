//! The state of each key of one fan-out.

use crate::execution::{FailureClass, MissingReason};
use kith_types::NodeId;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Answered,
    Missing,
}

/// The state of all keys.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    state: Vec<State>,
    /// The number of requests in flight or held answers per key: one, or two while one of them is a hedge.
    askers: Vec<u8>,
    /// The keys that failed somewhere; no other keys have an entry.
    failed: BTreeMap<u32, Failures>,
    missing: Vec<(u32, MissingReason)>,
    answered: u32,
}

/// The failures of one key.
#[derive(Clone, Debug, Default)]
struct Failures {
    nodes: Vec<NodeId>,
    /// The class of the last failure that was not of a hedge. It is reported if nothing else succeeds.
    class: Option<FailureClass>,
}

impl Ledger {
    pub fn new(keys: usize) -> Self {
        Self {
            state: vec![State::Waiting; keys],
            askers: vec![0; keys],
            failed: BTreeMap::new(),
            missing: Vec::new(),
            answered: 0,
        }
    }

    pub fn ask(&mut self, keys: &[u32]) {
        keys.iter().for_each(|key| self.askers[*key as usize] += 1);
    }

    /// Records that a request for these keys is over.
    pub fn unask(&mut self, keys: &[u32]) {
        keys.iter().for_each(|key| self.askers[*key as usize] -= 1);
    }

    pub fn is_asked(&self, key: u32) -> bool {
        0 < self.askers[key as usize]
    }

    pub fn is_asked_twice(&self, key: u32) -> bool {
        1 < self.askers[key as usize]
    }

    pub fn is_waiting(&self, key: u32) -> bool {
        self.state[key as usize] == State::Waiting
    }

    /// Records an answer of a key. Returns whether it is the first one, which is the one that counts.
    pub fn answer(&mut self, key: u32) -> bool {
        let first = self.state[key as usize] == State::Waiting;
        if first {
            self.state[key as usize] = State::Answered;
            self.answered += 1;
        }
        first
    }

    /// Records that a node failed a key. Returns the failure to report.
    pub fn fail(&mut self, key: u32, node: NodeId, class: FailureClass, is_hedge: bool) -> FailureClass {
        let failures = self.failed.entry(key).or_default();
        failures.nodes.push(node);
        if !is_hedge {
            failures.class = Some(class);
        }
        failures.class.unwrap_or(class)
    }

    /// Returns the nodes that failed a key, in order.
    pub fn tried(&self, key: u32) -> &[NodeId] {
        self.failed.get(&key).map_or(&[], |failures| &failures.nodes)
    }

    pub fn miss(&mut self, key: u32, reason: MissingReason) {
        if self.is_waiting(key) {
            self.state[key as usize] = State::Missing;
            self.missing.push((key, reason));
        }
    }

    pub fn missing(&self) -> &[(u32, MissingReason)] {
        &self.missing
    }

    pub fn answered(&self) -> u32 {
        self.answered
    }
}
