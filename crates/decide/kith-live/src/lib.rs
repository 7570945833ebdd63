//! The decisions of live graphs: objects and associations that are written while they are read (TAO;
//! `docs/design/0019-live-graph.md`). Nodes, databases, clients and the simulator use this crate. It does no I/O, reads
//! no clock and draws no random numbers.
//!
//! ```text
//! Write ──► resolve: which partition orders it, which rows it needs ──► decide: rows, change record, outcome
//!                                                                         │
//! events of the shell ──► Leader: queue, transaction, answers ──► actions ┘ (load, commit, deliver, answer)
//! ```
//!
//! - `types`: types of objects and associations, their fields and indexes, and which changes of them are allowed.
//! - [`kith_schema::live`]: requests as callers state them, their outcomes, and the log points that a read must have seen.
//! - `resolve`, `decide`: pure functions from a write to its changes.
//! - `leader`: the state machine of the partitions that one node leads in one database. `terms` takes them and gives them away; `limits` has the bounds.
//! - `intent`: writes to a pair of partitions, from the decision until both ends have them.
//! - `rows`, `batch`, `change`, `coding`: rows, transactions, log records, and their bytes.
//! - `elements`, [`field_values`]: tests of elements for traversals, and fields as values of Gremlin.
//! - `guards`: the rules that keep pairs and logs correct, each with a test that shows the harm without it.
//! - [`testing`]: a model of TAO without partitions or logs.
//!
//! No outcome is answered before the transaction that decided it is committed, and each transaction is conditional on
//! the term and the log position that the leader knows.
//!
//! To add a kind of write, begin with a variant of [`Mutation`], then follow the compiler to `resolve` and `decide`. To
//! add a condition of writes, begin with [`Conditions`].

mod batch;
mod change;
mod coding;
mod decide;
mod elements;
pub mod field_values;
mod guards;
mod intent;
mod leader;
mod resolve;
mod rows;
pub mod testing;
#[cfg(test)]
mod twin;
mod types;

#[cfg(test)]
use testing::fixture;

pub use batch::{Batch, BatchPart, LoggedChange, RecordedOutcome, RowAnswer, RowQuery, RowWrite, RowsAt};
pub use change::{CHANGE_OBJECT_BYTES_MAX, Change, Effect};
pub use coding::{
    GarbledBytes, associations_from_bytes, associations_to_bytes, objects_from_bytes, objects_to_bytes,
    queries_from_bytes, queries_to_bytes,
};
pub use decide::{
    Decision, DecisionContext, NotLoaded, Rows, complete, completion_queries, decide, deliver,
    delivery_queries,
};
pub use elements::{ElementTests, TestedValues, UntestableElement};
pub use guards::Guards;
pub use intent::{Edge, EdgeContent, Intent, WriteName};
pub use kith_schema::live::{
    ASSOCIATION_BYTES_MAX, AssociationAnswer, AssociationRead, AssociationsPlan, CAP_MAX, CompletedWrite,
    Conditions, CountedElements, ElementPart, ElementTest, FieldOrder, FieldsFault, INDEX_MAX, ListPlace,
    ListedAssociation, Mutation, NotATextId, NotATicket, NotAWriteId, OBJECT_BYTES_MAX, ObjectAnswer,
    ObjectFields, ObjectFind, Outcome, Refusal, STALE_MAX, Select, Start, TEXT_ID_BYTES_MAX, TextId,
    TextIdForm, Ticket, TypeId, UnknownType, VISIBLE_AFTER, WRITE_ID_BYTES_MAX, Write, WriteFault, WriteId,
};
pub use leader::{
    Action, CallerId, ClockReading, CommitId, CommitResult, Delivery, DeliveryError, Duties, DutyChange,
    Event, Leader, LoadId, SenderId, WriteAnswer, WriteError,
};
pub use resolve::{
    EdgeKeys, ResolvedMutation, ResolvedWrite, new_object_id, ordering_partition, text_id_numbers,
};
pub use rows::{Association, AssociationKey, Data, IndexEntry, IndexId, ListKey, Object, Pair, UniqueHolder};
pub use types::{
    AssociationDocument, AssociationType, DeclaredAssociation, DeclaredInverse, DeclaredObject,
    DeclaredTypes, FindFault, GraphTypes, INDEX_KEY_BYTES_MAX, Index, IndexDocument, Indexing, Inverse,
    Label, MissingTypes, OPEN_TYPES_MAX, ObjectDocument, ObjectType, TEXT_BYTES_MAX, TYPES_MAX, TypeChange,
    TypeKind, TypePart, TypesDocument, TypesError, TypesFault,
};
