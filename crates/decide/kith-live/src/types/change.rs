//! The changes of types, as they are reported.

use super::fault::TypeKind;
use super::{Indexing, TypeId};
use kith_schema::Change;
use std::fmt;

/// One difference between the types of a graph and those that a text declares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum TypeChange {
    /// A type is new.
    Added { kind: TypeKind, name: String, number: TypeId },
    /// The fields of a type, and of its inverse if it has one, change.
    Fields { kind: TypeKind, name: String, change: Change },
    /// The cap of an association type changes.
    Cap { name: String, was: u32, now: u32 },
    /// A field of an object type has an index from now on, no longer has one, or its values need no longer be unique.
    Index { name: String, field: String, was: Indexing, now: Indexing },
    /// Graph queries can now follow the associations of a type, or can no longer follow them.
    Adjacency { name: String, now: bool },
    /// Writes now add types, or no longer do so.
    Open { now: bool },
}

impl fmt::Display for TypeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeChange::Added { kind, name, number } => {
                write!(f, "{kind} type {name:?} is new and gets number {number}")
            }
            TypeChange::Fields { kind, name, change } => write!(f, "{kind} type {name:?}: {change}"),
            TypeChange::Cap { name, was, now } => {
                write!(f, "association type {name:?}: the cap was {was} and is now {now}")
            }
            TypeChange::Index { name, field, was, now } => {
                write!(f, "object type {name:?}: field {field:?} had {was} and now has {now}")
            }
            TypeChange::Adjacency { name, now: true } => {
                write!(f, "association type {name:?}: graph queries can now follow it")
            }
            TypeChange::Open { now: true } => f.write_str("writes now add types that do not exist"),
            TypeChange::Open { now: false } => f.write_str("writes no longer add types"),
            TypeChange::Adjacency { name, now: false } => {
                write!(f, "association type {name:?}: graph queries can no longer follow it")
            }
        }
    }
}
