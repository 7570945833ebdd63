//! Resolves writes before any row is read: which partition orders a write, and which rows decide it.

mod ids;
#[cfg(test)]
mod tests;

pub use ids::{new_object_id, text_id_numbers};

use crate::{
    AssociationKey, Conditions, Data, GraphTypes, ListKey, Mutation, Pair, RowQuery, TypeId, UnknownType,
    Write, WriteFault, WriteId, WriteName,
};
use kith_types::{PartitionCount, PartitionId, partition_of_id};

/// The rows of one association: one row, or two if its type is two-sided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeKeys {
    /// The row that the caller named.
    pub named: AssociationKey,
    /// The row in the forward direction. In a symmetric type it is the one that leaves the smaller id.
    pub forward: AssociationKey,
    /// The row in the other direction; `None` for a one-sided type. If an object has a symmetric association with itself,
    /// this is the same row as `forward`.
    pub inverse: Option<AssociationKey>,
}

impl EdgeKeys {
    /// Returns the rows of an association of the type named `kind`.
    ///
    /// # Errors
    /// [`UnknownType`] if the graph has no association type with this name.
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

    /// Returns the rows of the association, without duplicates.
    pub fn rows(&self) -> impl Iterator<Item = AssociationKey> {
        [Some(self.forward), self.inverse.filter(|inverse| *inverse != self.forward)].into_iter().flatten()
    }

    /// Returns the rows of the association that lie in one partition, without duplicates.
    pub fn rows_in(&self, here: PartitionId, count: PartitionCount) -> impl Iterator<Item = AssociationKey> {
        self.rows().filter(move |key| partition_of_id(key.list.id1, count) == here)
    }
}

/// The effect of a write. Types are numbers, and the fields of a new object or association are a record. The fields of an update
/// are still JSON, because the type of the object is not known yet.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are named for what they hold, and Mutation explains the variants")]
pub enum ResolvedMutation {
    /// The object gets `other` as its id if `id` belongs to an object with another text id.
    AddObject {
        id: u64,
        other: Option<u64>,
        kind: TypeId,
        data: Data,
    },
    UpdateObject {
        id: u64,
        fields: String,
    },
    DeleteObject {
        id: u64,
    },
    AddAssociation {
        edge: EdgeKeys,
        time: Option<u64>,
        data: Data,
    },
    DeleteAssociation {
        edge: EdgeKeys,
    },
    ChangeType {
        old: EdgeKeys,
        new: EdgeKeys,
    },
}

/// A write that is ready to be decided by the leader of its ordering partition.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedWrite {
    /// The partition whose leader orders the write.
    pub partition: PartitionId,
    /// The effect of the write.
    pub step: ResolvedMutation,
    /// The conditions that must hold.
    pub conditions: Conditions,
    /// The write id and the checksum, if the write has a write id.
    pub name: Option<WriteName>,
    /// The pair that the write changes, if the ends of the pair lie in two partitions.
    pub split: Option<Pair>,
}

/// Returns the partition whose leader orders a write. Routers send the write to this leader.
///
/// # Errors
/// [`WriteFault`] if the partition cannot be determined.
pub fn ordering_partition(
    write: &Write,
    types: &GraphTypes,
    count: PartitionCount,
) -> Result<PartitionId, WriteFault> {
    let of_edge = |edge: EdgeKeys| partition_of_id(ordering_id(&edge), count);
    Ok(match &write.mutation {
        Mutation::AddObject { .. } => {
            partition_of_id(object_ids(&write.mutation, write.write_id.as_ref(), count)?.0, count)
        }
        Mutation::UpdateObject { id, .. } | Mutation::DeleteObject { id } => partition_of_id(*id, count),
        Mutation::AddAssociation { id1, kind, id2, .. }
        | Mutation::DeleteAssociation { id1, kind, id2 }
        | Mutation::ChangeType { id1, kind, id2, .. } => of_edge(EdgeKeys::of(types, *id1, kind, *id2)?),
    })
}

/// Returns the object whose partition orders writes to an association.
fn ordering_id(edge: &EdgeKeys) -> u64 {
    let AssociationKey { list, id2 } = edge.named;
    if edge.inverse.is_some() { list.id1.min(id2) } else { list.id1 }
}

/// Returns the id that a new object gets, and the one that it gets if the first belongs to another text.
fn object_ids(
    mutation: &Mutation,
    write_id: Option<&WriteId>,
    count: PartitionCount,
) -> Result<(u64, Option<u64>), WriteFault> {
    let Mutation::AddObject { id, near, text_id, .. } = mutation else { return Err(WriteFault::NoWriteId) };
    match (*id, *near, text_id) {
        (Some(_), Some(_), None) => Err(WriteFault::IdAndNear),
        (None, None, Some(text_id)) => Ok(text_id_numbers(text_id, count)),
        (_, _, Some(_)) => Err(WriteFault::TextIdAndNumber),
        (Some(id), None, None) => Ok((id, None)),
        (None, near, None) => {
            let near = near.map(|near| partition_of_id(near, count));
            Ok((new_object_id(write_id.ok_or(WriteFault::NoWriteId)?, near, count), None))
        }
    }
}

impl ResolvedWrite {
    /// Looks up the types of a write, encodes its fields, and determines its partition and its rows.
    ///
    /// # Errors
    /// [`WriteFault`] if the write is invalid, regardless of what is stored.
    pub fn new(write: &Write, types: &GraphTypes, count: PartitionCount) -> Result<Self, WriteFault> {
        let step = step(write, types, count)?;
        let (partition, split) = match &step {
            ResolvedMutation::AddObject { id, .. }
            | ResolvedMutation::UpdateObject { id, .. }
            | ResolvedMutation::DeleteObject { id } => (partition_of_id(*id, count), None),
            ResolvedMutation::AddAssociation { edge, .. }
            | ResolvedMutation::DeleteAssociation { edge }
            | ResolvedMutation::ChangeType { old: edge, .. } => {
                (partition_of_id(ordering_id(edge), count), split_pair(edge, count))
            }
        };
        let name = write.write_id.as_ref();
        let name = name.map(|id| WriteName { id: id.recorded(), checksum: write.checksum() });
        Ok(Self { partition, step, conditions: write.conditions, name, split })
    }

    /// Returns the queries for the rows that decide the write. All of these rows lie in its ordering partition.
    pub fn queries(&self, count: PartitionCount) -> Vec<RowQuery> {
        let mut queries = Vec::new();
        let mut edge = |edge: &EdgeKeys| {
            for key in edge.rows_in(self.partition, count) {
                queries.extend([RowQuery::Association(key), RowQuery::Count(key.list)]);
            }
        };
        match &self.step {
            ResolvedMutation::AddObject { id, other, .. } => {
                queries.push(RowQuery::Object(*id));
                queries.extend(other.map(RowQuery::Object));
            }
            ResolvedMutation::UpdateObject { id, .. } | ResolvedMutation::DeleteObject { id } => {
                queries.push(RowQuery::Object(*id));
            }
            ResolvedMutation::AddAssociation { edge: keys, .. }
            | ResolvedMutation::DeleteAssociation { edge: keys } => edge(keys),
            ResolvedMutation::ChangeType { old, new } => {
                edge(old);
                edge(new);
            }
        }
        queries.extend(self.name.as_ref().map(|name| RowQuery::Outcome(name.id.clone())));
        queries
    }

    /// Returns about how much memory the write takes, in bytes.
    pub fn bytes(&self) -> usize {
        let fields = match &self.step {
            ResolvedMutation::AddObject { data, .. } | ResolvedMutation::AddAssociation { data, .. } => {
                data.bytes.len()
            }
            ResolvedMutation::UpdateObject { fields, .. } => fields.len(),
            ResolvedMutation::DeleteObject { .. }
            | ResolvedMutation::DeleteAssociation { .. }
            | ResolvedMutation::ChangeType { .. } => 0,
        };
        size_of::<Self>() + fields
    }
}

/// Returns the pair of an association if the association is two-sided and its ends lie in two partitions.
fn split_pair(edge: &EdgeKeys, count: PartitionCount) -> Option<Pair> {
    edge.inverse?;
    let pair = Pair::of(edge.named.list.id1, edge.named.id2)?;
    let (ordering, other) = pair.partitions(count);
    (ordering != other).then_some(pair)
}

fn step(write: &Write, types: &GraphTypes, count: PartitionCount) -> Result<ResolvedMutation, WriteFault> {
    Ok(match &write.mutation {
        Mutation::AddObject { kind, data, text_id, .. } => {
            let (id, other) = object_ids(&write.mutation, write.write_id.as_ref(), count)?;
            let (number, known) = types.object_named(kind)?;
            if let Some(text_id) = text_id.as_ref().filter(|_| !known.takes_text_ids()) {
                let (kind, id) = (kind.clone(), text_id.to_string());
                return Err(WriteFault::NoTextIds { kind, id });
            }
            let data = types.encode_with_id(number, text_id.as_ref(), data.as_deref())?;
            ResolvedMutation::AddObject { id, other, kind: number, data }
        }
        Mutation::UpdateObject { id, data } => {
            ResolvedMutation::UpdateObject { id: *id, fields: data.clone() }
        }
        Mutation::DeleteObject { id } => ResolvedMutation::DeleteObject { id: *id },
        Mutation::AddAssociation { id1, kind, id2, time, data } => {
            let edge = EdgeKeys::of(types, *id1, kind, *id2)?;
            let data = types.encode(edge.named.list.kind, data.as_deref())?;
            ResolvedMutation::AddAssociation { edge, time: *time, data }
        }
        Mutation::DeleteAssociation { id1, kind, id2 } => {
            ResolvedMutation::DeleteAssociation { edge: EdgeKeys::of(types, *id1, kind, *id2)? }
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
            ResolvedMutation::ChangeType { old, new }
        }
    })
}
