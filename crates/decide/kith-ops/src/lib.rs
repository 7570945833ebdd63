//! The computations of Kith over graphs and stores: operations, operators, and the merge of partial answers. Everything
//! here is a plain function of its inputs. It knows neither sockets and clocks nor the placement of partitions.
//!
//! ```text
//! caller (kith-client)                                 node (kith-node)
//! Operation::step   ──► FanOut { keys, Operator } ───► evaluate(Operator, NeighbourSource) ──► Part
//!         ▲                                                                                     │
//!         └───────────── merged Value ◄──────────────── Value::merge ◄──────────────────────────┘
//! ```
//!
//! - `graph`: one file for each operation of graphs, as a state machine; `limits` bounds what a query may ask.
//! - `query`, `answer`: what can be asked of a graph, and the answers.
//! - `operation`: the interface between an operation and whoever drives it.
//! - `operator`, `typing`, `evaluate`: the tree that nodes evaluate, its check, and its evaluation.
//! - `value`, `merge`, `groups`: the parts of nodes, and how they are joined.
//! - `records`, `slices`, `deliveries`: batch reads, in which every key is accounted for.
//! - [`sets`]: kernels over sorted ids.
//! - [`testing`]: a cluster within one thread, and the naive twin of each operation.
//!
//! An operation never sends anything, and operators only read, so that a request to a node may be repeated.
//!
//! To add an operation, write `graph/<name>.rs` and its variants of `Machine` and [`Operand`], and prove it by a
//! property test against `testing::naive`.

mod answer;
mod deliveries;
mod edges;
mod error;
mod evaluate;
mod graph;
mod groups;
mod live;
mod merge;
mod network;
mod operation;
mod operator;
mod query;
mod records;
pub mod sets;
mod slices;
pub mod testing;
mod typing;
mod value;

pub use answer::{
    AssociationsAnswer, CommonAnswer, EdgeColumn, EdgesAnswer, GraphAnswer, NetworkAnswer, PathAnswer,
};
pub use deliveries::Deliveries;
pub use edges::{EdgePage, EdgePosition, EdgesEntry, EdgesPlan, PLAN_COLUMNS_MAX};
pub use error::{EvaluateError, MergeError, OperationError};
pub use evaluate::{
    BatchRead, GRAPH_BYTES_MAX, Room, Share, aggregate, aggregate_fetched, best, compute, compute_fetched,
    evaluate, evaluate_values, lookup,
};
pub use graph::{
    ASSOCIATION_IDS_MAX, COMMON_FETCH_MAX, DEGREE_IDS_MAX, DISTANCE_TARGETS_MAX, EDGES_MAX, EdgeCursor,
    EdgesQuery, FIND_IDS_MAX, FIND_VALUES_MAX, NotACursor, OBJECT_IDS_MAX, PATH_LENGTH_MAX, SUGGESTIONS_MAX,
};
pub use groups::Groups;
pub use live::{AssociationsEntry, ObjectEntry};
pub use merge::Missing;
pub use network::{Network, NetworkKey, NetworkSizes};
pub use operation::{FanOut, Input, Operation, OperationStep, Outline, Scope};
pub use operator::Operator;
pub use query::{ColumnFilter, CommonPlan, GraphQuery, NetworkPlan, Operand, Want};
pub use records::{Record, RecordCounts, RecordError, Records, RecordsBuilder, RecordsOver};
pub use sets::Scratch;
pub use slices::SliceSizes;
pub use typing::PlanSize;
pub use value::{ListEntry, Part, Value, ValueKind};
