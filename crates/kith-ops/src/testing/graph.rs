//! A graph in memory as a [`NeighbourSource`] that holds every partition.

use crate::{EdgeSelector, GraphSchema, KindRole, KindSchema, NeighbourSource, SourceError};
use kith_types::{Direction, PartitionCount, PartitionId, partition_of_id};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Edges of named kinds, by either end.
#[derive(Clone, Debug)]
pub struct MemoryGraph {
    partition_count: PartitionCount,
    schema: GraphSchema,
    kinds: BTreeMap<String, Lists>,
    members: BTreeSet<u64>,
}

#[derive(Clone, Debug, Default)]
struct Lists {
    entity: bool,
    out: BTreeMap<u64, Vec<u64>>,
    into: BTreeMap<u64, Vec<u64>>,
    both: BTreeMap<u64, Vec<u64>>,
}

impl Lists {
    fn get(&self, direction: Direction, id: u64) -> Option<&Vec<u64>> {
        match direction {
            Direction::Out => self.out.get(&id),
            Direction::In => self.into.get(&id),
            Direction::Both => self.both.get(&id),
        }
    }
}

impl MemoryGraph {
    /// A graph without kinds.
    pub fn new(partition_count: PartitionCount) -> Self {
        let schema = GraphSchema::default();
        Self { partition_count, schema, kinds: BTreeMap::new(), members: BTreeSet::new() }
    }

    /// Adds members that may have no edge.
    pub fn add_members(&mut self, ids: impl IntoIterator<Item = u64>) {
        self.members.extend(ids);
    }

    /// Adds an edge type or entity kind with its edges, in any order; self loops and repeats are dropped.
    ///
    /// # Panics
    /// If the graph has a kind of this name.
    pub fn add_kind(&mut self, name: &str, role: KindRole, edges: &[(u64, u64)]) {
        let mut lists = Lists { entity: role == KindRole::Entity, ..Lists::default() };
        for &(from, to) in edges.iter().filter(|(from, to)| role == KindRole::Entity || from != to) {
            lists.out.entry(from).or_default().push(to);
            lists.into.entry(to).or_default().push(from);
            self.members.insert(from);
            if role != KindRole::Entity {
                self.members.insert(to);
                lists.both.entry(from).or_default().push(to);
                lists.both.entry(to).or_default().push(from);
            }
        }
        for list in
            [&mut lists.out, &mut lists.into, &mut lists.both].into_iter().flat_map(BTreeMap::values_mut)
        {
            list.sort_unstable();
            list.dedup();
        }
        let kind = KindSchema { name: name.to_owned(), role, columns: Vec::new() };
        self.schema.kinds.push(kind);
        assert!(self.kinds.insert(name.to_owned(), lists).is_none(), "a second kind {name}");
    }

    /// The kinds added.
    pub fn schema(&self) -> &GraphSchema {
        &self.schema
    }

    /// How many partitions its ids fall into.
    pub fn partition_count(&self) -> PartitionCount {
        self.partition_count
    }

    fn kind(&self, edge: &EdgeSelector) -> Result<&Lists, SourceError> {
        let kind = || edge.kind.clone();
        if let Some(filter) = &edge.filter {
            return Err(SourceError::UnknownColumn { kind: kind(), column: filter.column.clone() });
        }
        self.kinds.get(&edge.kind).ok_or_else(|| SourceError::UnknownKind { kind: kind() })
    }
}

impl NeighbourSource for MemoryGraph {
    fn partition_count(&self) -> PartitionCount {
        self.partition_count
    }

    fn lists(
        &self,
        edge: &EdgeSelector,
        keys: &[u64],
        each: &mut dyn FnMut(usize, Option<&[u64]>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let kind = self.kind(edge)?;
        let of_entities = kind.entity && edge.direction == Direction::In;
        for (index, &key) in keys.iter().enumerate() {
            let list = match kind.get(edge.direction, key) {
                Some(list) => Some(list.as_slice()),
                None => (!of_entities && self.members.contains(&key)).then_some(&[][..]),
            };
            if each(index, list).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The list of `id` the other way round holds exactly the members looked for.
    fn postings(
        &self,
        edge: &EdgeSelector,
        partition: PartitionId,
        id: u64,
        out: &mut Vec<u64>,
    ) -> Result<(), SourceError> {
        let list = self.kind(edge)?.get(edge.direction.reverse(), id);
        let here = |&&other: &&u64| partition_of_id(other, self.partition_count) == partition;
        out.extend(list.into_iter().flatten().filter(here));
        Ok(())
    }

    fn members(&self, partition: PartitionId, out: &mut Vec<u64>) -> Result<(), SourceError> {
        let here = |id: &&u64| partition_of_id(**id, self.partition_count) == partition;
        out.extend(self.members.iter().filter(here));
        Ok(())
    }
}
