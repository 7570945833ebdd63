//! A shortest path of up to 6 hops, by bidirectional breadth-first search (Moolle §IV-A).
//!
//! The first two levels from the start are its network, which is mostly in the cache. From the end, and beyond the network,
//! nodes unite whole levels, always from the smaller frontier. Levels are sets without parents: once the two sides meet,
//! [`Trace`] walks back.

use super::{
    PathQuery,
    trace::{HOP, Trace, found},
};
use crate::{
    Input, OperationError, OperationStep, Outline,
    operations::{
        limits::PATH_LENGTH_MAX,
        machine::{
            HasMachine, Machine,
            ask::{NETWORK, ask, ask_list, expand, list_of, lists_of, set_of, union, union_kind},
            range::within,
            resolve::Resolver,
            search::{Search, Side},
        },
    },
};
use kith_operators::sets::intersect;
use kith_operators::{Network, NetworkKey, Operator};
use kith_schema::EdgeSelector;
use kith_types::{FanOutKind, Workflow};

/// The most ids of one end that are sent to every node, so that the last level of a path search need not be returned as a
/// whole.
const FRONTIER_PUSH_MAX: usize = 4_096;

const ENDS: &str = "both ends";
const END: &str = "first degree of the end";
const LEVEL: &str = "next level";

/// A path query under way.
#[derive(Debug)]
pub(crate) struct Path {
    key: NetworkKey,
    to: u64,
    max: usize,
    workflow: Workflow,
    /// The edges along the path.
    edge: EdgeSelector,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Start,
    /// Waits for the lists of the ends, which must exist and may be neighbours.
    Ends {
        ids: Vec<u64>,
    },
    /// Waits for the network of the start.
    Network,
    /// Waits for the list of the end.
    End {
        network: std::sync::Arc<Network>,
    },
    /// Waits for a level. With `last`, only the ids where it meets the other side are needed.
    Level {
        search: Search,
        forward: bool,
        last: bool,
    },
    Trace(Trace),
    Over,
}

impl Path {
    pub(super) fn new(
        key: NetworkKey,
        edge: EdgeSelector,
        to: u64,
        max: u32,
        workflow: Workflow,
    ) -> Result<Self, OperationError> {
        within("max", u64::from(max), 0, u64::from(PATH_LENGTH_MAX), "0 to 6")?;
        Ok(Self { key, to, max: max as usize, workflow, edge, state: State::Start })
    }

    fn start(&mut self) -> OperationStep {
        let mut ids = vec![self.key.id, self.to];
        ids.dedup();
        if 2 <= self.max && ids.len() == 2 {
            self.state = State::Network;
            return OperationStep::Network(self.key.clone());
        }
        let longest = if self.max == 1 && ids.len() == 2 { u64::MAX } else { 0 };
        self.state = State::Ends { ids: ids.clone() };
        ask(ENDS, FanOutKind::NonUnion, ids, expand(&self.edge, longest))
    }

    /// Two levels from the start and one from the end are known, so paths of length 2 and 3 can be found.
    fn after_networks(&mut self, network: &Network, near: Vec<u64>) -> OperationStep {
        let first = network.first().to_vec();
        if let Some(&middle) = intersect(&first, &near).first() {
            return found(vec![self.key.id, middle, self.to]);
        }
        if self.max == 2 {
            return found(Vec::new());
        }
        let forward = Side { levels: vec![vec![self.key.id], first], edge: self.edge.clone() };
        let backward = Side { levels: vec![vec![self.to], near], edge: self.edge_back() };
        let mut search = Search { forward, backward };
        // Ids of the raw union that are not in the second degree are nearer to the start, so they are not near the end.
        let meeting = network.union().first_common(search.backward.frontier());
        search.forward.levels.push(if meeting.is_none() { network.second().collect() } else { Vec::new() });
        match meeting {
            Some(meeting) => self.trace(search, meeting),
            None => self.next_level(search),
        }
    }

    fn next_level(&mut self, search: Search) -> OperationStep {
        let Search { forward, backward } = &search;
        let length = forward.depth() + backward.depth();
        if length == self.max || forward.frontier().is_empty() || backward.frontier().is_empty() {
            return found(Vec::new());
        }
        let from_start = forward.frontier().len() <= backward.frontier().len();
        let (near, far) = if from_start { (forward, backward) } else { (backward, forward) };
        let last = length + 1 == self.max && far.frontier().len() <= FRONTIER_PUSH_MAX;
        let mut plan = union(&near.edge);
        if last {
            let meeting = Operator::Intersect(vec![plan, Operator::Ids(far.frontier().to_vec())]);
            plan = Operator::Limit { input: Box::new(meeting), count: 1 };
        }
        let step = ask(LEVEL, union_kind(self.workflow), near.frontier().to_vec(), plan);
        self.state = State::Level { search, forward: from_start, last };
        step
    }

    fn after_level(
        &mut self,
        mut search: Search,
        forward: bool,
        last: bool,
        reached: Vec<u64>,
    ) -> OperationStep {
        let (near, far) = match forward {
            true => (&mut search.forward, &search.backward),
            false => (&mut search.backward, &search.forward),
        };
        if last {
            near.levels.push(reached);
        } else {
            near.push(reached);
        }
        match intersect(near.frontier(), far.frontier()).first() {
            Some(&meeting) => self.trace(search, meeting),
            None => self.next_level(search),
        }
    }

    fn trace(&mut self, search: Search, meeting: u64) -> OperationStep {
        let mut trace = Trace::new(search, meeting);
        let step = trace.ask();
        self.after_hop(trace, step)
    }

    fn after_hop(&mut self, trace: Trace, step: OperationStep) -> OperationStep {
        if matches!(step, OperationStep::FanOut(_)) {
            self.state = State::Trace(trace);
        }
        step
    }

    fn edge_back(&self) -> EdgeSelector {
        EdgeSelector { direction: self.edge.direction.reverse(), ..self.edge.clone() }
    }
}

impl HasMachine for PathQuery {
    fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        let edge = names.edge()?;
        names.two_sided(&edge, "a path")?;
        let path = Path::new(names.key(self.from)?, edge, self.to, self.max, names.query.workflow)?;
        Ok(Box::new(path))
    }
}

impl Machine for Path {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match (std::mem::replace(&mut self.state, State::Over), input) {
            (State::Start, _) => Ok(self.start()),
            (State::Ends { ids }, input) => {
                let near = lists_of(&ids, input)?.swap_remove(0).ids();
                Ok(match near.binary_search(&self.to) {
                    _ if ids.len() == 1 => found(ids),
                    Ok(_) => found(ids),
                    Err(_) => found(Vec::new()),
                })
            }
            (State::Network, Input::Network(network)) => {
                if network.distance(self.to) == Some(1) {
                    return Ok(found(vec![self.key.id, self.to]));
                }
                self.state = State::End { network };
                Ok(ask_list(END, self.to, &self.edge_back()))
            }
            (State::End { network }, input) => {
                let near = list_of(self.to, input)?;
                Ok(self.after_networks(&network, near))
            }
            (State::Level { search, forward, last }, input) => {
                let reached = set_of(input)?;
                Ok(self.after_level(search, forward, last, reached))
            }
            (State::Trace(mut trace), input) => {
                let step = trace.step(&list_of(trace.asked(), input)?);
                Ok(self.after_hop(trace, step))
            }
            _ => Err(OperationError::WrongValue),
        }
    }

    fn outline(&self) -> Vec<Outline> {
        let single = Some(FanOutKind::SingleKey);
        if self.max < 2 || self.key.id == self.to {
            let kind = if self.key.id == self.to { single } else { Some(FanOutKind::NonUnion) };
            return vec![Outline { purpose: ENDS, kind, reach: "both ends", when: "" }];
        }
        let level = Some(union_kind(self.workflow));
        let reach = "each member of the smaller frontier";
        vec![
            NETWORK,
            Outline { purpose: END, kind: single, reach: "the end", when: "it is farther than 1" },
            Outline { purpose: LEVEL, kind: level, reach, when: "it is farther than 3, per level" },
            Outline { purpose: HOP, kind: single, reach: "a member on the path", when: "per inner hop" },
        ]
    }
}
