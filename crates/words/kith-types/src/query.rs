//! Types of queries that routing, operations and the wire share.

use strum::IntoStaticStr;

/// The name of the operation of a query, which users write as `op` of a request line and in selectors of controllers. The
/// crate `kith-query` lists the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationName(&'static str);

impl OperationName {
    /// Values of a store by key.
    pub const MGET: Self = Self("mget");
    /// Results of a plan for records.
    pub const COMPUTE: Self = Self("compute");
    /// Counts over records.
    pub const AGGREGATE: Self = Self("aggregate");
    /// A traversal in Gremlin.
    pub const GREMLIN: Self = Self("gremlin");

    /// The name of an operation.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The name as text.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// The kind of fan-out that a request makes. Each has its own default controller (Moolle §IV-A, §IV-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum FanOutKind {
    /// One key: one node of one group.
    SingleKey,
    /// Many keys whose lists are returned one by one.
    NonUnion,
    /// Many keys whose lists are united, with a caller who waits for the answer.
    SyncUnion,
    /// The same as [`FanOutKind::SyncUnion`], but nobody waits, as for the refresh of a cache.
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

    /// The name that users type in configuration and read in profiles.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The names of all kinds, for messages.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The kind whose controller decides about a fan-out of this kind: a fan-out with one key is a single-key fan-out, and
    /// a union that nobody waits for is asynchronous. `keys` is `None` if every partition is asked.
    pub fn deciding(self, keys: Option<usize>, workflow: Workflow) -> Self {
        match (keys, self, workflow) {
            (Some(1), _, _) => FanOutKind::SingleKey,
            (_, FanOutKind::SyncUnion, Workflow::Background) => FanOutKind::AsyncUnion,
            _ => self,
        }
    }

    /// Whether fan-outs of this kind occur in a workflow. Each kind of union belongs to one workflow.
    pub fn is_made_in(self, workflow: Workflow) -> bool {
        match self {
            FanOutKind::SyncUnion => workflow == Workflow::Interactive,
            FanOutKind::AsyncUnion => workflow == Workflow::Background,
            FanOutKind::SingleKey
            | FanOutKind::NonUnion
            | FanOutKind::EarlyTerminable
            | FanOutKind::Broadcast => true,
        }
    }
}

/// Whether requests are hedged, and after which time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hedging {
    /// After the 99th percentile of similar recent requests.
    #[default]
    Live,
    /// After a time that depends only on the number of keys.
    Table,
    /// Never.
    Off,
}

impl Hedging {
    /// Every choice.
    pub const ALL: [Hedging; 3] = [Hedging::Live, Hedging::Table, Hedging::Off];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Hedging::Live => "on",
            Hedging::Table => "table",
            Hedging::Off => "off",
        }
    }

    /// Returns the choice with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == name)
    }
}

/// Whether somebody waits for the answer, which is an input of fan-out controllers (Moolle §III-D).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Workflow {
    /// A person or a page waits.
    #[default]
    Interactive,
    /// Nobody waits: a batch job, a refresh.
    Background,
}

impl Workflow {
    /// Every workflow.
    pub const ALL: [Workflow; 2] = [Workflow::Interactive, Workflow::Background];

    /// The name that users type in requests and configuration.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The direction in which the edges of a type are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Along the edge: from `src` to `dst`.
    Out,
    /// Against the edge: from `dst` to `src`.
    In,
    /// Both ways: the union of both. The only direction of an undirected edge type.
    Both,
}

impl Direction {
    /// The opposite direction: `b ∈ N_d(a)` exactly if `a ∈ N_reverse(b)`.
    pub fn reverse(self) -> Self {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_key_and_a_union_that_nobody_waits_for_are_kinds_of_their_own() {
        let (interactive, background) = (Workflow::Interactive, Workflow::Background);
        assert_eq!(FanOutKind::SyncUnion.deciding(Some(2), interactive), FanOutKind::SyncUnion);
        assert_eq!(FanOutKind::SyncUnion.deciding(Some(2), background), FanOutKind::AsyncUnion);
        assert_eq!(FanOutKind::SyncUnion.deciding(None, background), FanOutKind::AsyncUnion);
        assert_eq!(FanOutKind::SyncUnion.deciding(Some(1), background), FanOutKind::SingleKey);
        assert_eq!(FanOutKind::NonUnion.deciding(Some(2), background), FanOutKind::NonUnion);
    }

    #[test]
    fn lists_of_all_are_in_the_order_of_declaration() {
        assert!(FanOutKind::ALL.is_sorted() && Workflow::ALL.is_sorted());
    }
}
