//! The operator plan: a small tree that a node evaluates over its partitions and
//! a caller over the nodes' answers (Moolle §II-A pushes query processing to both).

use crate::EdgesPlan;
use kith_live::AssociationRead;
use kith_schema::compute::{AggregatePlan, ComputePlan};
use kith_types::Direction;
use std::sync::Arc;

/// Which edges to follow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeSelector {
    /// Name of an edge type or entity kind of the graph.
    pub kind: String,
    /// Which way to follow it.
    pub direction: Direction,
    /// Keep only edges whose column lies in a range; `None` keeps all.
    pub filter: Option<ColumnRange>,
}

/// An inclusive range over a column that the loader kept beside the ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnRange {
    /// Name of the column.
    pub column: String,
    /// Least value kept, as it is stored ([`kith_schema::ColumnKind::store`]).
    pub low: u64,
    /// Greatest value kept, as it is stored.
    pub high: u64,
}

/// One operator. Leaves give ids or lists; inner nodes fold them.
///
/// A tree is well-typed when each operator's input has the [`crate::Value`] its
/// documentation names; evaluation refuses others with `EvaluateError::Mistyped`.
#[derive(Clone, Debug, PartialEq)]
pub enum Operator {
    /// The keys that the request carries for this node: a set, in request order.
    Keys,
    /// A fixed, sorted, distinct set.
    Ids(Vec<u64>),
    /// The neighbour lists of each id of `input`, in order: `Lists`. A list with more than
    /// `longest` ids is answered by its length alone.
    Expand {
        /// Ids to expand.
        input: Box<Operator>,
        /// Edges to follow.
        edge: EdgeSelector,
        /// Longest list to return; `u64::MAX` returns all.
        longest: u64,
    },
    /// The members of the request's partitions whose list under `edge` contains `id`: `Set`.
    /// Reads the partitions' inverted index; `edge.direction` is the direction of the *indexed* lists.
    Postings {
        /// The neighbour looked for.
        id: u64,
        /// The indexed edges.
        edge: EdgeSelector,
    },
    /// Every member of the graph in the request's partitions, with or without edges: `Set`.
    Members,
    /// `Lists` → `Set`: every id of any list.
    Union(Box<Operator>),
    /// `Set` → `Neighbourhood`: the set, and every id of any of its ids' lists.
    Neighbourhood {
        /// Ids to expand.
        input: Box<Operator>,
        /// Edges to follow.
        edge: EdgeSelector,
    },
    /// `Lists` → `Tallies`: every id of any list with the number of lists that hold it.
    Tally(Box<Operator>),
    /// `Set`s → `Set`: ids in all inputs. At least one input.
    Intersect(Vec<Operator>),
    /// `Set` → `Set` and `Tallies` → `Tallies`: drops the ids of a sorted, distinct list.
    Except {
        /// What to thin out.
        input: Box<Operator>,
        /// Sorted, distinct ids to drop.
        drop: Vec<u64>,
    },
    /// `Set` → `Set`: the `count` least ids.
    Limit {
        /// What to cut.
        input: Box<Operator>,
        /// How many to keep.
        count: u64,
    },
    /// `Set` → `Count`; `Lists` → `Lists` of lengths.
    Count(Box<Operator>),
    /// `Set` → `Exists`: whether it has an id.
    Exists(Box<Operator>),
    /// The edges of the request's keys with their columns, in request order: `Edges`. Not an input of other operators.
    Edges(Box<EdgesPlan>),
    /// The objects of a live graph that the request's keys name, in request order: `Objects`. Not an input of other operators.
    Objects,
    /// What is read of the association list of each of the request's keys in a live graph, in request order: `Associations`. Not an
    /// input of other operators.
    Associations(Box<AssociationRead>),
    /// The values of the request's keys in a store, in request order: `Records`. Not an input of other operators.
    Lookup,
    /// What a plan makes of the records of the request's keys in a store, in request order: `Records`, of the plan's result. Not an
    /// input of other operators.
    Compute(Arc<ComputePlan>),
    /// Counts over the records of the request's keys in a store: `Groups`. Not an input of other operators.
    Aggregate(Arc<AggregatePlan>),
}

impl Operator {
    /// Whether it is asked of stores of values, by key; graphs answer all others.
    pub fn reads_values(&self) -> bool {
        matches!(self, Operator::Lookup | Operator::Compute(_) | Operator::Aggregate(_))
    }

    /// Whether only live graphs answer it: it reads objects or associations, which loaded graphs do not have.
    pub fn needs_live_graph(&self) -> bool {
        matches!(self, Operator::Objects | Operator::Associations(_))
    }

    /// Whether asking a node twice has the effect of asking it once. Only then may a request be retried or hedged.
    pub fn is_idempotent(&self) -> bool {
        match self {
            // All of them only read.
            Operator::Keys
            | Operator::Ids(_)
            | Operator::Expand { .. }
            | Operator::Postings { .. }
            | Operator::Members
            | Operator::Union(_)
            | Operator::Neighbourhood { .. }
            | Operator::Tally(_)
            | Operator::Intersect(_)
            | Operator::Except { .. }
            | Operator::Limit { .. }
            | Operator::Count(_)
            | Operator::Exists(_)
            | Operator::Edges(_)
            | Operator::Objects
            | Operator::Associations(_)
            | Operator::Lookup
            | Operator::Compute(_)
            | Operator::Aggregate(_) => true,
        }
    }

    /// Whether what it gives for some keys is part of what it gives for all: answers to it may come in parts.
    pub fn is_key_by_key(&self) -> bool {
        match self {
            Operator::Lookup => true,
            Operator::Compute(plan) => plan.top_k.is_none(),
            _ => false,
        }
    }
}
