//! Open graphs, in which a write that names a type that does not exist adds the type; and the names of open types.

use super::declared::{DeclaredAssociation, DeclaredInverse, DeclaredObject, DeclaredTypes};
use super::fault::{Subject, TypeKind, TypesError, TypesFault};
use super::{AssociationType, GraphTypes, OPEN_TYPES_MAX, TypeChange};
use crate::Mutation;
use kith_types::{check_component_name, check_label};
use std::sync::Arc;

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
    /// Whether the graph has all types that the write names.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && !self.others
    }
}

impl GraphTypes {
    /// Returns the types that a write names and the graph does not have. `O(n)` in the number of types.
    pub fn missing(&self, mutation: &Mutation) -> MissingTypes {
        let lacks = |name: &str| self.association(name).is_none();
        let label = |kind, name: &String| Label { kind, name: name.clone() };
        let mut missing = MissingTypes::default();
        match mutation {
            Mutation::AddObject { kind, .. } if self.object(kind).is_none() => {
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

    /// Returns the types of an open graph after writes have named these labels, and what changes. Each label that is not a type
    /// yet becomes an open type. An association type gets an inverse, named `~` and the label. If all labels are types, nothing
    /// changes.
    ///
    /// # Errors
    /// [`TypesError`] if the graph is not open, a label is not allowed as a name, or the graph would have more than
    /// [`OPEN_TYPES_MAX`] types.
    pub fn with_labels(&self, labels: &[Label]) -> Result<(GraphTypes, Vec<TypeChange>), TypesError> {
        let mut declared = DeclaredTypes { open: self.open, ..DeclaredTypes::default() };
        for Label { kind, name } in labels {
            let is_known = match kind {
                TypeKind::Object => self.object(name).is_some(),
                TypeKind::Association => self.association(name).is_some(),
            };
            if is_known {
                continue;
            }
            let fault = if self.open { name_fault(name, true, None) } else { Some(TypesFault::NotOpen) };
            if let Some(fault) = fault {
                return Err(Subject::shortened(*kind, name).is(fault));
            }
            match kind {
                TypeKind::Object => declared.objects.push(DeclaredObject::open(name)),
                TypeKind::Association => declared.associations.push(DeclaredAssociation::open(name)),
            }
        }
        let (types, changes) = self.extended(&declared)?;
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

impl DeclaredObject {
    /// An open type.
    pub(super) fn open(name: &str) -> Self {
        Self { name: name.to_owned(), fields: None, indexes: Default::default(), open: true }
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

/// Returns the name of the inverse of an open type that declares no other inverse.
pub(super) fn inverse_label(name: &str) -> String {
    format!("~{name}")
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
