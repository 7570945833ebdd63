//! Finds objects by their value in a field with an index. The entries of an index are read from the database, so an answer
//! shows all writes that were acknowledged before.

use super::{
    database::GraphDatabase, errors::LiveError, logs::FollowedLogs, partitions::HeldPartitions,
    rows::ReadNeed, types::KnownTypes,
};
use kith_live::{CountedElements, GraphTypes, Inverse, ObjectFind, RowAnswer, RowQuery, RowsAt, TypeId};
use kith_types::{LogPoint, PartitionId};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The most values of all partitions together that one call of the database looks up, unless one partition has more. Servers
/// get a statement for each of them, in one packet.
const LOOK_UPS_MAX: usize = 8_192;

/// The number of partitions whose rows one call of the database counts: that takes long where there are many.
const COUNTED_AT_ONCE: usize = 16;

/// Reads the indexes of one graph.
pub(super) struct IndexReader {
    pub database: Arc<GraphDatabase>,
    pub partitions: Arc<HeldPartitions>,
    pub types: Arc<KnownTypes>,
    pub logs: Arc<FollowedLogs>,
}

impl IndexReader {
    /// Returns the ids of the objects of `partitions` that have one of the values, ascending and at most `find.limit`, and by
    /// partition the point at which they were read.
    pub async fn find(
        &self,
        find: &ObjectFind,
        partitions: &[PartitionId],
        need: &ReadNeed,
    ) -> Result<(Vec<u64>, BTreeMap<PartitionId, LogPoint>), LiveError> {
        let types = self.types.get();
        let keys = find.values.iter().map(|value| types.find_key(&find.kind, &find.field, value));
        let keys: BTreeSet<_> = keys.collect::<Result<_, _>>()?;
        let limit = find.limit.unwrap_or(u64::MAX);
        let query = |(index, key)| RowQuery::Entries {
            index,
            key,
            after: find.after,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
        };
        let queries: Vec<RowQuery> = keys.into_iter().map(query).collect();
        let (mut ids, mut reached) = (BTreeSet::new(), BTreeMap::new());
        let rows = self.entries(partitions, &queries, need).await?;
        for (partition, RowsAt { at, answers }) in partitions.iter().zip(rows) {
            reached.insert(*partition, at);
            for answer in answers {
                if let RowAnswer::Ids(found) = answer {
                    ids.extend(found);
                }
            }
        }
        Ok((ids.into_iter().take(usize::try_from(limit).unwrap_or(usize::MAX)).collect(), reached))
    }

    /// Counts elements of `partitions`, without reading them. Returns their number, and by partition the point at which they were
    /// counted.
    pub async fn count(
        &self,
        counted: &CountedElements,
        partitions: &[PartitionId],
        need: &ReadNeed,
    ) -> Result<(u64, BTreeMap<PartitionId, LogPoint>), LiveError> {
        let mut types = self.types.get();
        if unknown(&types, counted) {
            // There are no elements of a type unless the log that the answer must show names one that is unknown here.
            for partition in partitions {
                self.logs
                    .catch_up(*partition, need.after.get(partition).copied().unwrap_or_default())
                    .await?;
            }
            types = self.types.of_log().await?;
        }
        let queries = count_queries(&types, counted)?;
        let (mut count, mut reached) = (0_u64, BTreeMap::new());
        if queries.is_empty() {
            return Ok((0, reached));
        }
        for some in partitions.chunks(COUNTED_AT_ONCE) {
            for (partition, RowsAt { at, answers }) in
                some.iter().zip(self.entries(some, &queries, need).await?)
            {
                reached.insert(*partition, at);
                for answer in answers {
                    if let RowAnswer::Count(more) = answer {
                        count = count.saturating_add(more);
                    }
                }
            }
        }
        Ok((count, reached))
    }

    /// Reads entries of indexes of partitions that this node holds. Reads them again if an older copy of the database has
    /// replaced the logs in the meantime.
    async fn entries(
        &self,
        partitions: &[PartitionId],
        queries: &[RowQuery],
        need: &ReadNeed,
    ) -> Result<Vec<RowsAt>, LiveError> {
        if let Some(foreign) = partitions.iter().find(|partition| !self.partitions.contains(**partition)) {
            return Err(LiveError::NotOwner(*foreign));
        }
        loop {
            let mut rows = Vec::with_capacity(partitions.len());
            for some in partitions.chunks((LOOK_UPS_MAX / queries.len().max(1)).max(1)) {
                let parts = some.iter().map(|partition| (*partition, queries.to_vec())).collect();
                rows.extend(self.database.read_many(parts).await?);
            }
            let mut shows = true;
            for (partition, rows) in partitions.iter().zip(&rows) {
                if let Some(&required) = need.after.get(partition) {
                    shows = shows && self.logs.shows(*partition, required, rows.at).await?;
                }
            }
            if shows {
                return Ok(rows);
            }
        }
    }
}

/// Whether a name is that of no type which this node knows, in an open graph.
fn unknown(types: &GraphTypes, counted: &CountedElements) -> bool {
    types.open
        && match counted {
            CountedElements::Objects(names) => names.iter().any(|name| types.object(name).is_none()),
            CountedElements::Associations(names) => {
                names.iter().any(|name| types.association(name).is_none())
            }
        }
}

/// The queries that count elements of one partition. Types that an open graph does not have yet have none.
fn count_queries(types: &GraphTypes, counted: &CountedElements) -> Result<Vec<RowQuery>, LiveError> {
    let mut queries = Vec::new();
    match counted {
        CountedElements::Objects(names) => {
            let known = names.iter().filter(|name| !types.open || types.object(name).is_some());
            let kinds = known.map(|name| Ok::<_, LiveError>(types.object_named(name)?.0));
            let kinds: Vec<TypeId> = kinds.collect::<Result<_, _>>()?;
            if names.is_empty() || !kinds.is_empty() {
                queries.push(RowQuery::ObjectCount(kinds));
            }
        }
        CountedElements::Associations(names) => {
            let (mut whole, mut symmetric) = (Vec::new(), Vec::new());
            for name in names.iter().filter(|name| !types.open || types.association(name).is_some()) {
                let (number, kind) = types.association_named(name)?;
                match kind.inverse {
                    Inverse::Symmetric => symmetric.push(number),
                    _ => whole.push(number),
                }
            }
            for (kinds, ascending) in [(whole, false), (symmetric, true)] {
                if !kinds.is_empty() {
                    queries.push(RowQuery::AssociationCount { kinds, ascending });
                }
            }
        }
    }
    Ok(queries)
}
