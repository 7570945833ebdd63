//! The words of live graphs: writes and reads as callers state them, their answers, and tickets. What writes do, and who
//! orders them, is decided in `kith-live`.

mod checksum;
mod fault;
mod read;
mod text_id;
mod ticket;
mod write;

pub use fault::{FieldsFault, TypeId, UnknownType, WriteFault};
pub use read::{
    AssociationAnswer, AssociationRead, AssociationsPlan, CAP_MAX, CountedElements, ElementPart, ElementTest,
    FieldOrder, INDEX_MAX, ListPlace, ListedAssociation, ObjectAnswer, ObjectFields, ObjectFind, Select,
    Start,
};
pub use text_id::{NotATextId, TEXT_ID_BYTES_MAX, TextId, TextIdForm};
pub use ticket::{NotATicket, STALE_MAX, Ticket, VISIBLE_AFTER};
pub use write::{
    ASSOCIATION_BYTES_MAX, CompletedWrite, Conditions, Mutation, NotAWriteId, OBJECT_BYTES_MAX, Outcome,
    Refusal, WRITE_ID_BYTES_MAX, Write, WriteId,
};
