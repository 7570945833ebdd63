//! Splits reads of several partitions into calls whose replies are not too long for a message.

use crate::PartitionQueries;
use kith_live::{ASSOCIATION_BYTES_MAX, OBJECT_BYTES_MAX, RowQuery};

/// The most bytes that the rows of one call may have: well below the limit of a message. One partition may have more.
const CALL_BYTES_MAX: usize = 128 << 20;
/// An upper bound of the bytes of a row without its fields.
const ROW_BYTES: usize = 256;

/// The most bytes of an id in a reply.
const ID_BYTES_MAX: usize = 10;

/// Groups `parts`, in their order, so that the rows of each group fit into the reply of one call.
pub(super) fn portions(parts: Vec<PartitionQueries>) -> Vec<Vec<PartitionQueries>> {
    let (mut portions, mut bytes) = (Vec::<Vec<PartitionQueries>>::new(), 0);
    for part in parts {
        let more: usize = part.1.iter().map(bytes_max).sum();
        match portions.last_mut() {
            Some(portion) if bytes + more <= CALL_BYTES_MAX => {
                portion.push(part);
                bytes += more;
            }
            _ => {
                portions.push(vec![part]);
                bytes = more;
            }
        }
    }
    portions
}

/// Returns about how many bytes the answer to a query may have. Intents can only be estimated.
fn bytes_max(query: &RowQuery) -> usize {
    match query {
        RowQuery::Object(_) => OBJECT_BYTES_MAX + ROW_BYTES,
        RowQuery::Association(_) => ASSOCIATION_BYTES_MAX + ROW_BYTES,
        RowQuery::List { limit, .. } => (ASSOCIATION_BYTES_MAX + ROW_BYTES).saturating_mul(*limit as usize),
        RowQuery::Intents => CALL_BYTES_MAX / 2,
        RowQuery::Entries { limit, .. } => ID_BYTES_MAX.saturating_mul(*limit as usize),
        RowQuery::Count(_)
        | RowQuery::PairStamp(_)
        | RowQuery::Floor(_)
        | RowQuery::Outcome(_)
        | RowQuery::ObjectCount(_)
        | RowQuery::AssociationCount { .. } => ROW_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::PartitionId;

    #[test]
    fn calls_are_as_few_as_the_sizes_of_rows_allow() {
        let objects = |partition, count| (PartitionId(partition), (0..count).map(RowQuery::Object).collect());
        let counts =
            |parts: Vec<PartitionQueries>| -> Vec<usize> { portions(parts).iter().map(Vec::len).collect() };
        assert_eq!(counts(vec![]), [0; 0]);
        assert_eq!(counts((0..24).map(|partition| objects(partition, 5)).collect()), [24]);
        assert_eq!(counts((0..4).map(|partition| objects(partition, 50)).collect()), [2, 2]);
        // A partition is not split, however many rows are read.
        assert_eq!(counts(vec![objects(0, 1), objects(1, 1024), objects(2, 1)]), [1, 1, 1]);
    }
}
