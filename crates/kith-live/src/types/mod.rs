//! The types of a live graph: what objects and associations there are, and what fields they have.

mod declared;
mod document;
mod evolve;
mod fault;
mod fields;
mod parse;

pub use declared::{DeclaredAssociation, DeclaredInverse, DeclaredObject, DeclaredTypes};
pub use document::{AssociationDocument, ObjectDocument, TypesDocument};
pub use evolve::TypeChange;
pub use fault::{Subject, TypeKind, TypesError, TypesFault};
pub use fields::{FieldsFault, UnknownType};

use kith_schema::Schema;
use std::collections::BTreeMap;
use std::fmt;

/// The most types of a graph: their numbers have 16 bits, and 0 is not used.
pub const TYPES_MAX: usize = 65_535;
/// The greatest [`AssociationType::cap`]: a bound on what one read returns.
pub const CAP_MAX: u32 = 100_000;
/// The longest text or document of types: metadata stores refuse values of more than 1.5 MiB.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// The number of an object type or association type. It is unique over both in its graph, and is never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub u16);

impl fmt::Display for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The types of one live graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphTypes {
    /// Made up when the graph is created; tickets carry it, and so does the database.
    pub identity: u64,
    /// How often the types have changed: 1 for a new graph.
    pub revision: u64,
    /// Object types by number.
    pub objects: BTreeMap<TypeId, ObjectType>,
    /// Association types by number.
    pub associations: BTreeMap<TypeId, AssociationType>,
}

/// A type of objects.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectType {
    /// Its name.
    pub name: String,
    /// The schemas of its fields, oldest first; none as long as the type has no fields. Records are written under the last one,
    /// and those of older ones are read as if they had been. Rows without a record, from before the type had fields, are read
    /// as records in which every field is null or has its default.
    pub schemas: Vec<Schema>,
}

/// A type of associations.
#[derive(Clone, Debug, PartialEq)]
pub struct AssociationType {
    /// Its name.
    pub name: String,
    /// As [`ObjectType::schemas`].
    pub schemas: Vec<Schema>,
    /// What the other direction of each association is.
    pub inverse: Inverse,
    /// The most associations that one read returns (TAO §3.4).
    pub cap: u32,
    /// Whether graph queries follow its associations.
    pub adjacency: bool,
}

/// The other direction of a type's associations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inverse {
    /// There is none.
    None,
    /// An association of the same type.
    Symmetric,
    /// An association of another type, whose inverse is this one. The type that was declared with `inverse` is the forward one.
    Named {
        /// The other type.
        kind: TypeId,
        /// Whether this is the type that was declared with `inverse`.
        forward: bool,
    },
}

impl AssociationType {
    /// The cap of a type that names none.
    pub const CAP_DEFAULT: u32 = 6_000;

    /// The type of the other direction of an association of this type, which is `own`.
    pub fn inverse_of(&self, own: TypeId) -> Option<TypeId> {
        match self.inverse {
            Inverse::None => None,
            Inverse::Symmetric => Some(own),
            Inverse::Named { kind, .. } => Some(kind),
        }
    }

    /// Whether an association of this type from `id1` to `id2` is the forward direction of its edge. In a symmetric type that
    /// is the direction from the smaller id.
    pub fn is_forward(&self, id1: u64, id2: u64) -> bool {
        match self.inverse {
            Inverse::None => true,
            Inverse::Symmetric => id1 <= id2,
            Inverse::Named { forward, .. } => forward,
        }
    }

    /// Whether a write changes both directions.
    pub fn is_two_sided(&self) -> bool {
        self.inverse != Inverse::None
    }
}

impl GraphTypes {
    /// The object type of this name.
    pub fn object(&self, name: &str) -> Option<(TypeId, &ObjectType)> {
        self.objects.iter().find(|(_, kind)| kind.name == name).map(|(id, kind)| (*id, kind))
    }

    /// The association type of this name.
    pub fn association(&self, name: &str) -> Option<(TypeId, &AssociationType)> {
        self.associations.iter().find(|(_, kind)| kind.name == name).map(|(id, kind)| (*id, kind))
    }
}

#[cfg(test)]
mod tests;
