//! Sorting ids that span too much for a bitmap: least-significant-digit radix,
//! as many passes as the span of the ids needs.

/// Bits a pass sorts by: 2,048 counters stay in L1.
const DIGIT_BITS: u32 = 11;

/// Beyond this many passes the standard library's sort is faster; see `benches/sets.rs`.
const PASSES_MAX: u32 = 4;

/// Below this many ids, counting digits costs more than comparing ids.
const RADIX_MIN: usize = 256;

/// Sorts `ids` and drops repeats. `spare` is scratch.
pub fn sort_distinct(ids: &mut Vec<u64>, spare: &mut Vec<u64>) {
    sort(ids, spare);
    ids.dedup();
}

/// Sorts `ids`, keeping repeats.
pub(super) fn sort(ids: &mut Vec<u64>, spare: &mut Vec<u64>) {
    let (Some(&least), Some(&greatest)) = (ids.iter().min(), ids.iter().max()) else { return };
    let passes = (64 - (greatest - least).leading_zeros()).div_ceil(DIGIT_BITS);
    if ids.len() < RADIX_MIN || PASSES_MAX < passes {
        ids.sort_unstable();
        return;
    }
    spare.clear();
    spare.resize(ids.len(), 0);
    for pass in 0..passes {
        scatter(ids, spare, least, pass * DIGIT_BITS);
        std::mem::swap(ids, spare);
    }
}

/// One stable pass by the digit of `id - least` at `shift`.
fn scatter(from: &[u64], to: &mut [u64], least: u64, shift: u32) {
    const BUCKETS: usize = 1 << DIGIT_BITS;
    let digit = |id: u64| ((id - least) >> shift) as usize % BUCKETS;
    let mut starts = [0u32; BUCKETS];
    for &id in from {
        starts[digit(id)] += 1;
    }
    let mut next = 0;
    for start in &mut starts {
        next += std::mem::replace(start, next);
    }
    for &id in from {
        let place = &mut starts[digit(id)];
        to[*place as usize] = id;
        *place += 1;
    }
}
