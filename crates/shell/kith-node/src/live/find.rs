//! Finds objects by their value in a field with an index. The entries of an index are read from the database, so an answer
//! shows all writes that were acknowledged before.

use super::{errors::LiveError, graph::LiveGraph, read::ReadNeed};
use kith_live::{ObjectFind, RowAnswer, RowQuery, RowsAt};
use kith_types::{LogPoint, PartitionId};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The most values of all partitions together that one call of the database looks up, unless one partition has more. Servers
/// get a statement for each of them, in one packet.
const LOOK_UPS_MAX: usize = 8_192;

impl LiveGraph {
    /// Returns the ids of the objects of `partitions` that have one of the values, ascending and at most `find.limit`, and by
    /// partition the place at which they were read.
    pub(super) async fn find(
        self: &Arc<Self>,
        find: &ObjectFind,
        partitions: &[PartitionId],
        need: &ReadNeed,
    ) -> Result<(Vec<u64>, BTreeMap<PartitionId, LogPoint>), LiveError> {
        let types = self.types();
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
        self: &Arc<Self>,
        partitions: &[PartitionId],
        queries: &[RowQuery],
        need: &ReadNeed,
    ) -> Result<Vec<RowsAt>, LiveError> {
        {
            let mut caches = self.caches.lock();
            let foreign = partitions.iter().find(|partition| caches.partition(**partition).is_none());
            if let Some(partition) = foreign {
                return Err(LiveError::NotOwner(*partition));
            }
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
                    shows = shows && self.shows(*partition, required, rows.at).await?;
                }
            }
            if shows {
                return Ok(rows);
            }
        }
    }
}
