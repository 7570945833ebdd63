//! Changes to the types of a graph that has data. No record is rewritten: old records are read with the schemas that they
//! were written with.

use super::change::TypeChange;
use super::declared::{DeclaredInverse, DeclaredTypes};
use super::evolution::Evolution;
use super::fault::{TypeKind, TypePart, TypesError, TypesFault};
use super::open::Label;
use super::{AssociationType, GraphTypes, OPEN_TYPES_MAX};
use kith_schema::nearest;
use std::collections::BTreeSet;
use std::sync::Arc;

impl GraphTypes {
    /// Creates the types of a new graph.
    ///
    /// # Errors
    /// [`TypesError`], for example if there are too many types.
    pub fn new(identity: u64, declared: &DeclaredTypes) -> Result<Self, TypesError> {
        let (types, _) = Self { identity, ..Self::default() }.evolve(declared)?;
        Ok(Self { revision: 1, ..types })
    }

    /// Returns the types after a text is applied to these, and what changes. If nothing changes, the revision stays the
    /// same.
    ///
    /// New types are allowed, and so are changes of caps and of `adjacency`. Fields may change if the new schema is
    /// [compatible](kith_schema::compatible) with every earlier schema of the type. Types cannot be removed, so their
    /// numbers are never used again. Open types that the text does not declare stay as they are. The inverse of a type cannot
    /// change, nor whether it is open. New types and new fields may have indexes, and indexes may be removed.
    ///
    /// # Errors
    /// [`TypesError`]: the first thing that is not allowed.
    pub fn evolve(&self, declared: &DeclaredTypes) -> Result<(GraphTypes, Vec<TypeChange>), TypesError> {
        let evolved = Evolution::apply(self.clone(), declared)?;
        self.check_none_missing(declared)?;
        Ok(evolved)
    }

    fn check_none_missing(&self, declared: &DeclaredTypes) -> Result<(), TypesError> {
        let objects: BTreeSet<&str> = declared.objects.iter().map(|it| it.name.as_str()).collect();
        let associations: BTreeSet<&str> = declared
            .associations
            .iter()
            .flat_map(|it| [Some(it.name.as_str()), it.inverse.name()])
            .flatten()
            .collect();
        let missing = |kind, name: &str, known: &BTreeSet<&str>| {
            let near = nearest(name, known.iter().copied());
            Err(TypePart::new(kind, name).is(TypesFault::Missing { near }))
        };
        if let Some(kind) =
            self.objects.values().find(|kind| !kind.open && !objects.contains(kind.name.as_str()))
        {
            return missing(TypeKind::Object, &kind.name, &objects);
        }
        let lacks = |kind: &&AssociationType| !kind.open && !associations.contains(kind.name.as_str());
        match self.associations.values().find(lacks) {
            Some(kind) => missing(TypeKind::Association, &kind.name, &associations),
            None => Ok(()),
        }
    }

    /// Returns the types of an open graph after writes have named these labels, and what changes. Each label that is not a type
    /// yet becomes an open type. An association type gets an inverse, named `~` and the label. If all labels are types, nothing
    /// changes.
    ///
    /// # Errors
    /// [`TypesError`] if the graph is not open, a label is not allowed as a name, or the graph would have more than
    /// [`OPEN_TYPES_MAX`] types.
    pub fn with_labels(&self, labels: &[Label]) -> Result<(GraphTypes, Vec<TypeChange>), TypesError> {
        let declared = DeclaredTypes::of_labels(self, labels)?;
        let (types, changes) = Evolution::apply(self.clone(), &declared)?;
        if !changes.is_empty() && OPEN_TYPES_MAX < types.count() {
            return Err(TypesError::whole(TypesFault::OpenTooMany { got: self.count() }));
        }
        Ok((types, changes))
    }

    /// Returns the types that the first write with a label finds. These are the types themselves, unless the write adds a type.
    /// This is for checks before anything is written.
    pub fn on_first_use(self: &Arc<Self>, kind: TypeKind, name: &str) -> Arc<Self> {
        let label = Label { kind, name: name.to_owned() };
        match self.with_labels(&[label]) {
            Ok((types, changes)) if !changes.is_empty() => Arc::new(types),
            _ => Arc::clone(self),
        }
    }

    fn count(&self) -> usize {
        self.objects.len() + self.associations.len()
    }
}

impl DeclaredInverse {
    fn name(&self) -> Option<&str> {
        match self {
            DeclaredInverse::Named { name, .. } => Some(name),
            DeclaredInverse::None | DeclaredInverse::Symmetric => None,
        }
    }
}
