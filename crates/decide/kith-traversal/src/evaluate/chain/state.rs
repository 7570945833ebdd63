//! The memory of a step from batch to batch.

use super::Chain;
use crate::{
    evaluate::{hop::HopProgress, singly::EnteredProgress, traverser::Batch},
    graph::ScanPlace,
    plan::{Kind, Label, needs_all_input},
    value::{ElementId, Value},
};
use std::collections::{HashMap, HashSet, VecDeque};

/// The state of a step. Where steps inside nested traversals count or collect, they do so for each origin.
#[derive(Debug)]
pub(in crate::evaluate) enum StepState {
    /// The step needs none.
    Stateless,
    /// The step has not begun, or has nothing left to return (`true`).
    Once(bool),
    /// The scan of all elements.
    Scan(ScanProgress),
    /// The edges that a hop is following.
    Hop(HopProgress),
    /// Traversers that are still to be returned.
    Buffer { left: VecDeque<Batch>, is_over: bool },
    /// The traversers that have passed a `range`.
    Range(RangeProgress),
    /// The time at which the first traverser of `timeLimit` came, by the clock of the evaluation, and whether its time is over.
    Limited { began: Option<u64>, is_over: bool },
    /// The values that have passed.
    Seen(HashMap<u32, HashSet<Value>>),
    /// The traversers in a nested traversal.
    Entered(EnteredProgress),
    /// Traversals whose results come one after the other.
    Branches(Option<VecDeque<Chain>>),
    /// The passes of `repeat`.
    Repeat(Passes),
}

impl StepState {
    /// The state of a step that returns everything once its input has ended.
    pub fn barrier() -> Self {
        Self::Buffer { left: VecDeque::new(), is_over: false }
    }
}

/// A scan of all elements under way.
#[derive(Debug, Default)]
pub(in crate::evaluate) struct ScanProgress {
    /// The last vertex that was read; `None` before the first.
    pub vertex: Option<ElementId>,
    /// The place after the last edge that was read; `None` before the first.
    pub edge: Option<ScanPlace>,
    /// The number of elements that the last page was asked for; 0 before the first.
    pub asked: usize,
    pub is_over: bool,
}

/// The traversers that have passed a `range`, by origin, and how many it has asked for last.
#[derive(Debug, Default)]
pub(in crate::evaluate) struct RangeProgress {
    pub counts: HashMap<u32, i64>,
    pub asked: usize,
}

/// The passes of a `repeat`.
#[derive(Debug, Default)]
pub(in crate::evaluate) struct Passes {
    /// The traversers between two passes, with the number of those behind them. Neighbours have different numbers.
    pub waiting: VecDeque<(u32, Batch)>,
    /// The passes that have begun and not ended. Each has more passes behind it than the one before.
    pub running: Vec<RunningPass>,
    /// The repeated traversal of a pass that has ended: `dedup` in it remembers all passes.
    pub spare: Option<Chain>,
}

/// A pass of a `repeat` that has begun.
#[derive(Debug)]
pub(in crate::evaluate) struct RunningPass {
    /// The number of passes behind the traversers that have entered.
    pub pass: u32,
    /// The passes that the traversers are in afterwards.
    pub loops: Vec<(Option<Label>, u32)>,
    pub body: Chain,
}

/// The state with which a step begins.
pub(in crate::evaluate) fn begin(kind: &Kind) -> StepState {
    match kind {
        Kind::Vertices { .. } | Kind::NamedVertices { .. } | Kind::SoughtVertices(_) | Kind::Edges { .. } => {
            StepState::Scan(ScanProgress::default())
        }
        Kind::Hop(_) => StepState::Hop(HopProgress::default()),
        Kind::Inject(_) | Kind::CountAll { .. } => StepState::Once(false),
        Kind::Range { .. } => StepState::Range(RangeProgress::default()),
        Kind::TimeLimit(_) => StepState::Limited { began: None, is_over: false },
        Kind::Dedup { .. } => StepState::Seen(HashMap::new()),
        Kind::Union(_) | Kind::Choose(_) => StepState::Branches(None),
        Kind::FlatMap(_) | Kind::Local(_) | Kind::Optional(_) | Kind::Coalesce(_) => {
            StepState::Entered(EnteredProgress::default())
        }
        Kind::Repeat(_) => StepState::Repeat(Passes::default()),
        kind if needs_all_input(kind) => StepState::barrier(),
        _ => StepState::Stateless,
    }
}

/// Whether a step can begin a traversal.
pub(in crate::evaluate) fn can_begin(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Vertices { .. }
            | Kind::NamedVertices { .. }
            | Kind::SoughtVertices(_)
            | Kind::Edges { .. }
            | Kind::CountAll { .. }
            | Kind::Inject(_)
            | Kind::Union(_)
    ) || is_writing_beginning(kind)
}

/// Whether a step changes the graph and can begin a traversal: `g.addV()`.
pub(in crate::evaluate) fn is_writing_beginning(kind: &Kind) -> bool {
    matches!(kind, Kind::AddVertex { .. } | Kind::AddEdge { .. } | Kind::MergeVertex(_) | Kind::MergeEdge(_))
}
