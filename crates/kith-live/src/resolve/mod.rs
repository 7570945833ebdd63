//! What a write means before any row is looked at: who orders it, and which rows it needs.

mod ids;
mod named;
#[cfg(test)]
mod tests;

pub use ids::new_object_id;

use crate::{
    AssociationKey, Conditions, Data, FieldsFault, GraphTypes, ListKey, Mutation, Pair, RowQuery, TypeId,
    UnknownType, Write, WriteId,
};
use kith_types::{PartitionCount, PartitionId, partition_of_id};
use thiserror::Error;

/// A write that makes no sense whatever is stored. Nothing was written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteFault {
    /// The graph does not have the type.
    #[error(transparent)]
    Type(#[from] UnknownType),
    /// The fields cannot be stored.
    #[error(transparent)]
    Fields(#[from] FieldsFault),
    /// An object without an id, and no write id to derive one from.
    #[error("an object without an id needs a write_id, from which its id is derived")]
    NoWriteId,
    /// An object with an id has a partition already.
    #[error("an object is given \"id\" or \"near\", not both")]
    IdAndNear,
    /// A change to the type that the association has.
    #[error("the new type is the old one")]
    SameType,
    /// A change between types of which only one has an inverse.
    #[error("{kind:?} and {new_kind:?} cannot be exchanged: only one of them has an inverse")]
    SidesDiffer {
        /// The type.
        kind: String,
        /// The type that it was to become.
        new_kind: String,
    },
}

/// The rows of one association: one row, or two if its type is two-sided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeKeys {
    /// The row that the caller named.
    pub named: AssociationKey,
    /// The row in the forward direction. In a symmetric type it is the one that leaves the smaller id.
    pub forward: AssociationKey,
    /// The row in the other direction; `None` for a one-sided type. It equals `forward` for an object's symmetric association
    /// with itself.
    pub inverse: Option<AssociationKey>,
}

impl EdgeKeys {
    /// The rows of an association of the type named `kind`.
    ///
    /// # Errors
    /// [`UnknownType`].
    pub fn of(types: &GraphTypes, id1: u64, kind: &str, id2: u64) -> Result<Self, UnknownType> {
        let (own, kind) = types.association_named(kind)?;
        let named = ListKey { id1, kind: own }.to(id2);
        let Some(other) = kind.inverse_of(own) else {
            return Ok(Self { named, forward: named, inverse: None });
        };
        let mirror = ListKey { id1: id2, kind: other }.to(id1);
        let (forward, inverse) = if kind.is_forward(id1, id2) { (named, mirror) } else { (mirror, named) };
        Ok(Self { named, forward, inverse: Some(inverse) })
    }

    /// Its rows, each once.
    pub fn rows(&self) -> impl Iterator<Item = AssociationKey> {
        [Some(self.forward), self.inverse.filter(|inverse| *inverse != self.forward)].into_iter().flatten()
    }

    /// Its rows in one partition, each once.
    pub fn rows_in(&self, here: PartitionId, count: PartitionCount) -> impl Iterator<Item = AssociationKey> {
        self.rows().filter(move |key| partition_of_id(key.list.id1, count) == here)
    }
}

/// What a write does, with numbers for types and records for fields.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are named for what they hold, and Mutation explains the variants")]
pub enum Step {
    AddObject { id: u64, kind: TypeId, data: Data },
    UpdateObject { id: u64, fields: String },
    DeleteObject { id: u64 },
    AddAssociation { edge: EdgeKeys, time: Option<u64>, data: Data },
    DeleteAssociation { edge: EdgeKeys },
    ChangeType { old: EdgeKeys, new: EdgeKeys },
}

/// A write id, and a checksum of the write that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteName {
    /// The id.
    pub id: WriteId,
    /// The checksum: [`Write::checksum`].
    pub checksum: u64,
}

/// A write that is ready to be decided by the leader of its ordering partition.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedWrite {
    /// The partition whose leader orders it.
    pub partition: PartitionId,
    /// What it does.
    pub step: Step,
    /// When to do it.
    pub conditions: Conditions,
    /// Its name.
    pub name: Option<WriteName>,
    /// The pair that it changes, if the two ends lie in two partitions.
    pub split: Option<Pair>,
}

/// The partition whose leader orders a write. Routers send the write there.
///
/// # Errors
/// [`WriteFault`].
pub fn ordering_partition(
    write: &Write,
    types: &GraphTypes,
    count: PartitionCount,
) -> Result<PartitionId, WriteFault> {
    let of_edge = |edge: EdgeKeys| partition_of_id(ordering_id(&edge), count);
    Ok(match &write.mutation {
        Mutation::AddObject { id, near, .. } => {
            partition_of_id(object_id(*id, *near, write.write_id.as_ref(), count)?, count)
        }
        Mutation::UpdateObject { id, .. } | Mutation::DeleteObject { id } => partition_of_id(*id, count),
        Mutation::AddAssociation { id1, kind, id2, .. }
        | Mutation::DeleteAssociation { id1, kind, id2 }
        | Mutation::ChangeType { id1, kind, id2, .. } => of_edge(EdgeKeys::of(types, *id1, kind, *id2)?),
    })
}

/// The object whose partition orders writes to an association.
fn ordering_id(edge: &EdgeKeys) -> u64 {
    let AssociationKey { list, id2 } = edge.named;
    if edge.inverse.is_some() { list.id1.min(id2) } else { list.id1 }
}

/// The id that a new object gets.
fn object_id(
    id: Option<u64>,
    near: Option<u64>,
    write_id: Option<&WriteId>,
    count: PartitionCount,
) -> Result<u64, WriteFault> {
    match (id, near) {
        (Some(_), Some(_)) => Err(WriteFault::IdAndNear),
        (Some(id), None) => Ok(id),
        (None, near) => {
            let near = near.map(|near| partition_of_id(near, count));
            Ok(new_object_id(write_id.ok_or(WriteFault::NoWriteId)?, near, count))
        }
    }
}

impl ResolvedWrite {
    /// Finds out what a write means, and encodes its fields.
    ///
    /// # Errors
    /// [`WriteFault`].
    pub fn new(write: &Write, types: &GraphTypes, count: PartitionCount) -> Result<Self, WriteFault> {
        let step = step(write, types, count)?;
        let (partition, split) = match &step {
            Step::AddObject { id, .. } | Step::UpdateObject { id, .. } | Step::DeleteObject { id } => {
                (partition_of_id(*id, count), None)
            }
            Step::AddAssociation { edge, .. }
            | Step::DeleteAssociation { edge }
            | Step::ChangeType { old: edge, .. } => {
                (partition_of_id(ordering_id(edge), count), split_pair(edge, count))
            }
        };
        let name = write.write_id.clone().map(|id| WriteName { id, checksum: write.checksum() });
        Ok(Self { partition, step, conditions: write.conditions, name, split })
    }

    /// The rows that decide it, all in its ordering partition.
    pub fn queries(&self, count: PartitionCount) -> Vec<RowQuery> {
        let mut queries = Vec::new();
        let mut edge = |edge: &EdgeKeys| {
            for key in edge.rows_in(self.partition, count) {
                queries.extend([RowQuery::Association(key), RowQuery::Count(key.list)]);
            }
        };
        match &self.step {
            Step::AddObject { id, .. } | Step::UpdateObject { id, .. } | Step::DeleteObject { id } => {
                queries.push(RowQuery::Object(*id));
            }
            Step::AddAssociation { edge: keys, .. } | Step::DeleteAssociation { edge: keys } => edge(keys),
            Step::ChangeType { old, new } => {
                edge(old);
                edge(new);
            }
        }
        queries.extend(self.name.as_ref().map(|name| RowQuery::Outcome(name.id.clone())));
        queries
    }

    /// About how much memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let fields = match &self.step {
            Step::AddObject { data, .. } | Step::AddAssociation { data, .. } => data.bytes.len(),
            Step::UpdateObject { fields, .. } => fields.len(),
            Step::DeleteObject { .. } | Step::DeleteAssociation { .. } | Step::ChangeType { .. } => 0,
        };
        size_of::<Self>() + fields
    }
}

/// The pair of a two-sided association whose ends lie in two partitions.
fn split_pair(edge: &EdgeKeys, count: PartitionCount) -> Option<Pair> {
    edge.inverse?;
    let pair = Pair::of(edge.named.list.id1, edge.named.id2)?;
    let (ordering, other) = pair.partitions(count);
    (ordering != other).then_some(pair)
}

fn step(write: &Write, types: &GraphTypes, count: PartitionCount) -> Result<Step, WriteFault> {
    Ok(match &write.mutation {
        Mutation::AddObject { kind, data, id, near } => {
            let id = object_id(*id, *near, write.write_id.as_ref(), count)?;
            let (kind, _) = types.object_named(kind)?;
            Step::AddObject { id, kind, data: types.encode(kind, data.as_deref())? }
        }
        Mutation::UpdateObject { id, data } => Step::UpdateObject { id: *id, fields: data.clone() },
        Mutation::DeleteObject { id } => Step::DeleteObject { id: *id },
        Mutation::AddAssociation { id1, kind, id2, time, data } => {
            let edge = EdgeKeys::of(types, *id1, kind, *id2)?;
            let data = types.encode(edge.named.list.kind, data.as_deref())?;
            Step::AddAssociation { edge, time: *time, data }
        }
        Mutation::DeleteAssociation { id1, kind, id2 } => {
            Step::DeleteAssociation { edge: EdgeKeys::of(types, *id1, kind, *id2)? }
        }
        Mutation::ChangeType { id1, kind, id2, new_kind } => {
            let old = EdgeKeys::of(types, *id1, kind, *id2)?;
            let new = EdgeKeys::of(types, *id1, new_kind, *id2)?;
            if old.named == new.named {
                return Err(WriteFault::SameType);
            }
            if old.inverse.is_some() != new.inverse.is_some() {
                return Err(WriteFault::SidesDiffer { kind: kind.clone(), new_kind: new_kind.clone() });
            }
            Step::ChangeType { old, new }
        }
    })
}
