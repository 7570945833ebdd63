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
//! - `operator`, `typing`, `evaluate`: the tree that nodes evaluate, its check, and its evaluation.
//! - `value`, `merge`, `groups`, `live`, `edges`: the parts of nodes, and how they are joined.
//! - `network`: a member's network, as one value that caches hold.
//! - `records`, `slices`, `deliveries`: batch reads, in which every key is accounted for.
//! - [`sets`]: kernels over sorted ids.
//! - [`testing`]: a graph in memory.
//!
//! Operators only read, so that a request to a node may be repeated. The questions that are built from operators are in
//! `kith-query`.

mod deliveries;
mod edges;
mod error;
mod evaluate;
mod groups;
mod live;
mod merge;
mod network;
mod operator;
mod records;
pub mod sets;
mod slices;
pub mod testing;
mod typing;
mod value;

pub use deliveries::Deliveries;
pub use edges::{EdgePage, EdgePosition, EdgesEntry, EdgesPlan, PLAN_COLUMNS_MAX};
pub use error::{EvaluateError, MergeError};
pub use evaluate::{
    BatchRead, GRAPH_BYTES_MAX, Room, Share, aggregate, aggregate_fetched, best, compute, compute_fetched,
    evaluate, evaluate_values, lookup,
};
pub use groups::Groups;
pub use live::{AssociationsEntry, ObjectEntry};
pub use merge::MissingKeyRule;
pub use network::{Network, NetworkKey, NetworkSizes};
pub use operator::Operator;
pub use records::{Record, RecordCounts, RecordError, Records, RecordsBuilder, RecordsOver};
pub use sets::Scratch;
pub use slices::SliceSizes;
pub use typing::{ASSOCIATION_IDS_MAX, FIND_VALUES_MAX, PlanSize};
pub use value::{ListEntry, Part, Value, ValueKind};
