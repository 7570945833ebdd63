//! The value of an adjacency list: a count, the sorted ids, then one array per column. Drawn in
//! `docs/formats/adjacency.md`.

use kith_types::delta::{self, DecodeError, put_varint, take_varint};

/// Keeps only the ids whose value in one column lies in a range, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnFilter {
    /// Index of the column.
    pub column: usize,
    /// The least value that is kept.
    pub low: u64,
    /// The greatest value that is kept.
    pub high: u64,
}

/// Appends the value of a list. `ids` must be sorted and distinct, and each of `columns` as long as `ids`.
///
/// # Panics
/// If a column has another length.
pub fn encode(ids: &[u64], columns: &[&[u64]], out: &mut Vec<u8>) {
    put_varint(out, ids.len() as u64);
    delta::encode(ids, out);
    for column in columns {
        assert_eq!(column.len(), ids.len(), "a column has one value per id");
        let mut previous = 0u64;
        for &value in *column {
            put_varint(out, zigzag(value.wrapping_sub(previous)));
            previous = value;
        }
    }
}

/// Replaces `out` by the ids of a list that pass the filter: sorted, distinct. `column_count` is the component's. One pass
/// over the bytes; no allocation beyond `out`.
///
/// # Errors
/// If the bytes are not exactly one list with this number of columns.
///
/// # Panics
/// If the filter names a column beyond `column_count`.
pub fn decode(
    mut bytes: &[u8],
    column_count: usize,
    filter: Option<ColumnFilter>,
    out: &mut Vec<u64>,
) -> Result<(), DecodeError> {
    out.clear();
    let count = usize::try_from(take_varint(&mut bytes)?).map_err(|_| DecodeError::Overflow)?;
    delta::decode(&mut bytes, count, out)?;
    let filtered = filter.map(|filter| {
        assert!(filter.column < column_count, "a filter names one of the columns");
        filter.column
    });
    // Columns are always walked, because a list that does not end with them is damaged.
    for column in 0..column_count {
        if filtered == Some(column) {
            retain(&mut bytes, count, filter, out)?;
        } else {
            skip(&mut bytes, count)?;
        }
    }
    if bytes.is_empty() { Ok(()) } else { Err(DecodeError::Overflow) }
}

/// Decodes a list like [`decode`], with the values of the columns in `wanted`, which are indices below `column_count`.
/// Replaces each of `columns` by those values, one per id in `out`. `O(ids × columns)`.
///
/// # Errors
/// Those of [`decode`].
///
/// # Panics
/// If `columns` and `wanted` differ in length, or the filter names a column beyond `column_count`.
pub fn decode_with_columns(
    mut bytes: &[u8],
    column_count: usize,
    filter: Option<ColumnFilter>,
    out: &mut Vec<u64>,
    wanted: &[usize],
    columns: &mut [Vec<u64>],
) -> Result<(), DecodeError> {
    assert_eq!(wanted.len(), columns.len(), "one list of values per column");
    out.clear();
    columns.iter_mut().for_each(Vec::clear);
    let count = usize::try_from(take_varint(&mut bytes)?).map_err(|_| DecodeError::Overflow)?;
    delta::decode(&mut bytes, count, out)?;
    let mut kept = None;
    for column in 0..column_count {
        let mut values = Values { bytes: &mut bytes, previous: 0 };
        let indexes =
            wanted.iter().enumerate().filter(|(_, wanted)| **wanted == column).map(|(index, _)| index);
        let indexes: Vec<usize> = indexes.collect();
        let range = filter.filter(|filter| filter.column == column);
        let mut keep = range.map(|_| Vec::with_capacity(count));
        for _ in 0..count {
            let value = values.next()?;
            for &index in &indexes {
                columns[index].push(value);
            }
            if let (Some(keep), Some(range)) = (&mut keep, range) {
                keep.push((range.low..=range.high).contains(&value));
            }
        }
        kept = keep.or(kept);
    }
    if let Some(kept) = kept {
        for list in columns.iter_mut().chain([&mut *out]) {
            let mut kept = kept.iter().copied();
            list.retain(|_| kept.next() == Some(true));
        }
    }
    if bytes.is_empty() { Ok(()) } else { Err(DecodeError::Overflow) }
}

/// The values of one column, decoded from the stored differences.
struct Values<'a, 'b> {
    bytes: &'a mut &'b [u8],
    previous: u64,
}

impl Values<'_, '_> {
    fn next(&mut self) -> Result<u64, DecodeError> {
        self.previous = self.previous.wrapping_add(unzigzag(take_varint(self.bytes)?));
        Ok(self.previous)
    }
}

/// Returns the number of ids of a list without reading them.
///
/// # Errors
/// If the bytes do not begin with a count.
pub fn count(mut bytes: &[u8]) -> Result<u64, DecodeError> {
    take_varint(&mut bytes)
}

fn retain(
    bytes: &mut &[u8],
    count: usize,
    filter: Option<ColumnFilter>,
    ids: &mut Vec<u64>,
) -> Result<(), DecodeError> {
    let Some(ColumnFilter { low, high, .. }) = filter else { return Ok(()) };
    let (mut values, mut kept) = (Values { bytes, previous: 0 }, 0);
    for index in 0..count {
        if (low..=high).contains(&values.next()?) {
            ids[kept] = ids[index];
            kept += 1;
        }
    }
    ids.truncate(kept);
    Ok(())
}

fn skip(bytes: &mut &[u8], count: usize) -> Result<(), DecodeError> {
    for _ in 0..count {
        take_varint(bytes)?;
    }
    Ok(())
}

/// Maps small differences of either sign to small numbers.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (0u64.wrapping_sub(difference >> 63))
}

fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ 0u64.wrapping_sub(value & 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lists() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, Vec<u64>)> {
        prop::collection::btree_map(any::<u64>(), (any::<u64>(), 0u64..100), 0..200).prop_map(|map| {
            let ids = map.keys().copied().collect();
            let (first, second) = map.values().copied().unzip();
            (ids, first, second)
        })
    }

    proptest! {
        #[test]
        fn lists_come_back_filtered((ids, first, second) in lists(), low in 0u64..60, width in 0u64..60) {
            let mut bytes = Vec::new();
            encode(&ids, &[&first, &second], &mut bytes);
            let mut out = vec![1, 2, 3];
            decode(&bytes, 2, None, &mut out).unwrap();
            prop_assert_eq!(&out, &ids);
            let filter = ColumnFilter { column: 1, low, high: low + width };
            decode(&bytes, 2, Some(filter), &mut out).unwrap();
            let expected: Vec<u64> = ids.iter().zip(&second)
                .filter(|(_, value)| (low..=low + width).contains(value)).map(|(&id, _)| id).collect();
            prop_assert_eq!(&out, &expected);
            let mut columns = vec![vec![9], vec![], vec![1]];
            decode_with_columns(&bytes, 2, Some(filter), &mut out, &[1, 0, 1], &mut columns).unwrap();
            prop_assert_eq!(&out, &expected);
            let of = |column: &[u64]| -> Vec<u64> {
                let at = |id: &u64| column[ids.binary_search(id).unwrap()];
                expected.iter().map(at).collect()
            };
            prop_assert_eq!(columns, [of(&second), of(&first), of(&second)]);
            prop_assert_eq!(count(&bytes).unwrap(), ids.len() as u64);
        }

        #[test]
        fn cut_or_longer_values_are_errors((ids, first, second) in lists(), cut: prop::sample::Index) {
            let mut bytes = Vec::new();
            encode(&ids, &[&first, &second], &mut bytes);
            let mut out = Vec::new();
            prop_assert!(decode(&bytes[..cut.index(bytes.len())], 2, None, &mut out).is_err());
            bytes.push(0);
            prop_assert!(decode(&bytes, 2, None, &mut out).is_err());
        }

        #[test]
        fn hostile_bytes_end_in_bounded_work(bytes in prop::collection::vec(any::<u8>(), 0..300), columns in 0usize..4) {
            let mut out = Vec::new();
            let filter = (columns > 0).then(|| ColumnFilter { column: columns - 1, low: 0, high: u64::MAX / 2 });
            let _ = decode(&bytes, columns, filter, &mut out);
            prop_assert!(out.capacity() <= 2 * bytes.len() + 8);
            let (wanted, mut values): (Vec<usize>, Vec<Vec<u64>>) = (0..columns).map(|column| (column, vec![])).unzip();
            let _ = decode_with_columns(&bytes, columns, filter, &mut out, &wanted, &mut values);
            prop_assert!(values.iter().all(|values| values.capacity() <= 2 * bytes.len() + 8));
        }
    }

    #[test]
    fn columns_are_differences_of_either_sign() {
        let mut bytes = Vec::new();
        encode(&[10, 20, 21], &[&[1_000, 999, 1_001]], &mut bytes);
        assert_eq!(bytes, [3, 10, 10, 1, 0xd0, 0x0f, 1, 4]);
    }
}
