//! The answers of nodes to reads of a live graph, key by key.

use kith_schema::live::{AssociationAnswer, ObjectAnswer};

/// The object that a key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectEntry {
    /// The object does not exist.
    Absent,
    /// The object.
    Found(ObjectAnswer),
    /// No replica answered for the key. Possible only if the caller accepts partial answers.
    Unanswered,
}

/// The answer for the association lists of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssociationsEntry {
    /// The requested part of each list, in the order of the reads. The lists of an object that does not exist are empty.
    Answer(Vec<AssociationAnswer>),
    /// No replica answered for the key. Possible only if the caller accepts partial answers.
    Unanswered,
}
