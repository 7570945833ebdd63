//! The association types that queries follow, and the lists that answer for each direction.

use kith_live::{GraphTypes, Inverse, TypeId};
use kith_schema::{EdgeSelector, SourceError};
use kith_types::Direction;
use std::collections::{BTreeMap, BTreeSet};

/// A number that no type has: its lists are empty.
const NO_TYPE: TypeId = TypeId(0);

/// The parts of a graph's types that adjacency needs.
#[derive(Debug)]
pub(super) struct EdgeTypes {
    by_name: BTreeMap<String, (TypeId, Inverse)>,
    /// The types that queries follow in at least one direction. Their associations are kept, and make members.
    joining: BTreeSet<TypeId>,
    /// All other types. Associations of unknown types are kept, because these types may have adjacency.
    skipped: BTreeSet<TypeId>,
    /// In an open graph, the names of the types without adjacency. Queries for types that do not exist find no edges there.
    unfollowed: Option<BTreeSet<String>>,
}

/// One list, or two lists whose union is the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lists {
    first: TypeId,
    second: Option<TypeId>,
}

impl Lists {
    pub(super) fn iter(self) -> impl Iterator<Item = TypeId> {
        std::iter::once(self.first).chain(self.second)
    }

    pub(super) fn are_two(self) -> bool {
        self.second.is_some()
    }
}

impl EdgeTypes {
    pub(super) fn new(types: &GraphTypes) -> Self {
        let follows = |kind: &TypeId| types.associations.get(kind).is_some_and(|kind| kind.adjacency);
        let each = types.associations.iter();
        let by_name = each.clone().filter(|(_, kind)| kind.adjacency);
        let by_name = by_name.map(|(id, kind)| (kind.name.clone(), (*id, kind.inverse))).collect();
        let unfollowed = types.open.then(|| {
            let unfollowed = types.associations.values().filter(|kind| !kind.adjacency);
            unfollowed.map(|kind| kind.name.clone()).collect()
        });
        let (joining, skipped) = each.map(|(id, kind)| (*id, kind)).partition::<Vec<_>, _>(|(id, kind)| {
            kind.adjacency || kind.inverse_of(*id).is_some_and(|inverse| follows(&inverse))
        });
        let ids = |kinds: Vec<(TypeId, _)>| kinds.into_iter().map(|(id, _)| id).collect();
        Self { by_name, joining: ids(joining), skipped: ids(skipped), unfollowed }
    }

    pub(super) fn joining(&self) -> &BTreeSet<TypeId> {
        &self.joining
    }

    pub(super) fn skipped(&self) -> &BTreeSet<TypeId> {
        &self.skipped
    }

    /// Returns the lists that answer a selector.
    pub(super) fn select(&self, edge: &EdgeSelector) -> Result<Lists, SourceError> {
        let kind = || edge.kind.clone();
        let &(own, inverse) = match self.by_name.get(&edge.kind) {
            Some(known) => known,
            None if self.unfollowed.as_ref().is_some_and(|names| !names.contains(&edge.kind)) => {
                return Ok(Lists { first: NO_TYPE, second: None });
            }
            None => return Err(SourceError::UnknownKind { kind: kind() }),
        };
        if let Some(filter) = &edge.filter {
            return Err(SourceError::UnknownColumn { kind: kind(), column: filter.column.clone() });
        }
        let (first, second) = match (inverse, edge.direction) {
            (Inverse::Symmetric, _) | (Inverse::None | Inverse::Named { .. }, Direction::Out) => (own, None),
            (Inverse::Named { kind, .. }, Direction::In) => (kind, None),
            (Inverse::Named { kind, .. }, Direction::Both) => (own, Some(kind)),
            (Inverse::None, Direction::In | Direction::Both) => {
                return Err(SourceError::OneSided { kind: kind() });
            }
        };
        Ok(Lists { first, second })
    }
}
