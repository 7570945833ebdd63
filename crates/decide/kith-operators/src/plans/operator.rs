//! The operator plan: a small tree that nodes evaluate over their partitions, and callers over the answers of nodes (Moolle
//! §II-A pushes query processing to both).

use crate::EdgesPlan;
use kith_schema::live::{AssociationsPlan, CountedElements, ElementTest, ObjectFields, ObjectFind};
use kith_schema::{
    EdgeSelector,
    compute::{AggregatePlan, ComputePlan},
};
use std::sync::Arc;

/// One operator. Leaves yield ids or lists; inner nodes fold them.
///
/// A tree is well-typed if each operator's input yields the kind of [`crate::Value`] that its documentation names.
/// Evaluation refuses other trees with `EvaluateError::Mistyped`.
#[derive(Clone, Debug, PartialEq)]
pub enum Operator {
    /// The keys that the request carries for this node: a set, in the order of the request.
    Keys,
    /// A fixed, sorted, distinct set.
    Ids(Vec<u64>),
    /// The neighbour lists of each id of `input`, in order: `Lists`. A list with more than
    /// `longest` ids is answered by its length alone.
    Expand {
        /// The ids to expand.
        input: Box<Operator>,
        /// The edges to follow.
        edge: EdgeSelector,
        /// The longest list to return; `u64::MAX` returns all.
        longest: u64,
    },
    /// The members of the request's partitions whose list under `edge` contains `id`: `Set`.
    /// Reads the partitions' inverted index; `edge.direction` is the direction of the *indexed* lists.
    Postings {
        /// The neighbour to look up.
        id: u64,
        /// The edges of the indexed lists.
        edge: EdgeSelector,
    },
    /// The members of the graph in the request's partitions, with or without edges: `Set`.
    Members {
        /// The least id; 0 for all members.
        from: u64,
    },
    /// `Lists` → `Set`: every id of any list.
    Union(Box<Operator>),
    /// The other ends of all edges of the request's keys: `Set`. An edge from a key to itself counts, although no neighbour
    /// list has it. Not an input of other operators.
    Reach(Vec<EdgeSelector>),
    /// `Set` → `Neighbourhood`: the set, and every id of any of its ids' lists.
    Neighbourhood {
        /// The ids to expand.
        input: Box<Operator>,
        /// The edges to follow.
        edge: EdgeSelector,
    },
    /// `Lists` → `Tallies`: every id of any list with the number of lists that hold it.
    Tally(Box<Operator>),
    /// `Set`s → `Set`: ids in all inputs. At least one input.
    Intersect(Vec<Operator>),
    /// `Set` → `Set` and `Tallies` → `Tallies`: drops the ids of a sorted, distinct list.
    Except {
        /// The ids to filter.
        input: Box<Operator>,
        /// The sorted, distinct ids to drop.
        drop: Vec<u64>,
    },
    /// `Set` → `Set`: the `count` least ids.
    Limit {
        /// The ids to cut.
        input: Box<Operator>,
        /// The number of ids to keep.
        count: u64,
    },
    /// `Set` → `Count`; `Lists` → `Lists` of lengths.
    Count(Box<Operator>),
    /// `Set` → `Exists`: whether it contains an id.
    Exists(Box<Operator>),
    /// The edges of the request's keys with their columns, in request order: `Edges`. Not an input of other operators.
    Edges(Box<EdgesPlan>),
    /// The objects of a live graph that the request's keys name, in request order: `Objects`. Not an input of other
    /// operators.
    Objects(ObjectFields),
    /// Those of the request's keys that name objects of a live graph which pass all tests: `Set`. Not an input of other
    /// operators.
    Passing(Vec<ElementTest>),
    /// The ids of the objects of a live graph in the request's partitions that have one of the given values in a field with
    /// an index: `Set`. Not an input of other operators.
    Find(Box<ObjectFind>),
    /// The number of these elements of a live graph in the request's partitions: `Count`.
    CountElements(CountedElements),
    /// The sum of the lengths of these lists of all members of the request's partitions: `Count`.
    Total(Vec<EdgeSelector>),
    /// The requested parts of association lists of each of the request's keys in a live graph, in request order:
    /// `Associations`. Not an input of other operators.
    Associations(Box<AssociationsPlan>),
    /// The values of the request's keys in a store, in request order: `Records`. Not an input of other operators.
    Lookup,
    /// The results of a plan for the records of the request's keys in a store, in request order: `Records` of the plan's
    /// result. Not an input of other operators.
    Compute(Arc<ComputePlan>),
    /// Counts over the records of the request's keys in a store: `Groups`. Not an input of other operators.
    Aggregate(Arc<AggregatePlan>),
}

impl Operator {
    /// Every member of the graph in the request's partitions.
    pub const ALL_MEMBERS: Self = Self::Members { from: 0 };

    /// Whether the operator reads a store of values by key. All others read graphs.
    pub fn reads_values(&self) -> bool {
        matches!(self, Operator::Lookup | Operator::Compute(_) | Operator::Aggregate(_))
    }

    /// Whether the operator reads objects or associations, which only live graphs have.
    pub fn needs_live_graph(&self) -> bool {
        matches!(
            self,
            Operator::Objects(_)
                | Operator::Passing(_)
                | Operator::Find(_)
                | Operator::CountElements(_)
                | Operator::Associations(_)
        )
    }

    /// Whether the result for some keys is a part of the result for all, so that answers may come in parts.
    pub fn is_key_by_key(&self) -> bool {
        match self {
            Operator::Lookup => true,
            Operator::Compute(plan) => plan.top_k.is_none(),
            _ => false,
        }
    }
}
