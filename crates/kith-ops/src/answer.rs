//! The answers to a [`crate::GraphQuery`].

use crate::{EdgeCursor, Network, NetworkSizes};
use kith_live::{ListedAssociation, ObjectAnswer};
use kith_schema::ColumnNumber;
use std::sync::Arc;

/// One answer; the variant follows the query's operand.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphAnswer {
    /// To `Connections`, `Entities` and `Members`: sorted, distinct ids.
    Ids(Vec<u64>),
    /// To `Degree`: for each member its number of connections, or `None` if it is not in the graph (or, in a partial answer, if
    /// nobody answered for it).
    Degrees(Vec<Option<u64>>),
    /// To `Edges`.
    Edges(EdgesAnswer),
    /// To `Objects` of a single id: `None` if there is no such object (or, in a partial answer, if nobody answered for it).
    Object(Option<ObjectAnswer>),
    /// To other `Objects`: as [`GraphAnswer::Object`], for each id.
    Objects(Vec<Option<ObjectAnswer>>),
    /// To `Associations` of [`kith_live::Select::Count`]: the length of the list (`None` only in a partial answer, if nobody answered).
    AssociationCount(Option<u64>),
    /// To other `Associations`.
    Associations(AssociationsAnswer),
    /// To `Network`.
    Network(NetworkAnswer),
    /// To `Distance`: at each target's index 0, 1, 2, 3, or `None` for farther or unreachable.
    Distances(Vec<Option<u8>>),
    /// To `Path`.
    Path(PathAnswer),
    /// To `Common`.
    Common(CommonAnswer),
    /// To `Suggest`: (member, number of common connections), most first, ties by ascending id.
    Suggestions(Vec<(u64, u32)>),
}

/// Associations of one list, newest first; of equal times the smaller id comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssociationsAnswer {
    /// The associations.
    pub out: Vec<ListedAssociation>,
    /// Whether further ones follow that the limit or the cap of the type cut off; `None` to [`kith_live::Select::Ids`], which cuts
    /// nothing off.
    pub more: Option<bool>,
}

/// Edges with their columns, in the order that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgesAnswer {
    /// The other end of each edge.
    pub ids: Vec<u64>,
    /// The columns asked for, in that order.
    pub columns: Vec<EdgeColumn>,
    /// The cursor of the next page if there are more edges.
    pub after: Option<EdgeCursor>,
}

/// One column of some edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeColumn {
    /// Its name.
    pub name: String,
    /// Of each edge its number, in the order of the edges.
    pub numbers: Vec<ColumnNumber>,
}

/// A member's network: always its sizes, its ids when they were wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkAnswer {
    /// The member.
    pub id: u64,
    /// How large it is.
    pub sizes: NetworkSizes,
    /// The ids; present for [`crate::Want::Ids`].
    pub network: Option<Arc<Network>>,
}

/// A shortest path, or none within the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathAnswer {
    /// Members from start to end, both included; empty if there is none.
    pub members: Vec<u64>,
}

/// What two members have in common, as much of it as was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommonAnswer {
    /// Sorted, distinct.
    Ids(Vec<u64>),
    /// Their number.
    Size(u64),
    /// Whether there is one.
    Exists(bool),
}
