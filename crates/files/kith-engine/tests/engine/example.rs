//! Small components, built in a slow and obvious way, with the expected answers.

use kith_engine::{
    ChunkSetWriter, ComponentReader, Content, Counts, GraphContent, GraphReader, KeyType, Manifest,
    MemberTableWriter, PostingsKeys, PostingsWriter, encode_list, lists_of, seal_version,
};
use kith_schema::{Column, ColumnKind, ColumnRange, EdgeSelector, KindRole, NeighbourSource, SourceError};
use kith_types::{Direction, PartitionCount, PartitionId, StoreVersion, partition_of_id, position_of_key};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// The neighbours of a key, with the value of the only column.
type List = BTreeMap<u64, u64>;

/// A component as plain maps.
#[derive(Clone, Debug)]
pub struct Example {
    pub name: &'static str,
    pub role: KindRole,
    pub partition_count: u32,
    pub members: BTreeSet<u64>,
    /// The values of the column `time`, by (src, dst).
    pub edges: BTreeMap<(u64, u64), u64>,
}

impl Example {
    /// Creates members with gaps between their ids, some of them without an edge.
    pub fn new(name: &'static str, role: KindRole, partition_count: u32, members: u64, edges: u64) -> Self {
        let id = |index: u64| 1_000 + index * index % 7_919 + index * 3;
        let random = |seed: u64| kith_types::fmix64(seed + 77);
        let far = |index: u64| if role == KindRole::Entity { 5_000_000 + index % 17 } else { id(index) };
        let edges = (0..edges)
            .map(|edge| (id(random(2 * edge) % members), far(random(2 * edge + 1) % members), edge % 50))
            .filter(|(src, dst, _)| src != dst)
            .map(|(src, dst, time)| match role {
                KindRole::Undirected => ((src.min(dst), src.max(dst)), time),
                _ => ((src, dst), time),
            })
            .collect();
        let edges = if role == KindRole::MembersOnly { BTreeMap::new() } else { edges };
        Self { name, role, partition_count, members: (0..members + 5).map(id).collect(), edges }
    }

    pub fn count(&self) -> PartitionCount {
        PartitionCount::new(self.partition_count).unwrap()
    }

    pub fn partitions(&self) -> Vec<PartitionId> {
        self.count().iter().collect()
    }

    /// The lists of one direction, by key.
    pub fn lists(&self, list: Direction) -> BTreeMap<u64, List> {
        let mut lists: BTreeMap<u64, List> = BTreeMap::new();
        // Two opposite directed edges are one neighbour in direction `Both`. A lower bound of a filter keeps it if the
        // later edge passes.
        let mut add = |key, neighbour, time: u64| {
            let kept: &mut u64 = lists.entry(key).or_default().entry(neighbour).or_default();
            *kept = time.max(*kept);
        };
        for (&(src, dst), &time) in &self.edges {
            if list != Direction::In {
                add(src, dst, time);
            }
            if list != Direction::Out {
                add(dst, src, time);
            }
        }
        lists
    }

    /// The answer that a source must give for a key; `members` are those of the whole graph.
    pub fn answer(
        &self,
        direction: Direction,
        key: u64,
        low: u64,
        members: &BTreeSet<u64>,
    ) -> Option<Vec<u64>> {
        let direction = if self.role == KindRole::Undirected { Direction::Both } else { direction };
        let list = self.lists(direction).remove(&key);
        let is_entity = self.role == KindRole::Entity && direction == Direction::In;
        match list {
            Some(list) => Some(list.into_iter().filter(|&(_, time)| time >= low).map(|(id, _)| id).collect()),
            None => (!is_entity && members.contains(&key)).then(Vec::new),
        }
    }

    /// Writes the component into an empty folder.
    pub fn write(&self, dir: &Path) -> Manifest {
        let mut files = Vec::new();
        for partition in self.count().iter() {
            let here = |id: &u64| partition_of_id(*id, self.count()) == partition;
            let members: Vec<u64> = self.members.iter().copied().filter(here).collect();
            let mut table = MemberTableWriter::create(dir, partition).unwrap();
            members.iter().for_each(|&id| table.append(id).unwrap());
            files.push(table.finish().unwrap());
            for &list in lists_of(self.role) {
                let lists: BTreeMap<u64, List> =
                    self.lists(list).into_iter().filter(|(key, _)| here(key)).collect();
                files.extend(write_lists(dir, partition, list, &lists));
                let own = self.role == KindRole::Entity && list == Direction::In;
                let table: Vec<u64> = if own { lists.keys().copied().collect() } else { members.clone() };
                let keys = match own {
                    true => PostingsKeys::Own(table.clone()),
                    false => PostingsKeys::Members(table.len() as u32),
                };
                let mut writer = PostingsWriter::create(dir, partition, list, keys).unwrap();
                for (neighbour, key) in pairs(&lists) {
                    writer.append(neighbour, table.binary_search(&key).unwrap() as u32).unwrap();
                }
                files.push(writer.finish().unwrap());
            }
        }
        let counts =
            Counts { members: self.members.len() as u64, edges: self.edges.len() as u64, entities: 0 };
        let columns = vec![Column { name: "time".to_owned(), kind: ColumnKind::Time }];
        let content =
            Content::Graph(GraphContent { graph: "people".to_owned(), role: self.role, columns, counts });
        let manifest = Manifest::new(self.name.to_owned(), StoreVersion(7), self.count(), content, files);
        seal_version(dir, &manifest).unwrap();
        manifest
    }

    pub fn open(&self, dir: &Path) -> Result<GraphReader, kith_engine::OpenError> {
        GraphReader::new(self.count(), vec![Arc::new(ComponentReader::open(dir, &self.partitions())?)])
    }

    pub fn selector(&self, direction: Direction, low: u64) -> EdgeSelector {
        let filter = (low > 0).then(|| ColumnRange { column: "time".to_owned(), low, high: u64::MAX });
        EdgeSelector { kind: self.name.to_owned(), direction, filter }
    }
}

fn write_lists(
    dir: &Path,
    partition: PartitionId,
    list: Direction,
    lists: &BTreeMap<u64, List>,
) -> Vec<kith_engine::FileEntry> {
    let mut keys: Vec<[u8; 8]> = lists.keys().map(|key| key.to_le_bytes()).collect();
    keys.sort_by_key(|key| (position_of_key(key), *key));
    let mut writer = ChunkSetWriter::create(dir, partition, Some(list), KeyType::Id).unwrap();
    for key in keys {
        let list = &lists[&u64::from_le_bytes(key)];
        let (ids, times): (Vec<u64>, Vec<u64>) = list.iter().map(|(&id, &time)| (id, time)).unzip();
        let mut value = Vec::new();
        encode_list(&ids, &[&times], &mut value);
        writer.append(&key, &value).unwrap();
    }
    writer.finish().unwrap().files
}

/// The sorted pairs of (neighbour, key).
fn pairs(lists: &BTreeMap<u64, List>) -> BTreeSet<(u64, u64)> {
    lists.iter().flat_map(|(&key, list)| list.keys().map(move |&neighbour| (neighbour, key))).collect()
}

/// Reads the answers of a source to a batch of keys.
pub fn read_lists(
    source: &GraphReader,
    edge: &EdgeSelector,
    keys: &[u64],
) -> Result<Vec<Option<Vec<u64>>>, SourceError> {
    let mut answers = Vec::new();
    source.lists(edge, keys, &mut |index, list| {
        assert_eq!(index, answers.len(), "keys are answered once each, in order");
        answers.push(list.map(<[u64]>::to_vec));
        ControlFlow::Continue(())
    })?;
    assert_eq!(answers.len(), keys.len());
    Ok(answers)
}
