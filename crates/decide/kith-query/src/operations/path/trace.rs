//! Walks from the member where the two sides of a path search met back to both ends. Each hop reads one list, and takes the
//! least member of the previous level in it.

use crate::{
    GraphAnswer, OperationStep, PathAnswer,
    operations::machine::{ask::ask_list, search::Search},
};
use kith_operators::sets::intersect;
use std::collections::VecDeque;

pub(super) const HOP: &str = "hop of the path";

/// A walk under way.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    search: Search,
    /// The known part of the path, from the forward side to the backward side.
    path: VecDeque<u64>,
    /// The number of hops from the path's front to the start.
    forward: usize,
    /// The number of hops from the path's back to the end.
    backward: usize,
}

impl Trace {
    /// Starts at a member of both sides' outermost levels.
    pub(super) fn new(search: Search, meeting: u64) -> Self {
        let forward = search.forward.levels.len() - 1;
        let backward = search.backward.levels.len() - 1;
        Trace { search, path: VecDeque::from([meeting]), forward, backward }
    }

    /// Asks for the next list, or ends. The level next to an end is that end's own list, so the last hop needs no request.
    pub(super) fn ask(&mut self) -> OperationStep {
        let Search { forward, backward } = &self.search;
        // To go back on one side, follow the other side's edges.
        if 1 < self.forward {
            return ask_list(HOP, self.asked(), &backward.edge);
        }
        if 1 < self.backward {
            return ask_list(HOP, self.asked(), &forward.edge);
        }
        if self.forward == 1 {
            self.path.push_front(forward.levels[0][0]);
        }
        if self.backward == 1 {
            self.path.push_back(backward.levels[0][0]);
        }
        found(std::mem::take(&mut self.path).into())
    }

    /// The member whose list is requested.
    pub(super) fn asked(&self) -> u64 {
        let end = if 1 < self.forward { self.path.front() } else { self.path.back() };
        *end.expect("a path under way is never empty")
    }

    /// Takes the hop that the list allows, and asks for the next list.
    pub(super) fn step(&mut self, list: &[u64]) -> OperationStep {
        let forward = 1 < self.forward;
        let level = match forward {
            true => &self.search.forward.levels[self.forward - 1],
            false => &self.search.backward.levels[self.backward - 1],
        };
        // Only a partial answer lacks the hop. Then no path can be returned.
        let Some(&hop) = intersect(list, level).first() else { return found(Vec::new()) };
        if forward {
            self.path.push_front(hop);
            self.forward -= 1;
        } else {
            self.path.push_back(hop);
            self.backward -= 1;
        }
        self.ask()
    }
}

/// The answer: a path, or none if `members` is empty.
pub(super) fn found(members: Vec<u64>) -> OperationStep {
    OperationStep::Done(GraphAnswer::Path(PathAnswer { members }))
}
