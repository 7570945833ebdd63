//! The encoding of sorted id lists in chunk sets, on the wire and in the network cache: the first id, then the gaps, each
//! as an unsigned LEB128 varint. Drawn in `docs/formats/sorted-ids.md`.
//!
//! A gap is never zero (ids are distinct), so `0` after the first id is refused.

use thiserror::Error;

/// The reason why bytes are not a varint or a list of ids.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end inside a varint or before the stated count.
    #[error("sorted ids end early")]
    Truncated,
    /// A varint or a sum of gaps exceeds 64 bits.
    #[error("sorted ids overflow 64 bits")]
    Overflow,
    /// A gap of zero: the ids are not strictly ascending.
    #[error("sorted ids are not strictly ascending")]
    NotAscending,
}

/// The greatest size of a varint in bytes.
pub const VARINT_BYTES_MAX: usize = 10;

/// Appends `value` as LEB128.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes one LEB128 value off the front of `bytes`.
///
/// # Errors
/// [`DecodeError::Truncated`] or [`DecodeError::Overflow`] if the bytes are not a varint of 64 bits.
#[inline]
pub fn take_varint(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    let all = *bytes;
    let Some(&first) = all.first() else { return Err(DecodeError::Truncated) };
    if first < 0x80 {
        *bytes = &all[1..];
        return Ok(u64::from(first));
    }
    if let Some(&second) = all.get(1)
        && second < 0x80
    {
        *bytes = &all[2..];
        return Ok(u64::from(first & 0x7f) | u64::from(second) << 7);
    }
    take_long_varint(bytes)
}

fn take_long_varint(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        let part = u64::from(byte & 0x7f);
        if index == VARINT_BYTES_MAX - 1 && byte > 1 {
            return Err(DecodeError::Overflow);
        }
        value |= part << (7 * index);
        if byte < 0x80 {
            *bytes = &bytes[index + 1..];
            return Ok(value);
        }
    }
    Err(if bytes.len() < VARINT_BYTES_MAX { DecodeError::Truncated } else { DecodeError::Overflow })
}

/// Appends `ids` (sorted, distinct) without their count.
///
/// # Panics
/// In debug builds, if `ids` is not strictly ascending.
pub fn encode(ids: &[u64], out: &mut Vec<u8>) {
    debug_assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "ids must be strictly ascending");
    let mut previous = 0;
    for &id in ids {
        put_varint(out, id - previous);
        previous = id;
    }
}

/// Takes `count` ids off the front of `bytes` and appends them to `out`, sorted and distinct.
/// One pass, `O(count)`; reserves at most one slot per byte of input.
///
/// # Errors
/// [`DecodeError`] if the bytes are not `count` ids; `out` then contains the ids that were read so far.
pub fn decode(bytes: &mut &[u8], count: usize, out: &mut Vec<u64>) -> Result<(), DecodeError> {
    if count == 0 {
        return Ok(());
    }
    out.reserve(count.min(bytes.len()));
    let mut id = take_varint(bytes)?;
    out.push(id);
    for _ in 1..count {
        let gap = take_varint(bytes)?;
        if gap == 0 {
            return Err(DecodeError::NotAscending);
        }
        id = id.checked_add(gap).ok_or(DecodeError::Overflow)?;
        out.push(id);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(ids: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(ids, &mut bytes);
        let (mut rest, mut back) = (bytes.as_slice(), Vec::new());
        decode(&mut rest, ids.len(), &mut back).unwrap();
        assert_eq!((back.as_slice(), rest.len()), (ids, 0));
        bytes
    }

    #[test]
    fn lists_come_back_as_they_went_in() {
        round_trip(&[]);
        round_trip(&[0]);
        round_trip(&[0, 1, u64::MAX]);
        assert_eq!(round_trip(&[5, 133, 35_184_372_090_192]).len(), 1 + 2 + 7);
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = round_trip(&[3, 300, 70_000, u64::MAX]);
        for end in 0..bytes.len() {
            let got = decode(&mut &bytes[..end], 4, &mut Vec::new());
            assert_eq!(got, Err(DecodeError::Truncated), "cut at {end}");
        }
    }

    #[test]
    fn zero_gaps_and_overflow_are_errors() {
        assert_eq!(decode(&mut &[7u8, 0][..], 2, &mut Vec::new()), Err(DecodeError::NotAscending));
        let mut bytes = Vec::new();
        put_varint(&mut bytes, u64::MAX);
        put_varint(&mut bytes, 1);
        assert_eq!(decode(&mut bytes.as_slice(), 2, &mut Vec::new()), Err(DecodeError::Overflow));
        assert_eq!(take_varint(&mut &[0xffu8; 11][..]), Err(DecodeError::Overflow));
        let mut eleven_bits_over = [0xffu8; 10];
        eleven_bits_over[9] = 2;
        assert_eq!(take_varint(&mut &eleven_bits_over[..]), Err(DecodeError::Overflow));
    }
}
