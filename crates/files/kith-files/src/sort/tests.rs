//! Compares the external sort with `Vec::sort`.

use super::scratch::Scratch;
use super::*;
use proptest::prelude::*;
use std::path::Path;

fn options(dir: &Path, memory_bytes: usize, threads: usize) -> SortOptions {
    SortOptions { memory_bytes, scratch_dir: dir.to_owned(), threads }
}

fn sort<const N: usize>(records: &[[u64; N]], options: SortOptions) -> (Vec<[u64; N]>, usize) {
    let mut sorter = ExternalSorter::new(options);
    for &record in records {
        sorter.push(record).unwrap();
    }
    let mut sorted = sorter.finish().unwrap();
    assert_eq!(sorted.records(), records.len() as u64);
    let mut out = Vec::new();
    while let Some(record) = sorted.next().unwrap() {
        out.push(record);
    }
    (out, sorted.spilled_runs())
}

/// Pseudo-random numbers with some repetitions.
fn scrambled(count: u64) -> Vec<[u64; 3]> {
    (0..count).map(|i| [kith_types::fmix64(i) % (count / 2 + 1), i % 3, i % 2]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_input_comes_out_sorted_within_any_budget(
        records in prop::collection::vec(any::<[u64; 2]>(), 0..600),
        memory in 1usize..4_000,
        threads in 1usize..3,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (got, _) = sort(&records, options(dir.path(), memory, threads));
        let mut expected = records;
        expected.sort();
        prop_assert_eq!(got, expected);
    }
}

#[test]
fn more_runs_than_the_fan_in_are_merged_in_passes() {
    let dir = tempfile::tempdir().unwrap();
    let records = scrambled(20_000);
    let mut expected = records.clone();
    expected.sort();
    for threads in [1, 2] {
        // 96 bytes hold at most four records: the fan-in is 4 and there are thousands of runs.
        let (got, runs) = sort(&records, options(dir.path(), 96, threads));
        assert!(runs > 4_000, "{runs} runs");
        assert_eq!(got, expected);
    }
}

#[test]
fn what_fits_is_never_written() {
    let records = scrambled(1_000);
    let nowhere = options(Path::new("/nonexistent"), 1 << 20, 2);
    let (got, runs) = sort(&records, nowhere);
    assert_eq!((got.len(), runs), (1_000, 0));
}

#[test]
fn scratch_files_leave_no_names_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mut sorter = ExternalSorter::new(options(dir.path(), 240, 2));
    for record in scrambled(500) {
        sorter.push(record).unwrap();
    }
    let sorted = sorter.finish().unwrap();
    assert!(sorted.spilled_runs() > 1);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_scratch_folder_that_cannot_be_used_is_named() {
    for threads in [1, 2] {
        let mut sorter = ExternalSorter::new(options(Path::new("/nonexistent"), 240, threads));
        let pushed = scrambled(500).into_iter().try_for_each(|record| sorter.push(record));
        assert_eq!(pushed.unwrap_err().to_string(), "cannot use a scratch file in /nonexistent");
    }
}

#[test]
fn a_damaged_scratch_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path(), 1 << 10, 1);
    let records: Vec<[u64; 3]> = (0..100).map(|i| [i, 0, 0]).collect();
    let mut total = 0;
    for offset in (0..2_400).step_by(7) {
        let mut scratch = Scratch::create(&options, <Vec<[u64; 3]> as Spill>::block_bytes(&options)).unwrap();
        let mut input = records.iter().copied();
        let run = scratch.write_run(|| Ok(input.next())).unwrap();
        scratch.damage(offset);
        let read = Merge::<[u64; 3]>::new(&std::sync::Arc::new(scratch), &[run]).and_then(|mut merge| {
            while merge.next()?.is_some() {}
            Ok(())
        });
        assert!(matches!(read, Err(SortError::Damaged { .. })), "byte {offset}: {read:?}");
        total += 1;
    }
    assert_eq!(total, 343);
}
