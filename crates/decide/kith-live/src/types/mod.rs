//! The types of a live graph: its object types and association types, and their fields.

mod change;
mod declared;
mod document;
mod evolution;
mod evolve;
mod fault;
mod fields;
mod index;
mod open;
mod open_record;
mod parse;
mod record_id;

pub use change::TypeChange;
pub use declared::{DeclaredAssociation, DeclaredInverse, DeclaredObject, DeclaredTypes};
pub use document::{AssociationDocument, IndexDocument, ObjectDocument, TypesDocument};
pub use fault::{TypeKind, TypePart, TypesError, TypesFault};
pub use index::{FindFault, INDEX_KEY_BYTES_MAX, Index, Indexing};
pub use open::{Label, MissingTypes};

use crate::{CAP_MAX, Data, FieldsFault, IndexEntry, IndexId, Mutation, TypeId, UnknownType};
use kith_schema::{Schema, nearest};
use record_id::RecordIds;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The maximum number of types of a graph: type numbers have 16 bits, and 0 is not used.
pub const TYPES_MAX: usize = 65_535;
/// Writes to an open graph add types only up to this number of types; an association type and its inverse are two. Every node
/// and router reads the types of a graph again with every new one.
pub const OPEN_TYPES_MAX: usize = 2_000;
/// The maximum size of the text or the document of types, in bytes. Metadata stores refuse values of more than 1.5 MiB.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// The types of one live graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphTypes {
    /// The number that distinguishes the graph from all others. It is chosen when the graph is created; tickets and the
    /// database contain it.
    pub identity: u64,
    /// The revision of the types: 1 for a new graph, and one more after each change.
    pub revision: u64,
    /// Whether the graph is open: a write that names a type that does not exist adds the type.
    pub open: bool,
    /// The object types, by number.
    pub objects: BTreeMap<TypeId, ObjectType>,
    /// The association types, by number.
    pub associations: BTreeMap<TypeId, AssociationType>,
    /// The greatest number that an index has had. Numbers of indexes that are gone are not used again.
    pub indexes_made: u32,
}

/// An object type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectType {
    /// The name of the type.
    pub name: String,
    /// The schemas of the type, oldest first; empty if the type has no fields. New records are written with the last schema.
    /// Records with an older schema are converted to the last one when they are read. Rows from before the type had fields
    /// have no record; they are read as records in which every field is null or has its default.
    pub schemas: Vec<Schema>,
    /// The indexes on fields of the last schema, in ascending order of their numbers. No field has two.
    pub indexes: Vec<Index>,
    /// Whether the type is open: its records have any keys, with property values of Gremlin, and it has no schemas.
    pub open: bool,
    /// Whether the type was declared with `ids = "text"`. Objects of open types may have any ids too.
    pub text_ids: bool,
}

/// An association type.
#[derive(Clone, Debug, PartialEq)]
pub struct AssociationType {
    /// The name of the type.
    pub name: String,
    /// The schemas of the type, as in [`ObjectType::schemas`].
    pub schemas: Vec<Schema>,
    /// The inverse of the type, which its associations have in the other direction.
    pub inverse: Inverse,
    /// The maximum number of associations that one read returns (TAO §3.4).
    pub cap: u32,
    /// Whether graph queries follow associations of this type.
    pub adjacency: bool,
    /// Whether the type is open, as in [`ObjectType::open`]. An inverse is open if its forward type is.
    pub open: bool,
}

/// The type that the associations of a type have in the other direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inverse {
    /// The type is one-sided: its associations have no other direction.
    None,
    /// The type is its own inverse.
    Symmetric,
    /// The inverse is another type, whose inverse is this type. The type that was declared with `inverse` is the forward
    /// type.
    Named {
        /// The number of the other type.
        kind: TypeId,
        /// Whether this type is the forward type.
        forward: bool,
    },
}

impl ObjectType {
    /// Whether objects of this type may have fields.
    pub fn has_fields(&self) -> bool {
        self.open || !self.schemas.is_empty()
    }

    /// Whether objects of this type may have ids that are texts.
    pub fn takes_text_ids(&self) -> bool {
        self.open || self.text_ids
    }

    /// Where the records of objects of this type have ids.
    fn record_ids(&self) -> RecordIds {
        match (self.open, self.text_ids) {
            (true, _) => RecordIds::Some,
            (false, true) => RecordIds::All,
            (false, false) => RecordIds::None,
        }
    }
}

impl AssociationType {
    /// Whether associations of this type may have fields.
    pub fn has_fields(&self) -> bool {
        self.open || !self.schemas.is_empty()
    }

    /// The cap of a type that was declared without one.
    pub const CAP_DEFAULT: u32 = 6_000;

    /// Returns the inverse of this type; `None` for a one-sided type. `own` is the number of this type.
    pub fn inverse_of(&self, own: TypeId) -> Option<TypeId> {
        match self.inverse {
            Inverse::None => None,
            Inverse::Symmetric => Some(own),
            Inverse::Named { kind, .. } => Some(kind),
        }
    }

    /// Whether an association of this type from `id1` to `id2` is the forward direction of its edge. In a symmetric type,
    /// the forward direction leaves the smaller id.
    pub fn is_forward(&self, id1: u64, id2: u64) -> bool {
        match self.inverse {
            Inverse::None => true,
            Inverse::Symmetric => id1 <= id2,
            Inverse::Named { forward, .. } => forward,
        }
    }

    /// Whether the type has an inverse, so that a write changes both directions.
    pub fn is_two_sided(&self) -> bool {
        self.inverse != Inverse::None
    }
}

impl GraphTypes {
    /// Returns the object type with this name, and its number. O(n) in the number of object types.
    pub fn object(&self, name: &str) -> Option<(TypeId, &ObjectType)> {
        self.objects.iter().find(|(_, kind)| kind.name == name).map(|(id, kind)| (*id, kind))
    }

    /// Returns the greatest number of a type; 0 if there are no types.
    pub fn last_number(&self) -> TypeId {
        let objects = self.objects.last_key_value().map(|(number, _)| *number);
        let associations = self.associations.last_key_value().map(|(number, _)| *number);
        objects.max(associations).unwrap_or_default()
    }

    /// Returns the association type with this name, and its number. O(n) in the number of association types.
    pub fn association(&self, name: &str) -> Option<(TypeId, &AssociationType)> {
        self.associations.iter().find(|(_, kind)| kind.name == name).map(|(id, kind)| (*id, kind))
    }

    /// Returns the object type with this name, and its number.
    ///
    /// # Errors
    /// [`UnknownType`] if the graph has no object type with this name.
    pub fn object_named(&self, name: &str) -> Result<(TypeId, &ObjectType), UnknownType> {
        self.object(name).ok_or_else(|| {
            let near = nearest(name, self.objects.values().map(|kind| kind.name.as_str()));
            UnknownType { what: "object", name: name.to_owned(), near }
        })
    }

    /// Returns the association type with this name, and its number.
    ///
    /// # Errors
    /// [`UnknownType`] if the graph has no association type with this name.
    pub fn association_named(&self, name: &str) -> Result<(TypeId, &AssociationType), UnknownType> {
        self.association(name).ok_or_else(|| {
            let near = nearest(name, self.associations.values().map(|kind| kind.name.as_str()));
            UnknownType { what: "association", name: name.to_owned(), near }
        })
    }

    /// Returns the number of the type with this kind and name.
    ///
    /// # Errors
    /// [`UnknownType`] if the graph has no such type.
    pub fn number_of(&self, kind: TypeKind, name: &str) -> Result<TypeId, UnknownType> {
        Ok(match kind {
            TypeKind::Object => self.object_named(name)?.0,
            TypeKind::Association => self.association_named(name)?.0,
        })
    }

    /// Returns the types as a text would declare them now, in the order of their numbers.
    pub fn declared(&self) -> DeclaredTypes {
        DeclaredTypes::of(self)
    }

    /// Whether objects of the graph may have ids that are texts.
    pub fn take_text_ids(&self) -> bool {
        self.open || self.objects.values().any(ObjectType::takes_text_ids)
    }

    /// Returns the types that a write names and the graph does not have. `O(n)` in the number of types.
    pub fn missing(&self, mutation: &Mutation) -> MissingTypes {
        MissingTypes::of(self, mutation)
    }

    /// Returns the entries that an object has in the indexes of its type, in the order of the indexes. Null has no entry, and
    /// open types have no indexes.
    ///
    /// # Errors
    /// [`FieldsFault`] if these types do not know the type or the schema of the object, or if its record is damaged. An
    /// object that a later revision of the types has written may have entries that these types do not know of.
    pub fn entries(&self, kind: TypeId, id: u64, data: &Data) -> Result<Vec<IndexEntry>, FieldsFault> {
        let known = self.objects.get(&kind).ok_or(FieldsFault::NoType(kind))?;
        known.entries(kind, id, data)
    }

    /// Returns the value of the field that an index is on as an error shows it: as JSON, cut off if it is long.
    pub(crate) fn shown(&self, kind: TypeId, index: IndexId, data: &Data) -> (String, String) {
        let known = self.objects.get(&kind);
        known.map(|known| known.shown(index, self.decode(kind, data).ok())).unwrap_or_default()
    }

    /// Returns the index on a field of an object type, and the key under which it has a value, which is given as JSON.
    ///
    /// # Errors
    /// [`FindFault`] if the type or the field does not exist, the field has no index, or it cannot have the value.
    pub fn find_key(&self, kind: &str, field: &str, value: &str) -> Result<(IndexId, Arc<[u8]>), FindFault> {
        self.object_named(kind)?.1.find_key(field, value)
    }
}

#[cfg(test)]
mod tests;
