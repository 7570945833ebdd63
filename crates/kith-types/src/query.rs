//! Words about queries that routing, operations and the wire share.

/// What kind of fan-out a request makes; each has its own default controller
/// (Moolle §IV-A, §IV-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FanOutKind {
    /// One key: one node of one group.
    SingleKey,
    /// Many keys whose lists are returned one by one.
    NonUnion,
    /// Many keys whose lists are united; somebody waits for the answer.
    SyncUnion,
    /// As [`FanOutKind::SyncUnion`], but nobody waits: a cache refresh.
    AsyncUnion,
    /// Every partition is asked; the first positive answer ends the query.
    EarlyTerminable,
    /// Every partition is asked and every answer is needed.
    Broadcast,
}

impl FanOutKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [FanOutKind; 6] = [
        FanOutKind::SingleKey,
        FanOutKind::NonUnion,
        FanOutKind::SyncUnion,
        FanOutKind::AsyncUnion,
        FanOutKind::EarlyTerminable,
        FanOutKind::Broadcast,
    ];

    /// The name users type in configuration and read in profiles.
    pub fn name(self) -> &'static str {
        match self {
            FanOutKind::SingleKey => "single-key",
            FanOutKind::NonUnion => "non-union",
            FanOutKind::SyncUnion => "sync-union",
            FanOutKind::AsyncUnion => "async-union",
            FanOutKind::EarlyTerminable => "early-terminable",
            FanOutKind::Broadcast => "broadcast",
        }
    }
}

/// Who waits for the answer: an input to fan-out controllers (Moolle §III-D).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Workflow {
    /// A person or a page waits.
    #[default]
    Interactive,
    /// Nobody waits: a batch job, a refresh.
    Background,
}

/// Which way to follow the edges of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Along the arc: from `src` to `dst`.
    Out,
    /// Against the arc: from `dst` to `src`.
    In,
    /// Either way: the union of both. The only one an undirected edge type has.
    Both,
}

impl Direction {
    /// The direction that undoes this one: `b ∈ N_d(a)` exactly when `a ∈ N_reverse(b)`.
    pub fn reverse(self) -> Self {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        }
    }
}
