//! A version of a graph on a node: operators read neighbour lists from it.

mod edges;
mod union;

use crate::adjacency::{self, ColumnFilter};
use crate::chunk::{FoundRecord, find_many};
use crate::component::{ComponentReader, ListReader, PartitionReader};
use crate::errors::{OpenError, ReadError};
use kith_schema::{
    EachEdges, EachLength, EachList, EdgeSelector, GraphSchema, KindRole, NeighbourSource, SourceError,
    SourceResult, sum_of_lengths,
};
use kith_types::{Direction, PartitionCount, PartitionId, partition_of_id};
use std::ops::ControlFlow;
use std::sync::Arc;
use union::unite;

/// The number of keys whose lookups are prepared together. It bounds the memory per call, and is many times a lookup group.
const KEYS_AT_A_TIME: usize = 1_024;

/// The components of one version of a graph, each with the partitions that the node holds.
#[derive(Debug)]
pub struct GraphReader {
    partition_count: PartitionCount,
    components: Vec<Arc<ComponentReader>>,
    schema: GraphSchema,
}

/// A resolved selector.
struct Selection<'a> {
    component: &'a ComponentReader,
    /// The lists whose union is the answer; none for a plain member list.
    lists: &'static [Direction],
    filter: Option<ColumnFilter>,
    /// Whether keys are members and not entities.
    by_member: bool,
}

impl GraphReader {
    /// Combines components, in the order in which they were first loaded.
    ///
    /// # Errors
    /// [`OpenError::PartitionCount`] if a component has another number of partitions.
    pub fn new(
        partition_count: PartitionCount,
        components: Vec<Arc<ComponentReader>>,
    ) -> Result<Self, OpenError> {
        for component in &components {
            let manifest = component.manifest();
            if manifest.partition_count != partition_count {
                return Err(OpenError::PartitionCount {
                    component: manifest.component.clone(),
                    expected: partition_count.get(),
                    got: manifest.partition_count.get(),
                });
            }
        }
        let kinds = components.iter().filter_map(|component| component.manifest().kind()).collect();
        Ok(Self { partition_count, components, schema: GraphSchema { kinds } })
    }

    /// The edge types, entity kinds and member list, in the order of the components.
    pub fn schema(&self) -> &GraphSchema {
        &self.schema
    }

    /// The components, in their order.
    pub fn components(&self) -> &[Arc<ComponentReader>] {
        &self.components
    }

    /// Whether any component holds a member.
    ///
    /// # Errors
    /// If its partition is not held, or a byte that the answer depends on is damaged.
    pub fn contains_member(&self, id: u64) -> Result<bool, SourceError> {
        let partition = partition_of_id(id, self.partition_count);
        for component in &self.components {
            if files_of(component, partition)?.members().contains(id).map_err(damaged)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn select(&self, edge: &EdgeSelector) -> Result<Selection<'_>, SourceError> {
        let component = self
            .components
            .iter()
            .find(|component| component.manifest().component == edge.kind)
            .ok_or_else(|| SourceError::UnknownKind { kind: edge.kind.clone() })?;
        let graph = component.graph();
        let filter = edge.filter.as_ref().map(|range| {
            let column = column_of(component, &range.column)?;
            Ok(ColumnFilter { column, low: range.low, high: range.high })
        });
        Ok(Selection {
            component,
            lists: lists_for(graph.role, edge.direction),
            filter: filter.transpose()?,
            by_member: graph.role != KindRole::Entity || edge.direction != Direction::In,
        })
    }

    /// Answers for keys without any list, from the member tables.
    fn without_list(
        &self,
        selection: &Selection<'_>,
        key: u64,
    ) -> Result<Option<&'static [u64]>, SourceError> {
        let is_member = selection.by_member && self.contains_member(key)?;
        Ok(is_member.then_some(&[]))
    }

    /// Reads lists like [`NeighbourSource::lists`], for a bounded number of keys.
    fn lists_of_some(
        &self,
        selection: &Selection<'_>,
        keys: &[u64],
        scratch: &mut Scratch,
        mut each: impl FnMut(usize, Option<&[u64]>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SourceError> {
        let mut readers = Vec::with_capacity(keys.len() * selection.lists.len());
        for key in keys {
            let partition = partition_of_id(*key, self.partition_count);
            let files = files_of(selection.component, partition)?;
            readers.extend(selection.lists.iter().map(|&list| files.kept_list(list)));
        }
        let bytes: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
        let per_key = selection.lists.len();
        let mut flow = ControlFlow::Continue(());
        find_many(
            readers.len(),
            |index| (&readers[index].records, bytes[index / per_key].as_slice()),
            |index, found| {
                if index % per_key == 0 {
                    scratch.clear();
                }
                if let Some(found) = found {
                    scratch.add(selection, &found)?;
                }
                if index % per_key == per_key - 1 {
                    let key = index / per_key;
                    flow = match scratch.list() {
                        Some(list) => each(key, Some(list)),
                        None => each(key, self.without_list(selection, keys[key])?),
                    };
                }
                Ok::<_, SourceFault>(flow)
            },
        )
        .map_err(|fault| fault.0)?;
        Ok(flow)
    }

    /// The reader of each key's list.
    fn readers_of<'a>(
        &self,
        selection: &Selection<'a>,
        list: Direction,
        keys: &[u64],
    ) -> Result<Vec<&'a ListReader>, SourceError> {
        let readers = keys.iter().map(|key| {
            let partition = partition_of_id(*key, self.partition_count);
            Ok(files_of(selection.component, partition)?.kept_list(list))
        });
        readers.collect()
    }

    /// The lengths of the lists of a bounded number of keys. Each list is checked, but not decoded.
    fn lengths_of_some(
        &self,
        selection: &Selection<'_>,
        list: Direction,
        keys: &[u64],
        mut each: impl FnMut(usize, Option<u64>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SourceError> {
        let readers = self.readers_of(selection, list, keys)?;
        let mut flow = ControlFlow::Continue(());
        find_in(
            keys,
            |index| readers[index],
            |index, found| {
                let length = match found {
                    Some(found) => {
                        let count = adjacency::count(found.value());
                        found.prove().map_err(ReadError::from)?;
                        Some(count.map_err(|_| ReadError::from(found.malformed("adjacency list")))?)
                    }
                    None => self.without_list(selection, keys[index])?.map(|_| 0),
                };
                flow = each(index, length);
                Ok(flow)
            },
        )?;
        Ok(flow)
    }

    /// Removes from `members` those whose filtered list lacks `id`. Postings hold no columns, so the lists decide.
    fn filter_postings(
        selection: &Selection<'_>,
        list: &ListReader,
        id: u64,
        members: &mut Vec<u64>,
    ) -> Result<(), SourceError> {
        let mut scratch = Scratch::default();
        let mut keep = vec![false; members.len()];
        find_in(
            members,
            |_| list,
            |index, found| {
                scratch.clear();
                if let Some(found) = found {
                    scratch.add(selection, &found)?;
                }
                keep[index] = scratch.list().is_some_and(|ids| ids.binary_search(&id).is_ok());
                Ok(ControlFlow::Continue(()))
            },
        )?;
        let mut kept = keep.into_iter();
        members.retain(|_| kept.next() == Some(true));
        Ok(())
    }
}

impl NeighbourSource for GraphReader {
    fn partition_count(&self) -> PartitionCount {
        self.partition_count
    }

    fn lists(&self, edge: &EdgeSelector, keys: &[u64], each: EachList<'_>) -> SourceResult {
        let selection = self.select(edge)?;
        let mut scratch = Scratch::default();
        for (start, some) in (0..).step_by(KEYS_AT_A_TIME).zip(keys.chunks(KEYS_AT_A_TIME)) {
            let flow = if selection.lists.is_empty() {
                let mut members = (start..).zip(some);
                members.try_fold(ControlFlow::Continue(()), |flow, (index, &key)| match flow {
                    ControlFlow::Continue(()) => Ok(each(index, self.without_list(&selection, key)?)),
                    ControlFlow::Break(()) => Ok(flow),
                })?
            } else {
                self.lists_of_some(&selection, some, &mut scratch, |index, list| each(start + index, list))?
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn lengths(&self, edge: &EdgeSelector, keys: &[u64], each: EachLength<'_>) -> SourceResult {
        let selection = self.select(edge)?;
        let &[list] = selection.lists else {
            // For a union of two lists, or for none at all, the ids must be read.
            return self.lists(edge, keys, &mut |index, ids| each(index, ids.map(|ids| ids.len() as u64)));
        };
        if selection.filter.is_some() {
            return self.lists(edge, keys, &mut |index, ids| each(index, ids.map(|ids| ids.len() as u64)));
        }
        for (start, some) in (0..).step_by(KEYS_AT_A_TIME).zip(keys.chunks(KEYS_AT_A_TIME)) {
            if self
                .lengths_of_some(&selection, list, some, |index, length| each(start + index, length))?
                .is_break()
            {
                break;
            }
        }
        Ok(())
    }

    /// A member may be in the tables of several components, so these are united unless there is only one.
    fn member_count(&self, partition: PartitionId) -> Result<u64, SourceError> {
        if let [component] = &self.components[..] {
            return Ok(files_of(component, partition)?.members().count().into());
        }
        let mut members = Vec::new();
        self.members(partition, &mut members)?;
        Ok(members.len() as u64)
    }

    fn total(&self, edge: &EdgeSelector, partition: PartitionId) -> Result<u64, SourceError> {
        let selection = self.select(edge)?;
        if let (&[list], None) = (selection.lists, selection.filter)
            && selection.by_member
        {
            return Ok(files_of(selection.component, partition)?.kept_list(list).postings.pairs());
        }
        sum_of_lengths(self, edge, partition)
    }

    fn edges(
        &self,
        edge: &EdgeSelector,
        columns: &[&str],
        keys: &[u64],
        each: EachEdges<'_>,
    ) -> SourceResult {
        self.read_edges(edge, columns, keys, each)
    }

    fn postings(
        &self,
        edge: &EdgeSelector,
        partition: PartitionId,
        id: u64,
        out: &mut Vec<u64>,
    ) -> SourceResult {
        let selection = self.select(edge)?;
        let files = files_of(selection.component, partition)?;
        let mut united = Vec::new();
        for list in selection.lists.iter().map(|&list| files.kept_list(list)) {
            let mut members = Vec::new();
            list.postings.keys_of(id, files.members(), &mut members).map_err(damaged)?;
            if selection.filter.is_some() {
                Self::filter_postings(&selection, list, id, &mut members)?;
            }
            unite(&mut united, members);
        }
        out.append(&mut united);
        Ok(())
    }

    fn members(&self, partition: PartitionId, out: &mut Vec<u64>) -> SourceResult {
        let mut united = Vec::new();
        for component in &self.components {
            unite(&mut united, files_of(component, partition)?.members().ids().map_err(damaged)?);
        }
        out.append(&mut united);
        Ok(())
    }
}

/// The list of one key, assembled from one or two parts.
#[derive(Default)]
struct Scratch {
    ids: Vec<u64>,
    part: Vec<u64>,
    any: bool,
}

impl Scratch {
    fn clear(&mut self) {
        self.ids.clear();
        self.any = false;
    }

    /// Decodes a record into the list. It is proven after use, so that a byte that changes in between is detected.
    fn add(&mut self, selection: &Selection<'_>, found: &FoundRecord<'_>) -> Result<(), ReadError> {
        let columns = selection.component.graph().columns.len();
        let target = if self.any { &mut self.part } else { &mut self.ids };
        let decoded = adjacency::decode(found.value(), columns, selection.filter, target);
        found.prove()?;
        decoded.map_err(|_| found.malformed("adjacency list"))?;
        if self.any {
            unite(&mut self.ids, std::mem::take(&mut self.part));
        }
        self.any = true;
        Ok(())
    }

    /// The list; `None` if no part was found.
    fn list(&self) -> Option<&[u64]> {
        self.any.then_some(self.ids.as_slice())
    }
}

/// The lists whose union answers a direction. An undirected type has one list for every direction. An entity kind joins
/// members and entities, so `Both` can only mean the member's own list.
fn lists_for(role: KindRole, direction: Direction) -> &'static [Direction] {
    match (role, direction) {
        (KindRole::Undirected, _) => &[Direction::Both],
        (KindRole::Directed, Direction::Both) => &[Direction::Out, Direction::In],
        (KindRole::Directed, Direction::Out) | (KindRole::Entity, Direction::Out | Direction::Both) => {
            &[Direction::Out]
        }
        (KindRole::Directed | KindRole::Entity, Direction::In) => &[Direction::In],
        (KindRole::MembersOnly, _) => &[],
    }
}

impl Selection<'_> {
    /// The index of a column.
    fn column(&self, name: &str) -> Result<usize, SourceError> {
        column_of(self.component, name)
    }
}

fn column_of(component: &ComponentReader, name: &str) -> Result<usize, SourceError> {
    let index = component.graph().columns.iter().position(|column| column.name == name);
    index.ok_or_else(|| SourceError::UnknownColumn {
        kind: component.manifest().component.clone(),
        column: name.to_owned(),
    })
}

fn files_of(component: &ComponentReader, partition: PartitionId) -> Result<&PartitionReader, SourceError> {
    component.partition(partition).ok_or(SourceError::NotOwner { partition })
}

/// Looks up each of `keys` in the records of its reader.
fn find_in<'a>(
    keys: &[u64],
    reader: impl Fn(usize) -> &'a ListReader,
    each: impl FnMut(usize, Option<FoundRecord<'a>>) -> Result<ControlFlow<()>, SourceFault>,
) -> Result<(), SourceError> {
    let bytes: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
    let item = |index: usize| (&reader(index).records, bytes[index].as_slice());
    find_many(keys.len(), item, each).map_err(|fault| fault.0)
}

fn damaged(error: ReadError) -> SourceError {
    match error {
        ReadError::Damaged(damage) => {
            SourceError::Damaged { file: damage.file, detail: damage.fault.to_string() }
        }
    }
}

/// Lets both kinds of error pass through a lookup.
struct SourceFault(SourceError);

impl From<ReadError> for SourceFault {
    fn from(error: ReadError) -> Self {
        Self(damaged(error))
    }
}

impl From<SourceError> for SourceFault {
    fn from(error: SourceError) -> Self {
        Self(error)
    }
}
