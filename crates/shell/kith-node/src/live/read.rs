//! Reads objects and associations, and decodes their fields.

use super::{
    errors::LiveError,
    rows::{ReadNeed, RowReader},
    types::KnownTypes,
};
use futures::{StreamExt, TryStreamExt, future::join_all, stream};
use kith_cache::live::{Query, RowsAnswer, Start};
use kith_live::{
    Association, AssociationAnswer, AssociationRead, FieldsFault, GraphTypes, INDEX_MAX, ListKey,
    ListedAssociation, Object, ObjectAnswer, Select, Start as RangeStart, TypeId,
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
    /// Reads objects by id, without `with_data` only their types and versions. Returns them in the order of the ids, and by
    /// partition the point at which they were read.
    pub async fn objects(
        &self,
        ids: &[u64],
        with_data: bool,
        need: &ReadNeed,
    ) -> Result<(Vec<Option<ObjectAnswer>>, BTreeMap<PartitionId, LogPoint>), LiveError> {
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
        let answer = |types: &GraphTypes, object: &Object| {
            let kind = types.objects.get(&object.kind).ok_or(FieldsFault::NoType(object.kind))?;
            let data = match with_data {
                true => types.decode(object.kind, &object.data)?,
                false => String::new(),
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

    /// Reads association lists of each of these ids. Returns them for each id in the order of the reads, and by partition the
    /// point at which they were read.
    pub async fn associations(
        &self,
        ids: &[u64],
        reads: &[AssociationRead],
        need: &ReadNeed,
    ) -> Result<(Vec<Vec<AssociationAnswer>>, BTreeMap<PartitionId, LogPoint>), LiveError> {
        let each = ids.iter().flat_map(|id1| (0..reads.len()).map(move |at| (*id1, at)));
        let each: Vec<(u64, usize)> = each.collect();
        let lists = stream::iter(each).map(|(id1, at)| self.association_list(id1, &reads[at], need));
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
        let mut found = match answered.answer {
            RowsAnswer::Count(count) => {
                return Ok((AssociationAnswer::Count(count), partition, answered.until));
            }
            RowsAnswer::Associations(found) => found,
            RowsAnswer::Objects(_) => Vec::new(),
        };
        let more = limit < found.len();
        found.truncate(limit);
        let answer = |types: &GraphTypes, association: &Association| {
            let data = read.with_data.then(|| types.decode(number, &association.data)).transpose()?;
            let version = read.with_versions.then_some(association.stamp.position.0);
            Ok::<_, FieldsFault>(ListedAssociation {
                id2: association.id2,
                time: association.time,
                data,
                version,
            })
        };
        let out = self.types.decoded(|types| found.iter().map(|it| answer(types, it)).collect()).await?;
        Ok((AssociationAnswer::List { out, more }, partition, answered.until))
    }
}

/// The answer from a list without associations.
fn no_associations(select: &Select) -> AssociationAnswer {
    match select {
        Select::Count => AssociationAnswer::Count(0),
        Select::Ids { .. } | Select::Range { .. } | Select::Times { .. } => {
            AssociationAnswer::List { out: Vec::new(), more: false }
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
