//! Pairs in two partitions: how the other end applies a delivered intent, and how the ordering end completes it.
//!
//! Invariant: whenever a forward row exists, its inverse row exists too. Forward rows therefore appear last and disappear
//! first.

use super::changes::Changes;
use super::{DecisionContext, NotLoaded, Rows};
use crate::{
    AssociationKey, EdgeContent, Intent, LoggedChange, Outcome, RecordedOutcome, RowQuery, RowWrite,
};
use kith_types::{LogPoint, PartitionCount, PartitionId, partition_of_id};

/// One row that an intent changes.
pub(super) struct PairRow<'a> {
    pub(super) key: AssociationKey,
    pub(super) content: Option<&'a EdgeContent>,
    is_forward: bool,
}

impl PairRow<'_> {
    /// Whether the ordering end changes this row before the other end changes its rows. This is so for a forward row that
    /// disappears, and for an inverse row that appears.
    pub(super) fn is_early(&self) -> bool {
        self.is_forward == self.content.is_none()
    }
}

/// Returns the rows of an intent that lie in one partition.
pub(super) fn rows_here(
    intent: &Intent,
    here: PartitionId,
    count: PartitionCount,
) -> impl Iterator<Item = PairRow<'_>> {
    let both = intent.edges.iter().flat_map(|edge| {
        let row = |key, is_forward| PairRow { key, content: edge.content.as_ref(), is_forward };
        [row(edge.forward, true), row(edge.inverse, false)]
    });
    both.filter(move |row| partition_of_id(row.key.list.id1, count) == here)
}

fn edge_queries(intent: &Intent, here: PartitionId, count: PartitionCount) -> Vec<RowQuery> {
    let row = |row: PairRow<'_>| [RowQuery::Association(row.key), RowQuery::Count(row.key.list)];
    rows_here(intent, here, count).flat_map(row).collect()
}

/// Returns the queries for the rows that [`deliver`] needs, at the end that does not order the pair.
pub fn delivery_queries(intent: &Intent, count: PartitionCount) -> Vec<RowQuery> {
    let (from, here) = intent.pair.partitions(count);
    let mut queries = edge_queries(intent, here, count);
    queries.extend([RowQuery::PairStamp(intent.pair), RowQuery::Floor(from)]);
    queries
}

/// Returns what a delivered intent changes at the end that does not order the pair. A delivery may arrive any number of
/// times and arbitrarily late, so the result is `None` if this intent or a later one was applied before. `floor` is the
/// floor of the ordering partition, as the delivery names it.
///
/// # Errors
/// [`NotLoaded`] if `rows` lacks an answer to one of [`delivery_queries`].
pub fn deliver(
    intent: &Intent,
    floor: LogPoint,
    rows: &Rows,
    context: DecisionContext<'_>,
) -> Result<Option<LoggedChange>, NotLoaded> {
    let (from, here) = intent.pair.partitions(context.count);
    let known_floor = rows.floor(from)?;
    if intent.stamp < known_floor && context.guards.floor_refuses {
        return Ok(None);
    }
    let mut last = rows.pair_stamp(intent.pair)?;
    for row in rows_here(intent, here, context.count) {
        last = rows.association(row.key)?.map_or(last, |association| last.max(association.stamp));
    }
    if intent.stamp <= last {
        return Ok(None);
    }
    let mut changes = Changes::new(rows);
    let mut removes = false;
    for row in rows_here(intent, here, context.count) {
        changes.set_association(row.key, row.content, intent.stamp)?;
        removes |= row.content.is_none();
    }
    if removes && context.guards.removed_rows_keep_stamps {
        changes.row(RowWrite::PutPairStamp(intent.pair, intent.stamp));
    }
    if known_floor < floor {
        changes.row(RowWrite::SetFloor { from, before: floor });
        changes.row(RowWrite::DropPairStamps { from, before: floor });
    }
    if !context.guards.stamps_kept_until_floor {
        changes.row(RowWrite::DropPairStamps { from, before: LogPoint::new(u64::MAX, u64::MAX) });
    }
    Ok(Some(changes.finish()))
}

/// Returns the queries for the rows that [`complete`] needs, at the end that orders the pair.
pub fn completion_queries(intent: &Intent, count: PartitionCount) -> Vec<RowQuery> {
    edge_queries(intent, intent.pair.partitions(count).0, count)
}

/// Returns the change of the last transaction of a write to a pair in two partitions: it changes the rows that had to wait
/// for the other end, and removes the intent. `there` is the log point that the other end had reached when it answered.
///
/// # Errors
/// [`NotLoaded`] if `rows` lacks an answer to one of [`completion_queries`].
pub fn complete(
    intent: &Intent,
    there: LogPoint,
    rows: &Rows,
    context: DecisionContext<'_>,
) -> Result<LoggedChange, NotLoaded> {
    let (here, other) = intent.pair.partitions(context.count);
    let mut changes = Changes::new(rows);
    for row in rows_here(intent, here, context.count) {
        if !row.is_early() {
            changes.set_association(row.key, row.content, intent.stamp)?;
        }
    }
    changes.row(RowWrite::DeleteIntent(intent.stamp));
    if let Some(name) = &intent.name {
        let record = RecordedOutcome {
            write: name.checksum,
            at: context.now,
            outcome: Outcome::Done(intent.done),
            elsewhere: Some((other, there)),
        };
        changes.put_outcome(name.id.clone(), record);
    }
    Ok(changes.finish())
}
