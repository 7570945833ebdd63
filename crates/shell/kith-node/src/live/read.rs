//! Reads objects and associations, and decodes their fields.

use super::{
    errors::LiveError,
    rows::{ReadNeed, RowReader},
    types::KnownTypes,
};
use futures::{StreamExt, TryStreamExt, future::join_all, stream};
use kith_cache::live::{Query, RowsAnswer, Start};
use kith_live::{
    Association, AssociationAnswer, AssociationRead, AssociationsPlan, CAP_MAX, ElementTest, ElementTests,
    FieldsFault, GraphTypes, INDEX_MAX, ListKey, ListPlace, ListedAssociation, Object, ObjectAnswer,
    ObjectFields, Select, Start as RangeStart, TestedValues, TypeId,
};
use kith_types::{LogPoint, PartitionCount, PartitionId, partition_of_id};
use std::{collections::BTreeMap, sync::Arc};

/// The number of lists that one request reads at a time, so that lists that are not in memory do not wait for each
/// other.
const LISTS_AT_ONCE: usize = 32;

/// Reads objects and associations of one graph.
pub(super) struct ElementReader {
    pub count: PartitionCount,
    pub types: Arc<KnownTypes>,
    pub rows: Arc<RowReader>,
}

impl ElementReader {
    /// Reads objects by id. Returns them in the order of the ids, and by partition the point at which they were read.
    pub async fn objects(
        &self,
        ids: &[u64],
        fields: &ObjectFields,
        need: &ReadNeed,
    ) -> Result<(Vec<Option<ObjectAnswer>>, BTreeMap<PartitionId, LogPoint>), LiveError> {
        let (rows, reached) = self.object_rows(ids, need).await?;
        let answer = |types: &GraphTypes, object: &Object| {
            let kind = types.objects.get(&object.kind).ok_or(FieldsFault::NoType(object.kind))?;
            let data = match fields {
                ObjectFields::All => types.decode(object.kind, &object.data)?,
                ObjectFields::Named(names) => types.decode_named(object.kind, &object.data, names)?,
                ObjectFields::None => String::new(),
            };
            let text_id = types.text_id(object.kind, &object.data)?;
            let (kind, version) = (kind.name.clone(), object.stamp.position.0);
            Ok::<_, FieldsFault>(ObjectAnswer { id: object.id, kind, version, data, text_id })
        };
        let objects = self.types.decoded(|types| {
            rows.iter().map(|row| row.as_ref().map(|object| answer(types, object)).transpose()).collect()
        });
        Ok((objects.await?, reached))
    }

    /// Reads which of these ids name objects that pass all tests. Returns them in ascending order, and by partition the point at
    /// which they were read.
    pub async fn passing(
        &self,
        ids: &[u64],
        tests: &[ElementTest],
        need: &ReadNeed,
    ) -> Result<(Vec<u64>, BTreeMap<PartitionId, LogPoint>), LiveError> {
        let tests = ElementTests::new(tests, None)?;
        let (rows, reached) = self.object_rows(ids, need).await?;
        let found: Vec<&Object> = rows.iter().flatten().collect();
        let looked = self.types.decoded(|types| {
            found
                .iter()
                .map(|object| tests.look(types, object.kind, &object.data))
                .collect::<Result<Vec<_>, _>>()
        });
        let mut passing = Vec::new();
        for (object, tested) in found.iter().zip(looked.await?) {
            if tests.pass(&tested)? {
                passing.push(object.id);
            }
        }
        passing.sort_unstable();
        Ok((passing, reached))
    }

    /// Reads the rows of objects, in the order of their ids.
    async fn object_rows(
        &self,
        ids: &[u64],
        need: &ReadNeed,
    ) -> Result<(Vec<Option<Object>>, BTreeMap<PartitionId, LogPoint>), LiveError> {
        let mut shares: BTreeMap<PartitionId, Vec<usize>> = BTreeMap::new();
        for (index, id) in ids.iter().enumerate() {
            shares.entry(partition_of_id(*id, self.count)).or_default().push(index);
        }
        let (mut rows, mut reached) = (vec![None; ids.len()], BTreeMap::new());
        let reads = shares.into_iter().map(async |(partition, indexes)| {
            let query = Query::Objects(indexes.iter().map(|index| ids[*index]).collect());
            Ok::<_, LiveError>((partition, indexes, self.rows.read(partition, query, need).await?))
        });
        for read in join_all(reads).await {
            let (partition, indexes, answered) = read?;
            reached.insert(partition, answered.until);
            let RowsAnswer::Objects(found) = answered.answer else { continue };
            for (index, object) in indexes.into_iter().zip(found) {
                rows[index] = object;
            }
        }
        Ok((rows, reached))
    }

    /// Reads association lists of each of these ids. Returns them for each id in the order of the reads, and by partition the
    /// point at which they were read.
    pub async fn associations(
        &self,
        ids: &[u64],
        plan: &AssociationsPlan,
        need: &ReadNeed,
    ) -> Result<(Vec<Vec<AssociationAnswer>>, BTreeMap<PartitionId, LogPoint>), LiveError> {
        let reads = &plan.reads;
        let tests = ElementTests::new(&plan.tests, plan.top.as_ref())?;
        let each = ids.iter().flat_map(|id1| (0..reads.len()).map(move |at| (*id1, at)));
        let each: Vec<(u64, usize)> = each.collect();
        let lists = stream::iter(each).map(async |(id1, at)| {
            let (mut answer, partition, point) = match tests.is_empty() {
                true => self.association_list(id1, &reads[at], need).await?,
                false => self.tested_list(id1, &reads[at], &tests, need).await?,
            };
            if let AssociationAnswer::List { out, .. } = &mut answer
                && let Some((_, others)) = out.split_last_mut().filter(|_| plan.without_times)
            {
                others.iter_mut().for_each(|association| association.time = 0);
            }
            Ok::<_, LiveError>((answer, partition, point))
        });
        let lists: Vec<_> = lists.buffered(LISTS_AT_ONCE).try_collect().await?;
        let mut reached = BTreeMap::new();
        for (partition, point) in lists.iter().map(|(_, partition, point)| (*partition, *point)) {
            let known = reached.entry(partition).or_insert(point);
            *known = point.max(*known);
        }
        let mut answers = lists.into_iter().map(|(answer, ..)| answer);
        Ok((ids.iter().map(|_| answers.by_ref().take(reads.len()).collect()).collect(), reached))
    }

    /// Reads associations of `id1`. Returns them with their partition and the point at which they were read.
    async fn association_list(
        &self,
        id1: u64,
        read: &AssociationRead,
        need: &ReadNeed,
    ) -> Result<(AssociationAnswer, PartitionId, LogPoint), LiveError> {
        let (rows, partition, point) = self.association_rows(id1, read, need).await?;
        let answer = match rows {
            FoundRows::Count(count) => AssociationAnswer::Count(count),
            FoundRows::Associations { number, rows, more } => {
                let out = self
                    .types
                    .decoded(|types| rows.iter().map(|it| listed(types, number, it, read)).collect());
                AssociationAnswer::List { out: out.await?, more }
            }
        };
        Ok((answer, partition, point))
    }

    /// Reads the rows of associations of `id1`. Returns them with their partition and the point at which they were read.
    async fn association_rows(
        &self,
        id1: u64,
        read: &AssociationRead,
        need: &ReadNeed,
    ) -> Result<(FoundRows, PartitionId, LogPoint), LiveError> {
        let partition = partition_of_id(id1, self.count);
        let mut types = self.types.get();
        if types.open && types.association(&read.kind).is_none() {
            // Lists of this type are empty unless the log that the answer must show names a type that is unknown here.
            let none = Query::Count(ListKey { id1, kind: TypeId::default() });
            let until = self.rows.read(partition, none, need).await?.until;
            types = self.types.of_log().await?;
            if types.association(&read.kind).is_none() {
                return Ok((no_associations(&read.select), partition, until));
            }
        }
        let (number, kind) = types.association_named(&read.kind)?;
        let list = ListKey { id1, kind: number };
        let (query, limit) = query_of(list, &read.select, kind.cap)?;
        let answered = self.rows.read(partition, query, need).await?;
        let mut rows = match answered.answer {
            RowsAnswer::Count(count) => return Ok((FoundRows::Count(count), partition, answered.until)),
            RowsAnswer::Associations(found) => found,
            RowsAnswer::Objects(_) | RowsAnswer::Ids(_) => Vec::new(),
        };
        let more = limit < rows.len();
        rows.truncate(limit);
        Ok((FoundRows::Associations { number, rows, more }, partition, answered.until))
    }

    /// As [`ElementReader::association_list`], with only the associations that pass tests. A range goes on, page by page, until
    /// it has as many as its limit, or ends with the list; if there is an order, with the list, and the first in that order are
    /// returned.
    async fn tested_list(
        &self,
        id1: u64,
        read: &AssociationRead,
        tests: &ElementTests,
        need: &ReadNeed,
    ) -> Result<(AssociationAnswer, PartitionId, LogPoint), LiveError> {
        let limit = match &read.select {
            Select::Range { limit, .. } => limit.unwrap_or(CAP_MAX) as usize,
            _ => usize::MAX,
        };
        let mut select = match &read.select {
            Select::Range { start, .. } => Select::Range { start: *start, limit: None },
            other => other.clone(),
        };
        let mut found: Vec<(TestedValues, ListedAssociation)> = Vec::new();
        loop {
            let page = AssociationRead { select: select.clone(), ..read.clone() };
            let (rows, partition, point) = self.association_rows(id1, &page, need).await?;
            let FoundRows::Associations { number, rows, mut more } = rows else {
                return self.association_list(id1, read, need).await;
            };
            let last = rows.last().map(|it| ListPlace { time: it.time, id2: it.id2 });
            let looked = self.types.decoded(|types| {
                let look = |it: &Association| {
                    let tested = tests.look(types, number, &it.data)?;
                    Ok((tested, listed(types, number, it, read)?))
                };
                rows.iter().map(look).collect::<Result<Vec<_>, FieldsFault>>()
            });
            for (tested, association) in looked.await? {
                if tests.pass(&tested)? {
                    if found.len() == limit && !tests.has_order() {
                        more = true;
                        break;
                    }
                    found.push((tested, association));
                }
            }
            if tests.has_order() && (!more || limit.saturating_mul(4) < found.len()) {
                found.sort_by(|(a, _), (b, _)| tests.order(a, b));
                found.truncate(limit);
            }
            let is_full = limit <= found.len() && !tests.has_order();
            match last.filter(|_| more && !is_full) {
                Some(last) if matches!(select, Select::Range { .. }) => {
                    select = Select::Range { start: RangeStart::After(last), limit: None };
                }
                _ => {
                    let more = more && !tests.has_order();
                    let out = found.into_iter().map(|(_, association)| association).collect();
                    return Ok((AssociationAnswer::List { out, more }, partition, point));
                }
            }
        }
    }
}

/// The rows that answer a read of one list.
enum FoundRows {
    Count(u64),
    /// The associations, their type, and whether the limit or the cap cut off more.
    Associations {
        number: TypeId,
        rows: Vec<Association>,
        more: bool,
    },
}

/// An association as it is answered.
fn listed(
    types: &GraphTypes,
    number: TypeId,
    association: &Association,
    read: &AssociationRead,
) -> Result<ListedAssociation, FieldsFault> {
    let data = read.with_data.then(|| types.decode(number, &association.data)).transpose()?;
    let version = read.with_versions.then_some(association.stamp.position.0);
    Ok(ListedAssociation { id2: association.id2, time: association.time, data, version })
}

/// The rows of a list without associations.
fn no_associations(select: &Select) -> FoundRows {
    match select {
        Select::Count => FoundRows::Count(0),
        Select::Ids { .. } | Select::Range { .. } | Select::Times { .. } => {
            FoundRows::Associations { number: TypeId::default(), rows: Vec::new(), more: false }
        }
    }
}

/// Returns the query for the cache, and the maximum number of associations for the caller. Range and time-range queries ask for
/// one more association, so that the answer can say whether there are more.
///
/// # Errors
/// The range begins at a greater index than any may.
fn query_of(list: ListKey, select: &Select, cap: u32) -> Result<(Query, usize), LiveError> {
    let limited = |limit: Option<u32>| limit.unwrap_or(cap).min(cap);
    Ok(match select {
        Select::Ids { ids, high, low } => {
            let (high, low) = (high.unwrap_or(u64::MAX), low.unwrap_or(0));
            (Query::Get { list, ids: ids.clone(), high, low }, usize::MAX)
        }
        Select::Count => (Query::Count(list), usize::MAX),
        Select::Range { start, limit } => {
            let limit = limited(*limit);
            let start = match start {
                RangeStart::Index(index) if INDEX_MAX < *index => {
                    return Err(LiveError::IndexTooGreat(*index));
                }
                RangeStart::Index(index) => Start::Index(u32::try_from(*index).unwrap_or(u32::MAX)),
                RangeStart::After(last) => Start::After(*last),
            };
            (Query::Range { list, start, limit: limit.saturating_add(1) }, limit as usize)
        }
        Select::Times { high, low, limit } => {
            let limit = limited(*limit);
            let (high, low) = (high.unwrap_or(u64::MAX), low.unwrap_or(0));
            (Query::TimeRange { list, high, low, limit: limit.saturating_add(1) }, limit as usize)
        }
    })
}
