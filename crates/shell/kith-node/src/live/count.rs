//! Counts the objects or associations of a live graph in the database, without reading them.

use super::{errors::LiveError, find::IndexReader, rows::ReadNeed};
use kith_live::{CountedElements, GraphTypes, Inverse, RowAnswer, RowQuery, RowsAt, TypeId};
use kith_types::{LogPoint, PartitionId};
use std::collections::BTreeMap;

/// The number of partitions whose rows one call of the database counts: that takes long where there are many.
const COUNTED_AT_ONCE: usize = 16;

/// Counts elements of `partitions`, without reading them. Returns their number, and by partition the point at which they were
/// counted.
pub(super) async fn count(
    reader: &IndexReader,
    counted: &CountedElements,
    partitions: &[PartitionId],
    need: &ReadNeed,
) -> Result<(u64, BTreeMap<PartitionId, LogPoint>), LiveError> {
    let mut types = reader.types.get();
    if unknown(&types, counted) {
        // There are no elements of a type unless the log that the answer must show names one that is unknown here.
        for partition in partitions {
            reader.logs.catch_up(*partition, need.after.get(partition).copied().unwrap_or_default()).await?;
        }
        types = reader.types.of_log().await?;
    }
    let queries = count_queries(&types, counted)?;
    let (mut count, mut reached) = (0_u64, BTreeMap::new());
    if queries.is_empty() {
        return Ok((0, reached));
    }
    for some in partitions.chunks(COUNTED_AT_ONCE) {
        for (partition, RowsAt { at, answers }) in some.iter().zip(reader.rows(some, &queries, need).await?) {
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
