//! Distance badges (Moolle, Algorithm 1): distances up to 2 come from the source's network; the distance is 3 if a target's
//! own list intersects the second degree.
//!
//! On a directed graph the target's list is the one *into* it: `d(s, t) = 3` along directed edges exactly if some
//! in-neighbour of `t` is at distance 2 from `s`. For targets farther than 2 the raw union can serve as the second degree:
//! if a neighbour of `t` were `s` or in the first degree, `t` would be nearer.

use super::DistanceQuery;
use crate::{
    GraphAnswer, Input, OperationError, OperationStep, Outline,
    operations::{
        limits::DISTANCE_TARGETS_MAX,
        machine::{
            HasMachine, Machine,
            ask::{List, NETWORK, ask, expand, lists_of},
            range::within,
            resolve::Resolver,
        },
    },
};
use kith_operators::{Network, NetworkKey};
use kith_schema::EdgeSelector;
use kith_types::FanOutKind;
use std::sync::Arc;

const TARGETS: &str = "targets' first degrees";

/// A distance query under way.
#[derive(Debug)]
pub(crate) struct Distance {
    key: NetworkKey,
    /// The edges at the targets.
    edge_back: EdgeSelector,
    to: Vec<u64>,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Start,
    Network,
    /// Waits for the lists of the targets that are farther than 2: sorted, distinct.
    Targets {
        network: Arc<Network>,
        far: Vec<u64>,
    },
    Over,
}

impl Distance {
    pub(super) fn new(key: NetworkKey, edge: EdgeSelector, to: &[u64]) -> Result<Self, OperationError> {
        within("number of targets", to.len() as u64, 1, DISTANCE_TARGETS_MAX as u64, "1 to 10000")?;
        let edge_back = EdgeSelector { direction: edge.direction.reverse(), ..edge };
        Ok(Self { key, edge_back, to: to.to_vec(), state: State::Start })
    }

    fn ask_far(&mut self, network: Arc<Network>) -> OperationStep {
        let mut far = self.to.clone();
        far.sort_unstable();
        far.dedup();
        far.retain(|&target| network.distance(target).is_none());
        if far.is_empty() {
            return self.done(&network, &[], &[]);
        }
        // Without a second degree no target is at distance 3, but the targets must still exist.
        let longest = if network.union().is_empty() { 0 } else { u64::MAX };
        let step = ask(TARGETS, FanOutKind::NonUnion, far.clone(), expand(&self.edge_back, longest));
        self.state = State::Targets { network, far };
        step
    }

    fn done(&self, network: &Network, far: &[u64], lists: &[List]) -> OperationStep {
        let three: Vec<bool> = lists
            .iter()
            .map(|list| matches!(list, List::Ids(ids) if network.union().intersects(ids)))
            .collect();
        let badge = |target: &u64| match far.binary_search(target) {
            Ok(index) => three[index].then_some(3),
            Err(_) => network.distance(*target),
        };
        OperationStep::Done(GraphAnswer::Distances(self.to.iter().map(badge).collect()))
    }
}

impl HasMachine for DistanceQuery {
    fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        let edge = names.edge()?;
        names.two_sided(&edge, "a distance")?;
        Ok(Box::new(Distance::new(names.key(self.from)?, edge, &self.to)?))
    }
}

impl Machine for Distance {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match (std::mem::replace(&mut self.state, State::Over), input) {
            (State::Start, _) => {
                self.state = State::Network;
                Ok(OperationStep::Network(self.key.clone()))
            }
            (State::Network, Input::Network(network)) => Ok(self.ask_far(network)),
            (State::Targets { network, far }, input) => {
                let lists = lists_of(&far, input)?;
                Ok(self.done(&network, &far, &lists))
            }
            _ => Err(OperationError::WrongValue),
        }
    }

    fn outline(&self) -> Vec<Outline> {
        let kind = Some(FanOutKind::NonUnion);
        let when = "a target is farther than 2";
        vec![NETWORK, Outline { purpose: TARGETS, kind, reach: "each such target", when }]
    }
}
