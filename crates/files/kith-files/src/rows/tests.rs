//! Compares the sort of rows with a stable sort of a vector.

use super::*;
use kith_types::fmix64;
use proptest::prelude::*;

type Rows = Vec<(u32, Vec<u8>, Vec<u8>)>;

fn sorted(rows: &Rows, memory_bytes: usize, threads: usize) -> (Rows, usize) {
    let dir = tempfile::tempdir().unwrap();
    let options = SortOptions { memory_bytes, scratch_dir: dir.path().to_owned(), threads };
    let mut sorter = RowSorter::new(options);
    // Tests need runs of few rows.
    sorter.arena_bytes_max = memory_bytes;
    for (partition, key, value) in rows {
        sorter.push(PartitionId(*partition), key, value).unwrap();
    }
    assert_eq!(sorter.rows(), rows.len() as u64);
    let mut sorted = sorter.finish().unwrap();
    let mut out = Rows::new();
    while let Some(row) = sorted.next().unwrap() {
        out.push((row.partition.0, row.key.to_vec(), row.value.to_vec()));
    }
    (out, sorted.spilled_runs())
}

fn expected(rows: &Rows) -> Rows {
    let mut rows = rows.clone();
    rows.sort_by_key(|(partition, key, _)| (*partition, position_of_key(key), key.clone()));
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_rows_come_out_sorted_and_stable_within_any_budget(
        rows in prop::collection::vec(
            (0u32..4, prop::collection::vec(0u8..3, 0..4), prop::collection::vec(any::<u8>(), 0..40)), 0..300),
        memory in 1usize..6_000,
        threads in 1usize..3,
    ) {
        prop_assert_eq!(sorted(&rows, memory, threads).0, expected(&rows));
    }
}

#[test]
fn more_runs_than_the_fan_in_are_merged_in_passes() {
    let rows: Rows = (0..20_000u64)
        .map(|index| {
            (
                fmix64(index) as u32 % 7,
                (fmix64(index) % 9_000).to_le_bytes().to_vec(),
                index.to_le_bytes().to_vec(),
            )
        })
        .collect();
    let (got, runs) = sorted(&rows, 2_000, 2);
    assert!(runs > 500, "{runs} runs");
    assert_eq!(got, expected(&rows));
}

#[test]
fn long_keys_and_values_come_back_whole() {
    let key = |byte: u8| vec![byte; kith_engine::KEY_BYTES_MAX];
    let rows: Rows = (0..12u8)
        .map(|byte| {
            (
                0,
                key(byte % 5),
                vec![byte; [0, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 3 << 20][usize::from(byte % 4)]],
            )
        })
        .collect();
    for memory in [1, 200_000, 1 << 24] {
        assert_eq!(sorted(&rows, memory, 1).0, expected(&rows));
    }
}
