//! Finds objects by their value in a field with an index: from memory if the partition is proven to be fresh enough,
//! otherwise from the database.

use super::{
    database::GraphDatabase, errors::LiveError, logs::FollowedLogs, partitions::HeldPartitions,
    rows::ReadNeed, types::KnownTypes,
};
use kith_cache::live::{CacheReply, IDS_MIN, Memory, Need, Query, RowsAnswer, TermCheck};
use kith_live::{IndexId, ObjectFind, RowAnswer, RowQuery, RowsAt};
use kith_types::{LogPoint, PartitionId};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The most values of all partitions together that one call of the database looks up, unless one partition has more. Servers
/// get a statement for each of them, in one packet.
const LOOK_UPS_MAX: usize = 8_192;

/// Reads the indexes of one graph.
pub(super) struct IndexReader {
    pub database: Arc<GraphDatabase>,
    pub partitions: Arc<HeldPartitions>,
    pub types: Arc<KnownTypes>,
    pub logs: Arc<FollowedLogs>,
}

/// The ids that a partition has, and the point of its log at which they were read.
struct Found {
    ids: Vec<u64>,
    at: LogPoint,
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
        let look_up = LookUp {
            keys: keys.into_iter().collect(),
            after: find.after,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
        };
        let (mut ids, mut reached, mut unknown) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
        for &partition in partitions {
            match self.remembered(partition, &look_up, need)? {
                Some(found) => {
                    ids.extend(found.ids);
                    reached.insert(partition, found.at);
                }
                None => unknown.push(partition),
            }
        }
        count_values((partitions.len() - unknown.len(), unknown.len()), look_up.keys.len());
        for (partition, found) in unknown.iter().zip(self.read(&unknown, &look_up, need).await?) {
            ids.extend(found.ids);
            reached.insert(*partition, found.at);
        }
        Ok((ids.into_iter().take(usize::try_from(limit).unwrap_or(usize::MAX)).collect(), reached))
    }

    /// Looks up keys in the memory of a partition. Returns `None` if it does not have all of them, or does not show what the
    /// read must show. A critical read goes to the database, which also says what is the latest: asking for the end of each
    /// log would cost as much.
    fn remembered(
        &self,
        partition: PartitionId,
        look_up: &LookUp,
        need: &ReadNeed,
    ) -> Result<Option<Found>, LiveError> {
        let after = need.after.get(&partition).copied().unwrap_or_default();
        let now = self.partitions.now();
        self.partitions.with(partition, |cache| {
            let mut found = Found { ids: Vec::new(), at: cache.applied() };
            if need.critical || found.at < after || cache.shows(after, found.at) != TermCheck::Yes {
                return None;
            }
            for (index, key) in &look_up.keys {
                let (index, key) = (*index, Arc::clone(key));
                let query = Query::Entries { index, key, after: look_up.after, limit: look_up.limit };
                let need = Need { after, memory: Memory::IfFresh, filled: &[] };
                let CacheReply::Answer(answered) = cache.ask(&query, need, now) else { return None };
                if cache.shows(after, answered.until) != TermCheck::Yes {
                    return None;
                }
                let RowsAnswer::Ids(ids) = answered.answer else { return None };
                found.at = found.at.max(answered.until);
                found.ids.extend(ids);
            }
            Some(found)
        })
    }

    /// Looks up keys in the database, of partitions that this node holds, and keeps what is found.
    async fn read(
        &self,
        partitions: &[PartitionId],
        look_up: &LookUp,
        need: &ReadNeed,
    ) -> Result<Vec<Found>, LiveError> {
        let queries = look_up.queries();
        let rows = self.rows(partitions, &queries, need).await?;
        for (partition, rows) in partitions.iter().zip(&rows) {
            self.keep(*partition, &queries, rows);
        }
        Ok(rows.into_iter().map(Found::from).collect())
    }

    /// Reads rows of partitions that this node holds. Reads them again if an older copy of the database has
    /// replaced the logs in the meantime.
    pub async fn rows(
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

    /// Offers what was read to the cache, which takes what it can keep up to date.
    fn keep(&self, partition: PartitionId, queries: &[RowQuery], rows: &RowsAt) {
        // The partition may have been lost meanwhile.
        let _ = self.partitions.with(partition, |cache| {
            for (query, answer) in queries.iter().zip(&rows.answers) {
                cache.fill(rows.at, query, answer);
            }
        });
    }
}

/// The keys to look up in each partition.
struct LookUp {
    keys: Vec<(IndexId, Arc<[u8]>)>,
    after: Option<u64>,
    limit: u32,
}

impl LookUp {
    fn queries(&self) -> Vec<RowQuery> {
        let (after, limit) = (self.after, self.limit.max(IDS_MIN));
        let query = |(index, key): &(IndexId, Arc<[u8]>)| {
            let (index, key) = (*index, Arc::clone(key));
            RowQuery::Entries { index, key, after, limit }
        };
        self.keys.iter().map(query).collect()
    }
}

impl From<RowsAt> for Found {
    fn from(rows: RowsAt) -> Self {
        let ids = |answer| if let RowAnswer::Ids(ids) = answer { ids } else { Vec::new() };
        Self { ids: rows.answers.into_iter().flat_map(ids).collect(), at: rows.at }
    }
}

/// Counts values that were looked up: those of partitions that answered from memory, and the others.
fn count_values((held, read): (usize, usize), values: usize) {
    metrics::counter!("kith_live_index_hits_total").increment((held * values) as u64);
    metrics::counter!("kith_live_index_misses_total").increment((read * values) as u64);
}
