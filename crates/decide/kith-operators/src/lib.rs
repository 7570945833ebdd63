//! The evaluation of queries on nodes, and the merging of the parts of their answers: operators, values, kernels over
//! sorted ids, and records. Everything here is a plain function of its inputs. It knows neither sockets and clocks nor the
//! placement of partitions, and not which question is being answered.
//!
//! ```text
//! caller                                             node (kith-node)
//! Operator, keys ────────────────────────────────►   evaluate(Operator, NeighbourSource) ──► Part
//!         ▲                                                                                   │
//!         └───────────── merged Value ◄────────────── Value::merge ◄──────────────────────────┘
//! ```
//!
//! - `plans`: the operators that nodes are asked to evaluate, the check of their types, and the values that they
//!   return, with the merging of the parts of several nodes.
//! - `evaluate`: the evaluation of operators on a node.
//! - `values`: reads of values by their keys, and computations over them.
//! - `network`: a member's network, as one value that caches hold.
//! - `records`, `groups`, `deliveries`: batch reads, in which every key is accounted for.
//! - [`sets`]: kernels over sorted ids.
//! - `testing`, a feature: a graph in memory.
//!
//! A program that only asks routers goes without plans, their evaluation and kernels over many lists (cargo feature `nodes`).
//!
//! Operators only read, so that a request to a node may be repeated. The questions that are built from operators are in
//! `kith-query`.

mod deliveries;
mod error;
#[cfg(feature = "nodes")]
mod evaluate;
mod groups;
mod limits;
mod network;
#[cfg(feature = "nodes")]
mod plans;
mod position;
mod records;
pub mod sets;
#[cfg(feature = "testing")]
pub mod testing;
mod values;

pub use deliveries::Deliveries;
pub use error::{EvaluateError, MergeError};
#[cfg(feature = "nodes")]
pub use evaluate::{Share, SliceSizes, evaluate, evaluate_values};
pub use groups::Groups;
pub use limits::{ASSOCIATION_IDS_MAX, FIND_VALUES_MAX, GRAPH_BYTES_MAX, TESTS_MAX};
pub use network::{Network, NetworkKey, NetworkSizes};
#[cfg(feature = "nodes")]
pub use plans::{
    AssociationsEntry, EdgePage, EdgesEntry, EdgesPlan, ListEntry, MissingKeyRule, ObjectEntry, Operator,
    PLAN_COLUMNS_MAX, Part, PlanSize, Value, ValueKind,
};
pub use position::EdgePosition;
pub use records::{Record, RecordCounts, RecordError, Records, RecordsBuilder, RecordsOver};
#[cfg(feature = "nodes")]
pub use sets::Scratch;
pub use values::{BatchRead, Room, aggregate, aggregate_fetched, best, compute, compute_fetched, lookup};
