//! What nodes answer to reads of a live graph, key by key.

use kith_live::{AssociationAnswer, ObjectAnswer};

/// The object that a key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectEntry {
    /// There is no such object.
    Absent,
    /// The object.
    Found(ObjectAnswer),
    /// No replica answered for the key. Only where the caller accepts partial answers.
    Unanswered,
}

/// What was read of the association list of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssociationsEntry {
    /// What was asked for. The list of an object that does not exist is empty.
    Answer(AssociationAnswer),
    /// No replica answered for the key. Only where the caller accepts partial answers.
    Unanswered,
}
