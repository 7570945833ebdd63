//! Compares the kernels with plain `sort` + `dedup` on the shapes of a second-degree query: 500 lists of 500 ids. Benchmark
//! names end with the size of the id space.
//!
//! Every answer is compared once with the plain one before anything is timed.

use divan::{Bencher, black_box};
use kith_operators::{
    Scratch,
    sets::{self, PackedIds},
};

fn main() {
    for space in SPACES {
        let lists = lists(500, 500, space);
        let (mut scratch, mut out) = (Scratch::new(), Vec::new());
        sets::union(slices(&lists), &mut scratch, &mut out);
        assert_eq!(out, plain(&lists), "union over {space}");
        out.clear();
        sets::merge(&slices(&parts(&lists)), &mut scratch, &mut out);
        assert_eq!(out, plain(&lists), "merge over {space}");
        assert_eq!(sets::tally(slices(&lists), &mut scratch).0, out, "tally over {space}");
    }
    divan::main();
}

/// A dense, a wide and a sparse id space.
const SPACES: [u64; 3] = [1_000_000, 10_000_000, 1 << 45];

fn lists(count: usize, len: usize, space: u64) -> Vec<Vec<u64>> {
    seeded(0x9e37_79b9_7f4a_7c15, count, len, space)
}

/// Ids that are different from those of [`lists`].
fn probes(len: usize, space: u64) -> Vec<u64> {
    seeded(0x2545_f491_4f6c_dd1d, 1, len, space).remove(0)
}

/// Lists from xorshift: equal seeds give equal lists.
fn seeded(seed: u64, count: usize, len: usize, space: u64) -> Vec<Vec<u64>> {
    let mut state = seed;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % space
    };
    let list = |_| {
        let mut ids: Vec<u64> = (0..len).map(|_| next()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    (0..count).map(list).collect()
}

fn slices(lists: &[Vec<u64>]) -> Vec<&[u64]> {
    lists.iter().map(Vec::as_slice).collect()
}

fn plain(lists: &[Vec<u64>]) -> Vec<u64> {
    let mut ids: Vec<u64> = lists.iter().flatten().copied().collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The unions that three nodes would send.
fn parts(lists: &[Vec<u64>]) -> Vec<Vec<u64>> {
    lists.chunks(lists.len().div_ceil(3)).map(plain).collect()
}

#[divan::bench(args = SPACES)]
fn union_plain(bencher: Bencher<'_, '_>, space: u64) {
    let lists = lists(500, 500, space);
    bencher.bench_local(|| plain(black_box(&lists)));
}

#[divan::bench(args = SPACES)]
fn union_kernel(bencher: Bencher<'_, '_>, space: u64) {
    let lists = lists(500, 500, space);
    let (mut scratch, mut out) = (Scratch::new(), Vec::new());
    bencher.bench_local(|| {
        out.clear();
        sets::union(black_box(&lists).iter().map(Vec::as_slice), &mut scratch, &mut out);
        out.len()
    });
}

#[divan::bench(args = SPACES)]
fn small_union_plain(bencher: Bencher<'_, '_>, space: u64) {
    let lists = lists(20, 20, space);
    bencher.bench_local(|| plain(black_box(&lists)));
}

#[divan::bench(args = SPACES)]
fn small_union_kernel(bencher: Bencher<'_, '_>, space: u64) {
    let lists = lists(20, 20, space);
    let (mut scratch, mut out) = (Scratch::new(), Vec::new());
    bencher.bench_local(|| {
        out.clear();
        sets::union(black_box(&lists).iter().map(Vec::as_slice), &mut scratch, &mut out);
        out.len()
    });
}

#[divan::bench(args = SPACES)]
fn merge_of_3_plain(bencher: Bencher<'_, '_>, space: u64) {
    let parts = parts(&lists(500, 500, space));
    bencher.bench_local(|| plain(black_box(&parts)));
}

#[divan::bench(args = SPACES)]
fn merge_of_3_kernel(bencher: Bencher<'_, '_>, space: u64) {
    let parts = parts(&lists(500, 500, space));
    let (mut scratch, mut out) = (Scratch::new(), Vec::new());
    bencher.bench_local(|| {
        out.clear();
        sets::merge(&slices(black_box(&parts)), &mut scratch, &mut out);
        out.len()
    });
}

#[divan::bench(args = SPACES)]
fn tally_kernel(bencher: Bencher<'_, '_>, space: u64) {
    let lists = lists(500, 500, space);
    let mut scratch = Scratch::new();
    bencher.bench_local(|| sets::tally(black_box(&lists).iter().map(Vec::as_slice), &mut scratch).0.len());
}

#[divan::bench(args = [500, 2_000, 4_000, 250_000])]
fn intersect_500_with_plain(bencher: Bencher<'_, '_>, len: usize) {
    let (a, b) = (&probes(500, 1_000_000), &lists(1, len, 1_000_000)[0]);
    bencher.bench_local(|| a.iter().filter(|id| b.binary_search(id).is_ok()).count());
}

#[divan::bench(args = [500, 2_000, 4_000, 250_000])]
fn intersect_500_with_kernel(bencher: Bencher<'_, '_>, len: usize) {
    let (a, b) = (&probes(500, 1_000_000), &lists(1, len, 1_000_000)[0]);
    let mut out = Vec::with_capacity(500);
    bencher.bench_local(|| {
        out.clear();
        sets::intersect_into(black_box(a), black_box(b), &mut out);
        out.len()
    });
}

#[divan::bench]
fn packed_contains_500_of_250_000(bencher: Bencher<'_, '_>) {
    let packed = PackedIds::from_sorted(&lists(1, 250_000, 10_000_000)[0]);
    let probes = &probes(500, 10_000_000);
    bencher.bench_local(|| black_box(probes).iter().filter(|&&id| packed.contains(id)).count());
}

#[divan::bench]
fn packed_intersects_none_of_500_in_250_000(bencher: Bencher<'_, '_>) {
    let ids = &lists(1, 250_000, 10_000_000)[0];
    let packed = PackedIds::from_sorted(ids);
    let others = sets::difference(&probes(500, 10_000_000), ids);
    bencher.bench_local(|| packed.intersects(black_box(&others)));
}

#[divan::bench]
fn packed_build_250_000(bencher: Bencher<'_, '_>) {
    let ids = &lists(1, 250_000, 10_000_000)[0];
    bencher.bench_local(|| PackedIds::from_sorted(black_box(ids)).heap_bytes());
}

#[divan::bench]
fn packed_read_250_000(bencher: Bencher<'_, '_>) {
    let packed = PackedIds::from_sorted(&lists(1, 250_000, 10_000_000)[0]);
    bencher.bench_local(|| black_box(&packed).to_vec().len());
}
