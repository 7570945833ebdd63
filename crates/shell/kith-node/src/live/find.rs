//! Finds objects by their value in a field with an index. The entries of an index are read from the database, so an answer
//! shows all writes that were acknowledged before.

use super::{
    database::GraphDatabase, errors::LiveError, logs::FollowedLogs, partitions::HeldPartitions,
    rows::ReadNeed, types::KnownTypes,
};
use kith_live::{ObjectFind, RowAnswer, RowQuery, RowsAt};
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
