//! Sorts ids whose span is too large for a bitmap, with a least-significant-digit radix sort that takes as few passes as
//! the span allows.

/// The most bits per pass: 4,096 counters of 4 bytes fit into L1, and their write positions into L2.
const DIGIT_BITS_MAX: u32 = 12;

/// The number of passes above which the standard library's sort is faster; see `benches/sets.rs`.
const PASSES_MAX: u32 = 3;

/// The number of ids below which counting digits costs more than comparing ids.
const RADIX_MIN: usize = 2_048;

/// Sorts `ids` and removes duplicates. `spare` is scratch space.
pub fn sort_distinct(ids: &mut Vec<u64>, spare: &mut Vec<u64>) {
    sort(ids, spare);
    ids.dedup();
}

/// Sorts `ids`, keeping duplicates.
pub(super) fn sort(ids: &mut Vec<u64>, spare: &mut Vec<u64>) {
    if ids.len() < RADIX_MIN {
        ids.sort_unstable();
        return;
    }
    let (Some(&least), Some(&greatest)) = (ids.iter().min(), ids.iter().max()) else { return };
    let bits = u64::BITS - (greatest - least).leading_zeros();
    let passes = bits.div_ceil(DIGIT_BITS_MAX);
    if PASSES_MAX < passes {
        ids.sort_unstable();
        return;
    }
    spare.resize(ids.len(), 0);
    let digit_bits = bits.div_ceil(passes.max(1));
    for pass in 0..passes {
        scatter(ids, spare, least, pass * digit_bits, (1 << digit_bits) - 1);
        std::mem::swap(ids, spare);
    }
}

/// One stable pass by the digit of `id - least` at `shift`.
fn scatter(from: &[u64], to: &mut [u64], least: u64, shift: u32, mask: u64) {
    const BUCKETS: usize = 1 << DIGIT_BITS_MAX;
    let digit = |id: u64| (((id - least) >> shift) & mask) as usize % BUCKETS;
    let mut starts = [0u32; BUCKETS];
    for &id in from {
        starts[digit(id)] += 1;
    }
    let mut next = 0;
    for start in &mut starts {
        next += std::mem::replace(start, next);
    }
    for &id in from {
        let next = &mut starts[digit(id)];
        to[*next as usize] = id;
        *next += 1;
    }
}
