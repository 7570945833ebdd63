//! The choice of the controller that decides about a fan-out: the one that the settings or the program choose with a
//! [`Selector`], else the default of its kind (Moolle §III-D, §IV-C).

use crate::fan_out::{
    AsyncUnion, ControllerState, EarlyTerminating, FanOutController, FanOutLimit, FanOutLimits, Minimum,
    QueryShape, Selector,
};
use crate::{GroupLimit, LoadSnapshot};
use kith_types::FanOutKind;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The controllers of one client.
#[derive(Clone, Debug)]
pub struct Controllers {
    chosen: BTreeMap<Selector, Chosen>,
    by_default: [Arc<dyn FanOutController>; FanOutKind::ALL.len()],
}

/// A controller that the settings or the program chose.
#[derive(Clone, Debug)]
struct Chosen {
    /// The text of the controller.
    text: String,
    controller: Arc<dyn FanOutController>,
}

/// The state that the controllers of one client keep between queries, by the selector that chose the controller (`None` for
/// a default) and by kind. Kinds have separate states because their rates and targets differ.
#[derive(Clone, Debug, Default)]
pub struct ControllerStates(BTreeMap<(Option<Selector>, FanOutKind), ControllerState>);

/// The controller that decides about a fan-out.
#[derive(Clone, Copy, Debug)]
pub struct DecidingController<'a> {
    /// The selector that chose it; `None` if it is the default of its kind.
    pub selector: Option<Selector>,
    /// The controller as written, with its parameters; for a default or a program's own controller, its name.
    pub text: &'a str,
    /// The controller.
    pub controller: &'a Arc<dyn FanOutController>,
}

/// The number of groups that may take part in a fan-out, and the controller that decided this, if one did.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    /// The controller that decided; `None` if the caller set the limit.
    pub by: Option<DecidingController<'a>>,
    /// The number of groups asked for, which may be more than there are.
    pub groups_asked: u32,
    /// The same number, clamped to `1..=query.groups`.
    pub limit: GroupLimit,
}

/// The controllers of Moolle, except that early-terminable queries go to one group. On the paper's mix this halves the
/// latency of all queries (`docs/figures.md`, "tail").
impl Default for Controllers {
    fn default() -> Self {
        let mut controllers = Self::of_moolle();
        controllers.set_default(FanOutKind::EarlyTerminable, Arc::new(Minimum));
        controllers
    }
}

impl Controllers {
    /// Returns the controllers of the paper, one per line, with the sections that give the reasons.
    pub fn of_moolle() -> Self {
        let of_kind = |kind| -> Arc<dyn FanOutController> {
            match kind {
                FanOutKind::SingleKey => Arc::new(Minimum),
                FanOutKind::NonUnion => Arc::new(Minimum),  // §IV-C1
                FanOutKind::SyncUnion => Arc::new(Minimum), // §IV-C2
                FanOutKind::AsyncUnion => Arc::new(AsyncUnion::default()), // §IV-C3
                FanOutKind::EarlyTerminable => Arc::new(EarlyTerminating::default()), // §IV-C4, §IV-D
                // All answers are waited for, as in §IV-C1.
                FanOutKind::Broadcast => Arc::new(Minimum),
            }
        };
        Self { chosen: BTreeMap::new(), by_default: FanOutKind::ALL.map(of_kind) }
    }

    /// Replaces the default of one kind, which decides if no controller was chosen.
    pub fn set_default(&mut self, kind: FanOutKind, controller: Arc<dyn FanOutController>) {
        self.by_default[kind as usize] = controller;
    }

    /// Chooses the controller for the fan-outs that `selector` selects. `text` is how it is written. It replaces a
    /// controller that the same selector chose before.
    pub fn choose(&mut self, selector: Selector, text: &str, controller: Arc<dyn FanOutController>) {
        self.chosen.insert(selector, Chosen { text: text.to_owned(), controller });
    }

    /// Returns the controller that decides about a fan-out: among those chosen for it, the one with the most specific
    /// selector ([`Selector::matching`]).
    pub fn deciding(&self, query: &QueryShape) -> DecidingController<'_> {
        let matching = Selector::matching(query).into_iter();
        let chosen = matching.filter_map(|selector| Some((selector, self.chosen.get(&selector)?))).next();
        match chosen {
            Some((selector, Chosen { text, controller })) => {
                DecidingController { selector: Some(selector), text, controller }
            }
            None => {
                let controller = &self.by_default[query.kind as usize];
                DecidingController { selector: None, text: controller.name(), controller }
            }
        }
    }

    /// Returns how many groups may take part in a fan-out: the caller's limit for its kind, or else the controller's
    /// decision.
    pub fn decide(
        &self,
        limits: FanOutLimits,
        query: &QueryShape,
        load: &LoadSnapshot,
        states: &mut ControllerStates,
    ) -> Decision<'_> {
        let (by, groups_asked) = match limits.of(query.kind) {
            FanOutLimit::Min => (None, 1),
            FanOutLimit::Max => (None, query.groups),
            FanOutLimit::Groups(groups) => (None, groups),
            FanOutLimit::Auto => {
                let by = self.deciding(query);
                let state = states.0.entry((by.selector, query.kind)).or_default();
                (Some(by), by.controller.groups(query, load, state))
            }
        };
        Decision { by, groups_asked, limit: GroupLimit(groups_asked.clamp(1, query.groups.max(1))) }
    }
}
