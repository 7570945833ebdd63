//! The reasons why a write is invalid, whatever is stored.

use crate::{EncodeError, Incompatible, RecordError};
use std::fmt;
use thiserror::Error;

/// The number of an object type or association type. No two types of a graph have the same number, and no number is used
/// again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub u16);

impl fmt::Display for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A write is invalid. Nothing was written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteFault {
    /// The graph does not have the type.
    #[error(transparent)]
    Type(#[from] UnknownType),
    /// The fields cannot be stored.
    #[error(transparent)]
    Fields(#[from] FieldsFault),
    /// The write creates an object, but has neither an id for it nor a write id to derive the id from.
    #[error("an object without an id needs a write_id, from which its id is derived")]
    NoWriteId,
    /// The write creates an object, and has both an id and `near`. The id alone determines the partition.
    #[error("an object can have \"id\" or \"near\", but not both")]
    IdAndNear,
    /// The write creates an object, and has an id as a text besides another one.
    #[error("an object can have one id, as a number or as a text")]
    TextIdAndNumber,
    /// The id of a new object is a text, and its type only has numbers as ids.
    #[error(
        "{id:?} cannot be the id of an object of type {kind:?}: its ids are whole numbers from 0 to 18446744073709551615. Types \
         that are declared with ids = \"text\", and open types, have any ids"
    )]
    NoTextIds {
        /// The name of the type.
        kind: String,
        /// The id.
        id: String,
    },
    /// Other objects have both numbers that stand for the id of a new object.
    #[error("{id:?} cannot be the id of an object: its hash is that of two other ids of the graph")]
    TextIdUnlucky {
        /// The id.
        id: String,
    },
    /// The write changes the type of an association to the type that it already has.
    #[error("the new type is the same as the old one")]
    SameType,
    /// The write changes the type of an association, and only one of the two types has an inverse.
    #[error(
        "an association cannot change from {kind:?} to {new_kind:?}: only one of these types has an inverse"
    )]
    SidesDiffer {
        /// The name of the old type.
        kind: String,
        /// The name of the new type.
        new_kind: String,
    },
}

/// A request names a type that the graph does not have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the graph has no {what} type {name:?}{}", near.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default())]
pub struct UnknownType {
    /// The kind of type that was looked for: `object` or `association`.
    pub what: &'static str,
    /// The name that no such type has.
    pub name: String,
    /// The name of the type that was probably meant, if there is a similar one.
    pub near: Option<String>,
}

impl UnknownType {
    /// Returns what the caller can do about the error.
    pub fn help(&self) -> String {
        format!("`kith schema show --graph NAME` lists the {} types of a graph", self.what)
    }
}

/// Fields cannot be stored, or a stored record cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldsFault {
    /// No type of the graph has this number.
    #[error("the graph has no type with the number {0}")]
    NoType(TypeId),
    /// The fields do not fit the schema of their type.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The record is larger than an object or association may be.
    #[error("the fields take {bytes} bytes, and at most {max} are allowed")]
    TooLarge {
        /// The size of the record, in bytes.
        bytes: usize,
        /// The maximum size of the record, in bytes.
        max: usize,
    },
    /// The record names a schema that its type does not have.
    #[error(
        "a record of type {kind} was written with schema {schema} of that type, which the graph does not have"
    )]
    NoSchema {
        /// The type of the record.
        kind: TypeId,
        /// The index of the schema.
        schema: u16,
    },
    /// The type of an association cannot change, because the new type lacks a field that has a value.
    #[error("field {field:?} would be lost: the new type does not have it")]
    FieldLost {
        /// The name of the field.
        field: String,
    },
    /// A record with one schema cannot be converted to another schema.
    #[error(transparent)]
    Incompatible(#[from] Incompatible),
    /// A stored record is damaged.
    #[error(transparent)]
    Damaged(#[from] RecordError),
    /// The fields cannot be stored as properties of an open type, for this reason.
    #[error("{0}")]
    Property(String),
    /// The id at the beginning of a stored record is damaged.
    #[error("the id in the record of an object is damaged")]
    DamagedId,
    /// A stored record of an open type is damaged.
    #[error("the record of an open type is not text")]
    NotText,
}

impl FieldsFault {
    /// Whether newer types of the graph may have what is missing: the type of a record, or its schema.
    pub fn needs_newer_types(&self) -> bool {
        matches!(self, FieldsFault::NoType(_) | FieldsFault::NoSchema { .. })
    }
}
