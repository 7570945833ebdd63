//! Which controller decides for which kind of fan-out (Moolle §IV-C).

use crate::fan_out::{AsyncUnion, ControllerState, EarlyTerminating, FanOutController, Minimum, QueryShape};
use crate::{GroupLimit, LoadSnapshot};
use kith_types::{FanOutKind, Workflow};
use std::sync::Arc;

/// What a caller says about the fan-out of one query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FanOutLimit {
    /// The controller decides.
    #[default]
    Auto,
    /// One group.
    Min,
    /// Every group.
    Max,
    /// This many groups; clamped to those there are.
    Groups(u32),
}

/// One controller per kind of fan-out.
#[derive(Clone, Debug)]
pub struct Controllers {
    by_kind: [Arc<dyn FanOutController>; FanOutKind::ALL.len()],
}

/// What the controllers of one client keep between queries, by kind.
#[derive(Clone, Debug, Default)]
pub struct ControllerStates([ControllerState; FanOutKind::ALL.len()]);

/// As in Moolle, but for early-terminable queries, which go to one group: on the paper's mix that halves the latency of all queries
/// (`docs/figures.md`, "tail").
impl Default for Controllers {
    fn default() -> Self {
        let mut controllers = Self::of_moolle();
        controllers.set(FanOutKind::EarlyTerminable, Arc::new(Minimum));
        controllers
    }
}

impl Controllers {
    /// The controllers of the paper. One line each, by the sections that give the reasons.
    pub fn of_moolle() -> Self {
        let of_kind = |kind| -> Arc<dyn FanOutController> {
            match kind {
                FanOutKind::SingleKey => Arc::new(Minimum),
                FanOutKind::NonUnion => Arc::new(Minimum),  // §IV-C1
                FanOutKind::SyncUnion => Arc::new(Minimum), // §IV-C2
                FanOutKind::AsyncUnion => Arc::new(AsyncUnion::default()), // §IV-C3
                FanOutKind::EarlyTerminable => Arc::new(EarlyTerminating::default()), // §IV-C4, §IV-D
                // Every answer is waited for, as in §IV-C1.
                FanOutKind::Broadcast => Arc::new(Minimum),
            }
        };
        Self { by_kind: FanOutKind::ALL.map(of_kind) }
    }

    /// Replaces the controller of one kind; a library user may supply its own.
    pub fn set(&mut self, kind: FanOutKind, controller: Arc<dyn FanOutController>) {
        self.by_kind[kind as usize] = controller;
    }

    /// The controller that decides for a query.
    pub fn controller(&self, kind: FanOutKind, workflow: Workflow) -> &Arc<dyn FanOutController> {
        &self.by_kind[deciding_kind(kind, workflow) as usize]
    }

    /// How many groups may take part in a query: what the caller says, else what
    /// the controller decides, within `1..=query.groups`.
    pub fn limit(
        &self,
        limit: FanOutLimit,
        query: &QueryShape,
        load: &LoadSnapshot,
        states: &mut ControllerStates,
    ) -> GroupLimit {
        let groups = match limit {
            FanOutLimit::Min => 1,
            FanOutLimit::Max => query.groups,
            FanOutLimit::Groups(groups) => groups,
            FanOutLimit::Auto => {
                let state = &mut states.0[deciding_kind(query.kind, query.workflow) as usize];
                self.controller(query.kind, query.workflow).groups(query, load, state)
            }
        };
        GroupLimit(groups.clamp(1, query.groups.max(1)))
    }
}

/// A union of many keys that nobody waits for is an asynchronous one, whoever asked.
fn deciding_kind(kind: FanOutKind, workflow: Workflow) -> FanOutKind {
    match (kind, workflow) {
        (FanOutKind::SyncUnion, Workflow::Background) => FanOutKind::AsyncUnion,
        _ => kind,
    }
}
