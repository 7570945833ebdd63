//! Words about queries that routing, operations and the wire share.

use strum::IntoStaticStr;

/// What is asked, by the name that users write: `op` of a request line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum OperationName {
    /// The members that a member is connected to.
    Connections,
    /// The entities of a member.
    Entities,
    /// The members of an entity.
    Members,
    /// How many connections members have.
    Degree,
    /// The edges of a member with their columns.
    Edges,
    /// Objects of a live graph.
    ObjectGet,
    /// Associations of a live graph between two objects.
    AssocGet,
    /// The length of an association list.
    AssocCount,
    /// Associations of a list from a place on.
    AssocRange,
    /// Associations of a list whose time lies in a range.
    AssocTimeRange,
    /// First and second degree of a member.
    Network,
    /// How far members are.
    Distance,
    /// A shortest path.
    Path,
    /// What two members have in common.
    Common,
    /// People a member may know.
    Suggest,
    /// Values of a store by key.
    Mget,
    /// What a plan makes of records.
    Compute,
    /// Counts over records.
    Aggregate,
}

impl OperationName {
    /// Every operation, in the order of declaration.
    pub const ALL: [OperationName; 18] = [
        OperationName::Connections,
        OperationName::Entities,
        OperationName::Members,
        OperationName::Degree,
        OperationName::Edges,
        OperationName::ObjectGet,
        OperationName::AssocGet,
        OperationName::AssocCount,
        OperationName::AssocRange,
        OperationName::AssocTimeRange,
        OperationName::Network,
        OperationName::Distance,
        OperationName::Path,
        OperationName::Common,
        OperationName::Suggest,
        OperationName::Mget,
        OperationName::Compute,
        OperationName::Aggregate,
    ];

    /// The name users type in requests and configuration.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What kind of fan-out a request makes; each has its own default controller
/// (Moolle §IV-A, §IV-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
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
        self.into()
    }

    /// The kind that decides about a fan-out of this kind: one key is a single key, and a union that nobody waits for is
    /// an asynchronous one. `keys` is `None` if every partition is asked.
    pub fn deciding(self, keys: Option<usize>, workflow: Workflow) -> Self {
        match (keys, self, workflow) {
            (Some(1), _, _) => FanOutKind::SingleKey,
            (_, FanOutKind::SyncUnion, Workflow::Background) => FanOutKind::AsyncUnion,
            _ => self,
        }
    }

    /// Whether fan-outs of this kind are made in a workflow: each kind of union belongs to one.
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

/// Who waits for the answer: an input to fan-out controllers (Moolle §III-D).
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

    /// The name users type in requests and configuration.
    pub fn name(self) -> &'static str {
        self.into()
    }
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
        assert!(OperationName::ALL.is_sorted() && FanOutKind::ALL.is_sorted() && Workflow::ALL.is_sorted());
    }
}
