//! The computations of Kith over graphs and stores: operators, operations, and the merge of partial answers.
//!
//! Everything here is a plain function of its inputs. A node evaluates an [`Operator`] tree over a [`NeighbourSource`]. A
//! caller drives an [`Operation`], which says step by step what to ask the nodes, and finally what the answer is. Neither
//! knows about sockets, clocks or the placement of partitions.

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
mod schema;
pub mod sets;
mod slices;
mod source;
pub mod testing;
mod typing;
mod value;

pub use answer::{
    AssociationsAnswer, CommonAnswer, EdgeColumn, EdgesAnswer, GraphAnswer, NetworkAnswer, PathAnswer,
};
pub use deliveries::Deliveries;
pub use edges::{EdgeList, EdgePage, EdgePosition, EdgesEntry, EdgesPlan, PLAN_COLUMNS_MAX};
pub use error::{EvaluateError, MergeError, OperationError};
pub use evaluate::{
    BatchRead, GRAPH_BYTES_MAX, LookupKeys, Room, Share, aggregate, aggregate_fetched, best, compute,
    compute_fetched, evaluate, evaluate_values, lookup,
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
pub use operator::{ColumnRange, EdgeSelector, Operator};
pub use query::{ColumnFilter, CommonPlan, GraphQuery, NetworkPlan, Operand, Want};
pub use records::{Record, RecordCounts, RecordError, Records, RecordsBuilder, RecordsOver};
pub use schema::{GraphSchema, KindRole, KindSchema};
pub use sets::Scratch;
pub use slices::SliceSizes;
pub use source::{
    EachEdges, EachLength, EachList, NeighbourSource, SourceError, SourceResult, SourceValue, ValueSource,
};
pub use typing::PlanSize;
pub use value::{ListEntry, Part, Value, ValueKind};
