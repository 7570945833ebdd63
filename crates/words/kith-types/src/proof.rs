//! The checksum that travels with a value, so that the caller can check the value.

use crate::{KeyRef, crc32c_append};

/// The checksum of one record over the lengths, the key and the value, as in the record's file
/// (`docs/formats/chunk-set.md`).
///
/// It proves that the value is the one that was written for this key. For a value that was stored in another form, the
/// checksum has the seed 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueProof {
    /// The initial value of the checksum.
    pub seed: u32,
    /// The CRC-32C.
    pub crc32c: u32,
}

/// The greatest size of two lengths and an id.
const HEAD_BYTES_MAX: usize = 2 * VARINT_BYTES_MAX + 8;
/// The greatest size of a length of 64 bits.
const VARINT_BYTES_MAX: usize = 10;

impl ValueProof {
    /// Computes a proof for a value that was checked here.
    pub fn of(key: KeyRef<'_>, value: &[u8]) -> Self {
        Self { seed: 0, crc32c: checksum(0, key, value) }
    }

    /// Whether `value` is the value of `key`. `O(value)`.
    #[inline]
    pub fn holds(self, key: KeyRef<'_>, value: &[u8]) -> bool {
        checksum(self.seed, key, value) == self.crc32c
    }
}

fn checksum(seed: u32, key: KeyRef<'_>, value: &[u8]) -> u32 {
    let mut head = [0; HEAD_BYTES_MAX];
    let mut length = 0;
    if let KeyRef::Bytes(key) = key {
        put_varint(&mut head, &mut length, key.len());
    }
    put_varint(&mut head, &mut length, value.len());
    let key = match key {
        KeyRef::Id(id) => {
            head[length..length + 8].copy_from_slice(&id.to_le_bytes());
            length += 8;
            &[]
        }
        KeyRef::Bytes(key) => key,
    };
    let mut crc = crc32c_append(seed, &head[..length]);
    if !key.is_empty() {
        crc = crc32c_append(crc, key);
    }
    crc32c_append(crc, value)
}

/// Encodes LEB128, as in `delta`, on the stack.
fn put_varint(head: &mut [u8; HEAD_BYTES_MAX], length: &mut usize, mut value: usize) {
    while 0x80 <= value {
        head[*length] = value as u8 | 0x80;
        *length += 1;
        value >>= 7;
    }
    head[*length] = value as u8;
    *length += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crc32c;

    #[test]
    fn a_proof_holds_for_its_key_and_value_alone() {
        let value = vec![7; 300];
        for key in [KeyRef::Id(5), KeyRef::Bytes(b"five"), KeyRef::Bytes(b"")] {
            let proof = ValueProof::of(key, &value);
            assert!(proof.holds(key, &value));
            for at in 0..value.len() {
                let mut other = value.clone();
                other[at] ^= 1;
                assert!(!proof.holds(key, &other), "byte {at}");
            }
            assert!(!proof.holds(KeyRef::Id(6), &value) && !proof.holds(KeyRef::Bytes(b"six"), &value));
            assert!(!proof.holds(key, &value[1..]) && !proof.holds(key, b""));
            assert!(!ValueProof { seed: 1, ..proof }.holds(key, &value), "a record in another place");
        }
    }

    #[test]
    fn the_drawn_examples_hold() {
        let of = |key, value: &[u8]| ValueProof::of(key, value).crc32c;
        assert_eq!(of(KeyRef::Bytes(b"k"), b"ab"), crc32c(b"\x01\x02kab"));
        assert_eq!(of(KeyRef::Id(5), b"ab"), crc32c(b"\x02\x05\0\0\0\0\0\0\0ab"));
        let long = vec![1; 300];
        let covered = [&b"\xac\x02"[..], &9u64.to_le_bytes(), &long].concat();
        assert_eq!(of(KeyRef::Id(9), &long), crc32c(&covered));
    }
}
