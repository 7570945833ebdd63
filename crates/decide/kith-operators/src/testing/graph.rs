//! A graph in memory: a [`NeighbourSource`] that holds every partition.

use kith_schema::{
    Column, EdgeList, EdgeSelector, GraphSchema, KindRole, KindSchema, NeighbourSource, SourceError,
};
use kith_types::{Direction, PartitionCount, PartitionId, StoreVersion, partition_of_id};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Edges of named kinds, indexed by either end.
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
    /// The names of the columns, and their stored values for each edge.
    columns: Vec<String>,
    values: BTreeMap<(u64, u64), Vec<u64>>,
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

impl Lists {
    fn column(&self, edge: &EdgeSelector, name: &str) -> Result<usize, SourceError> {
        let unknown = || SourceError::UnknownColumn { kind: edge.kind.clone(), column: name.to_owned() };
        self.columns.iter().position(|column| column == name).ok_or_else(unknown)
    }

    /// The value of a column for the edge between a key and an id of its list.
    fn value(&self, direction: Direction, key: u64, id: u64, column: usize) -> u64 {
        let ends = match direction {
            Direction::Out => [(key, id), (key, id)],
            Direction::In => [(id, key), (id, key)],
            Direction::Both => [(key, id), (id, key)],
        };
        ends.iter().find_map(|ends| self.values.get(ends)).map_or(0, |values| values[column])
    }
}

impl MemoryGraph {
    /// Creates a graph without edge types and entity kinds.
    pub fn new(partition_count: PartitionCount) -> Self {
        let schema = GraphSchema::default();
        Self { partition_count, schema, kinds: BTreeMap::new(), members: BTreeSet::new() }
    }

    /// Adds members, which may have no edge.
    pub fn add_members(&mut self, ids: impl IntoIterator<Item = u64>) {
        self.members.extend(ids);
    }

    /// Adds an edge type or entity kind with its edges, in any order. Self loops and duplicates are dropped.
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
        let (name_of, version, columns) = (name.to_owned(), StoreVersion(1), Vec::new());
        let kind = KindSchema { name: name_of, role, version, columns, one_sided: false };
        self.schema.kinds.push(kind);
        assert!(self.kinds.insert(name.to_owned(), lists).is_none(), "a second kind {name}");
    }

    /// Adds a column to the kind that was added last. `stored` returns the value of each edge, given from and to as they
    /// were added.
    ///
    /// # Panics
    /// If the graph has no kind.
    pub fn add_column(&mut self, column: Column, stored: impl Fn(u64, u64) -> u64) {
        let kind = self.schema.kinds.last_mut().expect("a kind was added");
        let lists = self.kinds.get_mut(&kind.name).expect("every kind has lists");
        for (&from, to) in &lists.out {
            for &to in to {
                lists.values.entry((from, to)).or_default().push(stored(from, to));
            }
        }
        lists.columns.push(column.name.clone());
        kind.columns.push(column);
    }

    /// The schema of the added kinds.
    pub fn schema(&self) -> &GraphSchema {
        &self.schema
    }

    /// The number of partitions of the graph.
    pub fn partition_count(&self) -> PartitionCount {
        self.partition_count
    }

    fn kind(&self, edge: &EdgeSelector) -> Result<&Lists, SourceError> {
        let kind = || edge.kind.clone();
        let lists = self.kinds.get(&edge.kind).ok_or_else(|| SourceError::UnknownKind { kind: kind() })?;
        if let Some(filter) = &edge.filter {
            lists.column(edge, &filter.column)?;
        }
        Ok(lists)
    }

    /// The list of a key without the ids that the filter drops; `None` if the key is not in the graph.
    fn list(&self, lists: &Lists, edge: &EdgeSelector, key: u64) -> Result<Option<Vec<u64>>, SourceError> {
        let of_entities = lists.entity && edge.direction == Direction::In;
        let Some(list) = lists.get(edge.direction, key) else {
            return Ok((!of_entities && self.members.contains(&key)).then(Vec::new));
        };
        let mut list = list.clone();
        if let Some(filter) = &edge.filter {
            let column = lists.column(edge, &filter.column)?;
            list.retain(|&id| {
                (filter.low..=filter.high).contains(&lists.value(edge.direction, key, id, column))
            });
        }
        Ok(Some(list))
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
        for (index, &key) in keys.iter().enumerate() {
            if each(index, self.list(kind, edge, key)?.as_deref()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn edges(
        &self,
        edge: &EdgeSelector,
        columns: &[&str],
        keys: &[u64],
        each: &mut dyn FnMut(usize, Option<EdgeList<'_>>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let kind = self.kind(edge)?;
        let numbers = columns.iter().map(|name| kind.column(edge, name)).collect::<Result<Vec<_>, _>>()?;
        for (index, &key) in keys.iter().enumerate() {
            let ids = self.list(kind, edge, key)?;
            let values = |column: &usize| {
                ids.iter().flatten().map(|&id| kind.value(edge.direction, key, id, *column)).collect()
            };
            let columns: Vec<Vec<u64>> = numbers.iter().map(values).collect();
            let list = ids.as_deref().map(|ids| EdgeList { ids, columns: &columns });
            if each(index, list).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The list of `id` in the opposite direction holds exactly the wanted members.
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
