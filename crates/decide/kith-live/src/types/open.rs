//! Open graphs, in which a write that names a type that does not exist adds the type; and the names of open types.

use super::declared::{DeclaredAssociation, DeclaredInverse, DeclaredObject, DeclaredTypes, inverse_label};
use super::fault::{TypeKind, TypePart, TypesError, TypesFault};
use super::{AssociationType, GraphTypes};
use crate::Mutation;
use kith_types::{check_component_name, check_label};

/// The name of a type that a write uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    /// The kind of the type.
    pub kind: TypeKind,
    /// The name of the type.
    pub name: String,
}

/// The types that a write names and the graph does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingTypes {
    /// The types of what the write adds. They are added to an open graph.
    pub labels: Vec<Label>,
    /// Whether the write names a further type, of an association that it deletes or changes. Such a type must exist.
    pub others: bool,
}

impl MissingTypes {
    /// Returns the types that a write names and a graph with these types does not have.
    pub(super) fn of(types: &GraphTypes, mutation: &Mutation) -> Self {
        let lacks = |name: &str| types.association(name).is_none();
        let label = |kind, name: &String| Label { kind, name: name.clone() };
        let mut missing = Self::default();
        match mutation {
            Mutation::AddObject { kind, .. } if types.object(kind).is_none() => {
                missing.labels.push(label(TypeKind::Object, kind));
            }
            Mutation::AddAssociation { kind, .. } if lacks(kind) => {
                missing.labels.push(label(TypeKind::Association, kind));
            }
            Mutation::DeleteAssociation { kind, .. } => missing.others = lacks(kind),
            Mutation::ChangeType { kind, new_kind, .. } => {
                missing.others = lacks(kind);
                if lacks(new_kind) {
                    missing.labels.push(label(TypeKind::Association, new_kind));
                }
            }
            _ => {}
        }
        missing
    }

    /// Whether the graph has all types that the write names.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && !self.others
    }
}

impl DeclaredTypes {
    /// Returns the declaration of the types that these labels add to a graph.
    ///
    /// # Errors
    /// [`TypesError`] if the graph is not open, or a label is not allowed as a name.
    pub(super) fn of_labels(types: &GraphTypes, labels: &[Label]) -> Result<Self, TypesError> {
        let mut declared = Self { open: types.open, ..Self::default() };
        for Label { kind, name } in labels {
            let is_known = match kind {
                TypeKind::Object => types.object(name).is_some(),
                TypeKind::Association => types.association(name).is_some(),
            };
            if is_known {
                continue;
            }
            let fault = if types.open { name_fault(name, true, None) } else { Some(TypesFault::NotOpen) };
            if let Some(fault) = fault {
                return Err(TypePart::shortened(*kind, name).is(fault));
            }
            match kind {
                TypeKind::Object => declared.objects.push(DeclaredObject::open(name)),
                TypeKind::Association => declared.associations.push(DeclaredAssociation::open(name)),
            }
        }
        Ok(declared)
    }
}

impl DeclaredObject {
    /// An open type.
    pub(super) fn open(name: &str) -> Self {
        Self { name: name.to_owned(), fields: None, indexes: Default::default(), open: true, text_ids: false }
    }
}

impl DeclaredAssociation {
    /// An open type with the inverse that it has unless it declares another.
    pub(super) fn open(name: &str) -> Self {
        let (cap, adjacency) = (AssociationType::CAP_DEFAULT, true);
        let inverse = DeclaredInverse::Named { name: inverse_label(name), cap, adjacency };
        Self { name: name.to_owned(), fields: None, cap, adjacency, inverse, open: true }
    }
}

/// Returns what is wrong with the name of a type. `forward` is the name of the forward type if the type is an inverse; both are
/// open or both are not.
pub(super) fn name_fault(name: &str, open: bool, forward: Option<&str>) -> Option<TypesFault> {
    if check_component_name(name).is_ok() {
        return None;
    }
    match (open, forward, name.strip_prefix('~')) {
        (false, ..) => Some(TypesFault::Name),
        (true, Some(forward), Some(label)) => (label != forward).then_some(TypesFault::InverseLabel),
        (true, ..) => check_label(name).is_err().then_some(TypesFault::Label),
    }
}
