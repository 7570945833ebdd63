//! One block of postings.
//!
//! ```text
//! runs, u16 | run | run | … | zeros
//! run: gap to the neighbour before × 2 + (1 if several keys), varint
//!      number of keys − 2, varint, if several
//!      ordinal of the first key, varint | gaps to the next − 1, varints
//! ```
//!
//! The sparse index holds the neighbour of the first run, whose gap is 0. The keys of one neighbour may continue in the
//! next block.

use kith_types::delta::{DecodeError, put_varint, take_varint};

/// The size of the run count in bytes.
pub(super) const HEAD_BYTES: usize = 2;

/// The greatest size of a run's number of keys, which all lie in one block.
pub(super) const COUNT_BYTES_MAX: usize = 2;

/// The greatest gap that leaves room for the flag for several keys.
pub(super) const GAP_MAX: u64 = u64::MAX >> 1;

/// Appends a run. `ordinals` must be ascending and not empty.
pub(super) fn put_run(out: &mut Vec<u8>, gap: u64, ordinals: &[u32]) {
    put_varint(out, gap << 1 | u64::from(ordinals.len() > 1));
    if ordinals.len() > 1 {
        put_varint(out, ordinals.len() as u64 - 2);
    }
    put_varint(out, u64::from(ordinals[0]));
    for pair in ordinals.windows(2) {
        put_varint(out, u64::from(pair[1] - pair[0]) - 1);
    }
}

/// The size of an ordinal after `previous`, or as the first of a run.
pub(super) fn ordinal_bytes(previous: Option<u32>, ordinal: u32) -> usize {
    varint_bytes(u64::from(previous.map_or(ordinal, |previous| ordinal - previous - 1)))
}

/// The size of a gap in bytes.
pub(super) fn gap_bytes(gap: u64) -> usize {
    varint_bytes(gap << 1)
}

fn varint_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends the block's ordinals of `neighbour` to `out`, if there are any. The block's first neighbour is `first`.
///
/// # Errors
/// If the bytes are not a block. `out` may then contain wrong ordinals.
pub(super) fn find(block: &[u8], first: u64, neighbour: u64, out: &mut Vec<u32>) -> Result<(), DecodeError> {
    let (head, mut rest) = block.split_first_chunk::<HEAD_BYTES>().ok_or(DecodeError::Truncated)?;
    let mut here = first;
    for _ in 0..u16::from_le_bytes(*head) {
        let code = take_varint(&mut rest)?;
        here = here.checked_add(code >> 1).ok_or(DecodeError::Overflow)?;
        let more = if code & 1 == 1 { take_varint(&mut rest)?.saturating_add(1) } else { 0 };
        if here > neighbour {
            break;
        }
        if here < neighbour {
            for _ in 0..=more {
                take_varint(&mut rest)?;
            }
            continue;
        }
        let mut ordinal = narrow(take_varint(&mut rest)?)?;
        out.push(ordinal);
        for _ in 0..more {
            let gap = narrow(take_varint(&mut rest)?)?;
            ordinal =
                ordinal.checked_add(gap).and_then(|sum| sum.checked_add(1)).ok_or(DecodeError::Overflow)?;
            out.push(ordinal);
        }
        break;
    }
    Ok(())
}

fn narrow(value: u64) -> Result<u32, DecodeError> {
    u32::try_from(value).map_err(|_| DecodeError::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_run_of_one_small_key_takes_two_bytes() {
        let mut bytes = Vec::new();
        put_run(&mut bytes, 63, &[127]);
        assert_eq!(bytes, [126, 127]);
    }

    proptest! {
        #[test]
        fn hostile_blocks_end_in_bounded_work(bytes in prop::collection::vec(any::<u8>(), 0..1_024), first: u64, ahead in 0u64..1_000) {
            let mut out = Vec::new();
            let _ = find(&bytes, first, first.saturating_add(ahead), &mut out);
            prop_assert!(out.len() <= bytes.len());
        }

        #[test]
        fn the_length_of_an_ordinal_is_predicted(previous: Option<u32>, gap in 0u32..=u32::MAX) {
            let Some(ordinal) = previous.unwrap_or(0).checked_add(gap) else { return Ok(()) };
            if previous == Some(ordinal) { return Ok(()) }
            let mut one = Vec::new();
            match previous {
                Some(previous) => put_varint(&mut one, u64::from(ordinal - previous - 1)),
                None => put_varint(&mut one, u64::from(ordinal)),
            }
            prop_assert_eq!(one.len(), ordinal_bytes(previous, ordinal));
        }
    }
}
