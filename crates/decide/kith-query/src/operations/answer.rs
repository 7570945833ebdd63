//! The answers to a [`crate::GraphQuery`].

use crate::EdgeCursor;
use kith_live::{ListedAssociation, ObjectAnswer};
use kith_operators::{Network, NetworkSizes};
use kith_schema::ColumnNumber;
use std::sync::Arc;

/// One answer. The variant follows from the query's operand.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphAnswer {
    /// For `Connections`, `Entities`, `Members` and `Find`: sorted, distinct ids.
    Ids(Vec<u64>),
    /// For `Degree`: the number of connections of each member. It is `None` if the member is not in the graph or, in a
    /// partial answer, if no node answered for it.
    Degrees(Vec<Option<u64>>),
    /// For `Edges`.
    Edges(EdgesAnswer),
    /// For `Objects` with a single id: `None` if the object does not exist or, in a partial answer, if no node answered for
    /// it.
    Object(Option<ObjectAnswer>),
    /// For other `Objects`: the same as [`GraphAnswer::Object`] for each id.
    Objects(Vec<Option<ObjectAnswer>>),
    /// For `Associations` with [`kith_live::Select::Count`]: the length of the list. `None` only in a partial answer, if no
    /// node answered.
    AssociationCount(Option<u64>),
    /// For other `Associations`.
    Associations(AssociationsAnswer),
    /// For `Network`.
    Network(NetworkAnswer),
    /// For `Distance`: 0, 1, 2 or 3 at each target's index, or `None` if the target is farther or unreachable.
    Distances(Vec<Option<u8>>),
    /// For `Path`.
    Path(PathAnswer),
    /// For `Common`.
    Common(CommonAnswer),
    /// For `Suggest`: (member, number of common connections), greatest numbers first, ties by ascending id.
    Suggestions(Vec<(u64, u32)>),
}

/// Associations of one list, newest first. Of associations with equal times, the one with the smaller id comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssociationsAnswer {
    /// The associations.
    pub out: Vec<ListedAssociation>,
    /// Whether the limit or the cap of the type cut off further associations; `None` for [`kith_live::Select::Ids`], which
    /// cuts nothing off.
    pub more: Option<bool>,
}

/// Edges with their columns, in the requested order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgesAnswer {
    /// The other end of each edge.
    pub ids: Vec<u64>,
    /// The requested columns, in the order of the request.
    pub columns: Vec<EdgeColumn>,
    /// The cursor of the next page if there are more edges.
    pub after: Option<EdgeCursor>,
}

/// One column of some edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeColumn {
    /// Its name.
    pub name: String,
    /// Whether its numbers are times, in milliseconds since 1970-01-01 UTC.
    pub is_time: bool,
    /// The number of each edge, in the order of the edges.
    pub numbers: Vec<ColumnNumber>,
}

/// A member's network: its sizes, and its ids if they were requested.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkAnswer {
    /// The member.
    pub id: u64,
    /// The sizes of the network.
    pub sizes: NetworkSizes,
    /// The ids, for [`crate::Want::Ids`].
    pub network: Option<Arc<Network>>,
}

/// A shortest path, or none if it is longer than the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathAnswer {
    /// The members from start to end, both included; empty if there is no path.
    pub members: Vec<u64>,
}

/// The common connections or entities of two members, in the requested form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommonAnswer {
    /// The sorted, distinct ids.
    Ids(Vec<u64>),
    /// The number of ids.
    Size(u64),
    /// Whether there is any.
    Exists(bool),
}
