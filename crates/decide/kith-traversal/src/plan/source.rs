//! The configuration of the source of a traversal, and the plan as a whole.

use super::{Kind, Label, Traversal, verification::Verification};
use crate::{
    error::{GremlinError, Result},
    value::{Operator, Value},
};
use std::sync::Arc;

/// The greatest depth of a traversal in steps ([`depth`](super::labels::depth)). The evaluation needs stack for each of them.
const STEPS_MAX: usize = 1_000;

/// A traversal that can be evaluated any number of times.
#[derive(Clone, Debug)]
pub struct TraversalPlan {
    pub(crate) source: Source,
    pub(crate) traversal: Traversal,
    /// The number of steps after which labels are forgotten, because no later one reads any. `None` if there is nothing to forget.
    pub(crate) last_read: Option<usize>,
}

/// The settings of the instructions of a source.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct Source {
    /// Side effects with their first value, and how further values are added.
    pub side_effects: Vec<(Label, Value, Option<Operator>)>,
    /// The first value of sacks, and how sacks are merged.
    pub sack: Option<(Value, Option<Operator>)>,
    /// Options, such as `evaluationTimeout` and those of Kith, which begin with `kith.`.
    pub options: Vec<(Label, Value)>,
    /// The steps that strategies forbid the traversal.
    pub verifications: Vec<Verification>,
    /// The seed of the steps that choose at random, instead of the one that the caller of the evaluation gives.
    pub seed: Option<u64>,
    /// Whether traversers that `barrier` merges count as often as there were.
    pub is_bulked: bool,
    /// Whether each traverser remembers its path, wherever it is needed or not.
    pub with_paths: bool,
}

impl Default for Source {
    fn default() -> Self {
        Self {
            side_effects: Vec::new(),
            sack: None,
            options: Vec::new(),
            verifications: Vec::new(),
            seed: None,
            is_bulked: true,
            with_paths: false,
        }
    }
}

impl TraversalPlan {
    pub(super) fn new(source: Source, traversal: Traversal) -> Result<Self> {
        source.verifications.iter().try_for_each(|verification| verification.check(&traversal))?;
        check_profile(&traversal)?;
        let depth = super::labels::depth(&traversal);
        if STEPS_MAX < depth {
            return Err(GremlinError::bad(format!(
                "{depth} steps come one after another, at most {STEPS_MAX} can; use repeat(), or send several traversals"
            )));
        }
        Ok(Self { source, traversal, last_read: None })
    }

    /// Whether traversers remember all values that they had before, also those without labels.
    pub(crate) fn with_paths(&self) -> bool {
        self.source.with_paths || super::any_step(&self.traversal, &|step| step.kind.needs_path())
    }

    /// All steps, of the traversal and of nested ones.
    pub fn steps(&self) -> Vec<&super::Step> {
        super::all_steps(&self.traversal)
    }

    /// The options of the source: names and values.
    pub fn options(&self) -> &[(Label, Value)] {
        &self.source.options
    }

    /// Whether the steps are counted and timed.
    pub fn is_profiled(&self) -> bool {
        self.traversal.iter().any(|step| matches!(step.kind, Kind::Profile(_)))
    }

    /// Whether the traversal may change the graph.
    pub fn changes_graph(&self) -> bool {
        super::labels::find(&self.traversal, &|step| step.kind.is_change()).is_some()
    }
}

/// `profile` is about the whole traversal: without a key it ends it, and it cannot be nested.
fn check_profile(traversal: &Traversal) -> Result<()> {
    let is_profile = |step: &super::Step| matches!(step.kind, Kind::Profile(_));
    let ends_early = |(at, step): (usize, &Arc<super::Step>)| {
        matches!(step.kind, Kind::Profile(None)) && at + 1 < traversal.len()
    };
    if traversal.iter().enumerate().any(ends_early) {
        return Err(GremlinError::bad("profile() must be the last step, or have a key for cap()"));
    }
    let mut inner = traversal.iter().flat_map(|step| super::nested(&step.kind));
    if inner.any(|nested| super::any_step(nested, &is_profile)) {
        return Err(GremlinError::bad(
            "profile() is about a whole traversal and cannot be inside another step",
        ));
    }
    Ok(())
}

impl Kind {
    /// Whether the step needs all values that traversers had before, also those without labels.
    pub(crate) fn needs_path(&self) -> bool {
        matches!(self, Self::Path { .. } | Self::SimplePath { .. } | Self::EdgeVertex(super::EdgeEnd::Other))
    }

    /// Whether the step changes the graph.
    pub fn is_change(&self) -> bool {
        use Kind::{AddEdge, AddVertex, Drop, MergeEdge, MergeVertex, SetProperty};
        matches!(
            self,
            AddEdge { .. } | AddVertex { .. } | Drop | MergeEdge(_) | MergeVertex(_) | SetProperty(_)
        )
    }
}
