//! The state that all steps of an evaluation share.

use super::{
    known::Fact,
    side_effects::SideEffects,
    tally::{Clock, Profile},
    traverser::Traverser,
    verdicts::Verdicts,
    work::{Limits, Work},
};
use crate::{
    graph::Graph,
    plan::{Label, Source},
    value::{ElementId, Operator, Value},
};
use parking_lot::Mutex;
use rand::{SeedableRng, rngs::StdRng};
use std::collections::{HashMap, HashSet};

/// The graph, the side effects and the limits of one evaluation.
pub(super) struct Context<'a> {
    pub graph: &'a dyn Graph,
    pub source: &'a Source,
    pub with_paths: bool,
    /// Whether `addE` replaces an edge that exists already.
    pub replaces_edges: bool,
    /// Whether no step changes the graph.
    pub is_read_only: bool,
    pub work: Work,
    pub side_effects: SideEffects,
    /// The source of choices of the steps that choose at random.
    pub random: Mutex<StdRng>,
    /// The edges that have been changed. Traversers may hold them with the properties that they had before.
    pub changed_edges: Mutex<HashSet<ElementId>>,
    /// What has been found out about vertices of which the graph left something unknown. As many as elements at most.
    pub facts: Mutex<HashMap<ElementId, Fact>>,
    /// Which vertices have passed the tests of repeated steps.
    pub verdicts: Verdicts,
    /// The clock of `profile` and `timeLimit`.
    pub clock: Clock<'a>,
    /// The counts for `profile`; `None` if the traversal has no such step.
    pub profile: Option<Profile<'a>>,
}

impl<'a> Context<'a> {
    /// `empty` are the side effects that steps will add to.
    pub fn new(
        graph: &'a dyn Graph,
        source: &'a Source,
        limits: Limits,
        with_paths: bool,
        empty: HashMap<Label, Value>,
    ) -> Self {
        let mut side_effects = empty;
        side_effects.extend(source.side_effects.iter().map(|(key, value, _)| (key.clone(), value.clone())));
        Self {
            graph,
            source,
            with_paths,
            replaces_edges: false,
            is_read_only: false,
            verdicts: Verdicts::default(),
            work: Work::new(limits),
            side_effects: SideEffects::new(side_effects),
            random: Mutex::new(StdRng::seed_from_u64(source.seed.unwrap_or(limits.seed))),
            changed_edges: Mutex::default(),
            facts: Mutex::default(),
            clock: &|| 0,
            profile: None,
        }
    }

    /// A new traverser, with the sack that the source asks for.
    pub fn traverser(&self, value: Value) -> Traverser {
        let mut traverser = Traverser::new(value, self.with_paths, &self.work.meter);
        traverser.sack = self.source.sack.as_ref().map(|(value, _)| value.clone());
        traverser
    }

    /// The operator by which further values are added to a side effect, if the source names one.
    pub fn operator_of(&self, key: &str) -> Option<Operator> {
        let mut known = self.source.side_effects.iter();
        known.find(|(name, _, _)| &**name == key).and_then(|(_, _, operator)| *operator)
    }
}
