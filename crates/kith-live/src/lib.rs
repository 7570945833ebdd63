//! The live graph: objects and associations that are written while they are read (TAO; `docs/design/0019-live-graph.md`).
//!
//! This crate has the vocabulary and the decisions of live graphs: types and their evolution, writes and their outcomes,
//! rows, the change records of the log, tickets, how a write changes rows, and the state machine of leaders. Nothing in it
//! does I/O, reads a clock or draws random numbers.

mod batch;
mod change;
mod coding;
mod decide;
mod guards;
mod intent;
mod leader;
mod read;
mod resolve;
mod rows;
pub mod testing;
mod ticket;
#[cfg(test)]
mod twin;
mod types;
mod write;

#[cfg(test)]
use testing::fixture;

pub use batch::{Batch, BatchPart, LoggedChange, RecordedOutcome, RowAnswer, RowQuery, RowWrite, RowsAt};
pub use change::{CHANGE_OBJECT_BYTES_MAX, Change, Effect};
pub use coding::{
    Garbled, associations_from_bytes, associations_to_bytes, objects_from_bytes, objects_to_bytes,
    queries_from_bytes, queries_to_bytes,
};
pub use decide::{
    Decision, DecisionContext, NotLoaded, Rows, complete, completion_queries, decide, deliver,
    delivery_queries,
};
pub use guards::Guards;
pub use intent::{Edge, EdgeContent, Intent};
pub use leader::{
    Action, Answered, CallerId, CommitId, CommitResult, Delivery, DeliveryError, Duties, DutyChange, Event,
    Leader, LoadId, Now, SenderId, WriteError,
};
pub use read::{
    AssociationAnswer, AssociationRead, INDEX_MAX, ListedAssociation, ObjectAnswer, ObjectFind, Select, Start,
};
pub use resolve::{
    EdgeKeys, ResolvedMutation, ResolvedWrite, WriteFault, WriteName, new_object_id, ordering_partition,
};
pub use rows::{
    Association, AssociationKey, Data, IndexEntry, ListKey, ListPlace, Object, Pair, UniqueHolder,
};
pub use ticket::{NotATicket, STALE_MAX, Ticket, VISIBLE_AFTER};
pub use types::{
    AssociationDocument, AssociationType, CAP_MAX, DeclaredAssociation, DeclaredInverse, DeclaredObject,
    DeclaredTypes, FieldsFault, FindFault, GraphTypes, INDEX_KEY_BYTES_MAX, Index, IndexDocument, IndexId,
    Indexing, Inverse, Label, MissingTypes, OPEN_TYPES_MAX, ObjectDocument, ObjectType, Subject,
    TEXT_BYTES_MAX, TYPES_MAX, TypeChange, TypeId, TypeKind, TypesDocument, TypesError, TypesFault,
    UnknownType,
};
pub use write::{
    ASSOCIATION_BYTES_MAX, Conditions, Done, Mutation, NotAWriteId, OBJECT_BYTES_MAX, Outcome, Refusal,
    WRITE_ID_BYTES_MAX, Write, WriteId,
};
