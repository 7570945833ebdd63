//! The byte keys of a batch read.

use super::{BodyError, end, take_count};
use bytes::Bytes;
use kith_types::{ByteKeys, delta};

/// Encodes the count, the length of each key, then all keys end to end.
pub fn encode_keys(keys: &ByteKeys) -> Bytes {
    let mut out = Vec::with_capacity(delta::VARINT_BYTES_MAX + keys.len() * 2 + keys.byte_count());
    delta::put_varint(&mut out, keys.len() as u64);
    for key in keys.iter() {
        delta::put_varint(&mut out, key.len() as u64);
    }
    for key in keys.iter() {
        out.extend_from_slice(key);
    }
    out.into()
}

/// Decodes a body from [`encode_keys`].
///
/// # Errors
/// [`BodyError`] if the body is malformed. The function allocates at most a few bytes per byte of body.
pub fn decode_keys(mut body: &[u8]) -> Result<ByteKeys, BodyError> {
    let count = take_count(&mut body)?;
    // The length of each key takes at least one byte.
    if body.len() < count {
        return Err(BodyError::Short);
    }
    let lengths = (0..count).map(|_| take_count(&mut body)).collect::<Result<Vec<_>, _>>()?;
    let mut keys = ByteKeys::with_capacity(count, body.len().min(ByteKeys::BYTES_MAX));
    for length in lengths {
        let (key, rest) = body.split_at_checked(length).ok_or(BodyError::Short)?;
        keys.push(key);
        body = rest;
    }
    end(body)?;
    Ok(keys)
}

/// Returns the number of keys that a body from [`encode_keys`] announces, but at most its length in bytes. The keys are
/// not checked.
pub fn key_count(mut body: &[u8]) -> usize {
    let bytes = body.len();
    take_count(&mut body).unwrap_or(0).min(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_round_trip(keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..50)) {
            let batch: ByteKeys = keys.iter().collect();
            prop_assert_eq!(key_count(&encode_keys(&batch)), batch.len());
            prop_assert_eq!(decode_keys(&encode_keys(&batch)).unwrap(), batch);
        }

        #[test]
        fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_keys(&bytes);
            prop_assert!(key_count(&bytes) <= bytes.len());
        }
    }

    #[test]
    fn the_drawn_example_holds_and_its_parts_are_refused() {
        let keys: ByteKeys = ["ab", "", "c"].iter().collect();
        let body = encode_keys(&keys);
        assert_eq!(body, [0x03, 0x02, 0x00, 0x01, b'a', b'b', b'c'].as_slice());
        assert_eq!(decode_keys(&body[..6]), Err(BodyError::Short));
        let longer = [&body[..], b"!"].concat();
        assert_eq!(decode_keys(&longer), Err(BodyError::Trailing(1)));
    }
}
