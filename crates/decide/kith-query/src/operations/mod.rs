//! The operations of graphs. Each has a folder: its fields, which are the JSON line, the flags and the message; its state
//! machine without side effects; its answer as a message, as JSON and as text for people; and its twin for tests.
//!
//! The lists of operations and of kinds of answers are at the end of this file. The other files hold what several operations
//! share. To add an operation, see `CONTRIBUTING.md`.

mod registry;

mod assoc_count;
mod assoc_get;
mod assoc_range;
mod assoc_time_range;
mod associations;
mod common;
mod connections;
mod cursor;
mod degree;
mod distance;
mod edges;
mod entities;
mod error;
#[cfg(feature = "testing")]
mod example;
#[cfg(test)]
mod examples;
mod fields;
mod filter;
pub mod ids;
mod ids_answer;
mod limits;
#[cfg(feature = "nodes")]
mod machine;
mod members;
mod network;
mod object_find;
mod object_get;
mod page;
mod path;
mod query;
#[cfg(feature = "nodes")]
mod query_machine;
mod reciprocal;
mod signature;
mod suggest;
#[cfg(test)]
mod twin;
mod view;

pub use associations::{AssociationView, AssociationsAnswer, AssociationsView};
pub use common::{CommonAnswer, CommonPlan, Want};
pub use cursor::{EdgeCursor, NotACursor};
pub use edges::{EdgeColumn, EdgesAnswer};
pub use error::OperationError;
#[cfg(feature = "testing")]
pub use example::Example;
pub use fields::Effort;
pub use filter::ColumnFilter;
pub use ids_answer::IdsView;
pub use limits::{
    ASSOCIATION_IDS_MAX, COMMON_FETCH_MAX, DEGREE_IDS_MAX, DISTANCE_TARGETS_MAX, EDGES_MAX, FIND_IDS_MAX,
    FIND_VALUES_MAX, OBJECT_IDS_MAX, PATH_LENGTH_MAX, SUGGESTIONS_MAX,
};
#[cfg(feature = "nodes")]
pub use machine::{FanOut, Input, OperationStep, Outline, Scope};
#[cfg(feature = "nodes")]
pub use network::machine::NetworkPlan;
pub use network::{NetworkAnswer, NetworkReturn};
pub use object_get::ObjectView;
pub use page::{AnswerPage, PageStart, Pages};
pub use path::PathAnswer;
pub use query::GraphQuery;
#[cfg(feature = "nodes")]
pub use query_machine::QueryMachine;
pub use reciprocal::ReciprocalAnswer;
pub use signature::{Parameter, Signature};
pub use view::{Block, Cell, Column, Json, WrongAnswer};

use crate::convert::ConvertError;
use fields::{AnswerKind, Decoded, Fields, Presentation};
use kith_schema::live::ObjectAnswer;
use kith_types::OperationName;
use kith_wire::v1::{query_reply::Answer as AnswerMessage, query_request::Operand};
#[cfg(feature = "nodes")]
use machine::{HasMachine, Machine, resolve::Resolver};
use serde::{Deserialize, Serialize};
use view::PrintedAnswer;

// One line for each operation.
registry::operations! {
    /// The members that a member is connected to
    Connections(connections::ConnectionsQuery) = "connections";
    /// A member's entities of one kind, such as its schools or companies
    Entities(entities::EntitiesQuery) = "entities";
    /// The members of an entity
    Members(members::MembersQuery) = "members";
    /// How many connections members have
    Degree(degree::DegreeQuery) = "degree";
    /// The edges of a member with their columns, sorted, page by page
    Edges(edges::EdgesQuery) = "edges";
    /// Objects by their ids
    #[cfg_attr(feature = "flags", command(skip))]
    ObjectGet(object_get::ObjectGetQuery) = "object_get";
    /// The ids of objects that have a value in a field with an index
    #[cfg_attr(feature = "flags", command(skip))]
    ObjectFind(object_find::ObjectFindQuery) = "object_find";
    /// The associations of an object that lead to certain objects
    #[cfg_attr(feature = "flags", command(skip))]
    AssocGet(assoc_get::AssocGetQuery) = "assoc_get";
    /// How many associations of a type leave an object
    #[cfg_attr(feature = "flags", command(skip))]
    AssocCount(assoc_count::AssocCountQuery) = "assoc_count";
    /// The associations of an object from a place in their list on, newest first
    #[cfg_attr(feature = "flags", command(skip))]
    AssocRange(assoc_range::AssocRangeQuery) = "assoc_range";
    /// The associations of an object whose time lies in a range, newest first
    #[cfg_attr(feature = "flags", command(skip))]
    AssocTimeRange(assoc_time_range::AssocTimeRangeQuery) = "assoc_time_range";
    /// First and second degree of a member
    Network(network::NetworkQuery) = "network";
    /// How far members are: 0, 1, 2, 3 or farther
    Distance(distance::DistanceQuery) = "distance";
    /// A shortest path between two members
    Path(path::PathQuery) = "path";
    /// What two members have in common
    Common(common::CommonQuery) = "common";
    /// People you may know: members at distance 2, most common connections first
    Suggest(suggest::SuggestQuery) = "suggest";
    /// The members that a member follows and that follow it
    Reciprocal(reciprocal::ReciprocalQuery) = "reciprocal";
}

// One line for each kind of answer.
registry::answers! {
    /// Sorted, distinct ids.
    Ids(Vec<u64>);
    /// For `degree`: the number of connections of each member. It is `None` if the member is not in the graph or, in a
    /// partial answer, if no node answered for it.
    Degrees(Vec<Option<u64>>);
    /// For `edges`.
    Edges(EdgesAnswer);
    /// For `object_get` of a single id: `None` if the object does not exist or, in a partial answer, if no node answered for
    /// it.
    Object(Option<ObjectAnswer>);
    /// For other `object_get`: the same as [`GraphAnswer::Object`] for each id.
    Objects(Vec<Option<ObjectAnswer>>);
    /// For `assoc_count`: the length of the list. `None` only in a partial answer, if no node answered.
    AssociationCount(Option<u64>);
    /// For the other reads of associations.
    Associations(AssociationsAnswer);
    /// For `network`.
    Network(NetworkAnswer);
    /// For `distance`: 0, 1, 2 or 3 at each target's index, or `None` if the target is farther or unreachable.
    Distances(Vec<Option<u8>>);
    /// For `path`.
    Path(PathAnswer);
    /// For `common`.
    Common(CommonAnswer);
    /// For `suggest`: (member, number of common connections), greatest numbers first, ties by ascending id.
    Suggestions(Vec<(u64, u32)>);
    /// For `reciprocal`.
    Reciprocal(ReciprocalAnswer);
}
