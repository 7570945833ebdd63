//! The partition function and the position function, published with test
//! vectors in `docs/formats/partition-function.md`.
//!
//! These are two independent hashes. If the position in a file came from the bits that select the partition, every file
//! would fill only `1 / partition_count` of its index.

use crate::{PartitionCount, PartitionId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// MurmurHash3's 64-bit finalizer: a bijection on `u64`.
pub fn fmix64(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// The inverse of [`fmix64`], so that an id can be *chosen* to be in a given partition (TAO's co-location of an object with
/// another).
pub fn fmix64_inverse(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0x9cb4_b2f8_1293_37db);
    x ^= x >> 33;
    x = x.wrapping_mul(0x4f74_430c_22a5_4005);
    x ^ (x >> 33)
}

/// The partition of a hash: `(hash × count) >> 64`. It is monotone in `hash`, so a coarse partition is a union of fine ones
/// if one count divides the other.
pub fn partition_of_hash(hash: u64, count: PartitionCount) -> PartitionId {
    PartitionId(((u128::from(hash) * u128::from(count.get())) >> 64) as u32)
}

/// The partition of a member or entity id.
pub fn partition_of_id(id: u64, count: PartitionCount) -> PartitionId {
    partition_of_hash(fmix64(id), count)
}

/// The partition of a byte key: xxh3-64 with seed 0.
pub fn partition_of_key(key: &[u8], count: PartitionCount) -> PartitionId {
    partition_of_hash(xxh3_64_with_seed(key, 0), count)
}

/// The sort position of a record in its file: xxh3-64 with seed 1 of the key's bytes (for an id, its eight bytes in
/// little-endian order).
#[inline]
pub fn position_of_key(key: &[u8]) -> u64 {
    match key.try_into() {
        Ok(id) => position_of_id(u64::from_le_bytes(id)),
        Err(_) => xxh3_64_with_seed(key, POSITION_SEED),
    }
}

const POSITION_SEED: u64 = 1;

/// xxh3-64 with seed 1 of eight bytes, the length of most keys. It consists of a dozen operations that the compiler can
/// interleave with those of other keys. Follows `XXH3_len_4to8_64b` of the xxHash specification.
#[inline]
fn position_of_id(id: u64) -> u64 {
    /// The words at bytes 8 and 16 of the default secret, combined by xor, minus the seed spread over both halves.
    const FLIP: u64 = (0x1cad_21f7_2c81_017c ^ 0xdb97_9083_e96d_d4de)
        - (POSITION_SEED ^ ((POSITION_SEED as u32).swap_bytes() as u64) << 32);
    const PRIME: u64 = 0x9fb2_1c65_1e98_df25;
    let keyed = id.rotate_left(32) ^ FLIP;
    let mixed = (keyed ^ keyed.rotate_left(49) ^ keyed.rotate_left(24)).wrapping_mul(PRIME);
    let mixed = (mixed ^ ((mixed >> 35) + 8)).wrapping_mul(PRIME);
    mixed ^ (mixed >> 28)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finalizer_can_be_inverted() {
        for x in [0, 1, 1005, u64::MAX, 0x0123_4567_89ab_cdef] {
            assert_eq!(fmix64_inverse(fmix64(x)), x);
            assert_eq!(fmix64(fmix64_inverse(x)), x);
        }
    }

    #[test]
    fn the_position_of_eight_bytes_is_that_of_the_library() {
        let ids = (0..64).map(|bit| 1 << bit).chain((0..10_000).map(fmix64)).chain([0, u64::MAX]);
        for id in ids {
            let key = id.to_le_bytes();
            assert_eq!(position_of_key(&key), xxh3_64_with_seed(&key, 1), "{id}");
        }
        for bytes in (0..300).filter(|&bytes| bytes != 8) {
            let key = vec![7; bytes];
            assert_eq!(position_of_key(&key), xxh3_64_with_seed(&key, 1), "{bytes} bytes");
        }
    }

    #[test]
    fn coarse_partitions_are_unions_of_fine_ones() {
        let coarse = PartitionCount::new(24).unwrap();
        let fine = PartitionCount::new(1_536).unwrap();
        for id in 0..10_000 {
            assert_eq!(partition_of_id(id, coarse).0, partition_of_id(id, fine).0 / 64);
        }
    }

    #[test]
    fn published_vectors_hold() {
        let text = include_str!("../../../../docs/formats/partition-function.md");
        let mut seen = 0;
        for line in text.lines().filter(|line| line.starts_with("| id ") || line.starts_with("| key ")) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let (what, input, hash, p24, p1536, position) =
                (cells[1], cells[2], cells[3], cells[4], cells[5], cells[6]);
            let parse = |hex: &str| u64::from_str_radix(hex.trim_matches('`'), 16).unwrap();
            let (got_hash, bytes) = if what == "id" {
                let id: u64 = input.parse().unwrap();
                (fmix64(id), id.to_le_bytes().to_vec())
            } else {
                let bytes = input.trim_matches('`').as_bytes().to_vec();
                (xxh3_64_with_seed(&bytes, 0), bytes)
            };
            assert_eq!(got_hash, parse(hash), "{line}");
            assert_eq!(
                partition_of_hash(got_hash, PartitionCount::new(24).unwrap()).0.to_string(),
                p24,
                "{line}"
            );
            assert_eq!(
                partition_of_hash(got_hash, PartitionCount::new(1_536).unwrap()).0.to_string(),
                p1536,
                "{line}"
            );
            assert_eq!(position_of_key(&bytes), parse(position), "{line}");
            seen += 1;
        }
        assert_eq!(seen, 10, "the published table has ten vectors");
    }
}
