//! Refuses requests that would be much larger in memory than they are in frames: an id may take one byte in a frame, but
//! takes eight when it is decoded. So ids are counted before a request is decoded.

use kith_types::ErrorCode;
use kith_wire::{BATCH_KEYS_MAX, frame::Op};
use tonic::Status;

/// Requests up to this size are not checked, because they cannot become large.
const LOOKED_AT_BYTES: usize = 1 << 20;
/// The field number of the ids, in each kind of batch read.
const IDS: u64 = 2;
/// The wire types of protobuf: varint, eight bytes, length-delimited and four bytes.
const VARINT: u64 = 0;
const EIGHT: u64 = 1;
const LENGTH: u64 = 2;
const FOUR: u64 = 5;

/// Checks whether a request may be decoded.
///
/// # Errors
/// `out_of_range`, as decoding the request would return.
pub(super) fn check(op: Op, body: &[u8]) -> Result<(), Status> {
    if body.len() <= LOOKED_AT_BYTES {
        return Ok(());
    }
    let refused = |message: String| {
        let help = "ask in several batches";
        Err(kith_wire::status(ErrorCode::OutOfRange, message, help))
    };
    match op {
        Op::Query | Op::Ping => refused(format!(
            "the length of the request in bytes is {}, but must be at most {LOOKED_AT_BYTES}",
            body.len()
        )),
        Op::MultiGet | Op::MultiGetStream | Op::Compute | Op::ComputeStream | Op::Aggregate => {
            match ids(body) {
                Some(ids) if BATCH_KEYS_MAX < ids => {
                    refused(format!("the number of keys is {ids}, but must be at most {BATCH_KEYS_MAX}"))
                }
                // A request that cannot be parsed is refused when it is decoded.
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// The number of ids in a batch read; `None` if it cannot be parsed.
fn ids(mut body: &[u8]) -> Option<usize> {
    let mut ids = 0;
    while !body.is_empty() {
        let key = varint(&mut body)?;
        let bytes = match key & 7 {
            VARINT => {
                varint(&mut body)?;
                ids += usize::from(key >> 3 == IDS);
                continue;
            }
            LENGTH => usize::try_from(varint(&mut body)?).ok()?,
            EIGHT => 8,
            FOUR => 4,
            _ => return None,
        };
        let (field, rest) = body.split_at_checked(bytes)?;
        if key == IDS << 3 | LENGTH {
            ids += field.iter().filter(|byte| **byte < 0x80).count();
        }
        body = rest;
    }
    Some(ids)
}

/// Takes a varint of protobuf from the start of `bytes`.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_wire::{Message, v1};

    fn read(ids: Vec<u64>, byte_keys: Vec<u8>) -> Vec<u8> {
        let store = "people".to_owned();
        v1::MultiGetRequest { store, ids, byte_keys: byte_keys.into(), ..Default::default() }.encode_to_vec()
    }

    #[test]
    fn ids_are_counted_and_keys_of_bytes_are_not() {
        assert_eq!(ids(&read(vec![1, 300, u64::MAX], vec![1; 100])), Some(3));
        let not_packed = [&read(vec![7], vec![])[..], &[16, 1, 16, 200, 1]].concat();
        assert_eq!(ids(&not_packed), Some(3));
        assert_eq!(ids(&[0x12, 5, 1]), None);
        let codes = |body: Vec<u8>| check(Op::MultiGet, &body).map_err(|status| status.code());
        assert_eq!(codes(read(vec![1; BATCH_KEYS_MAX], vec![])), Ok(()));
        assert_eq!(codes(read(vec![1; BATCH_KEYS_MAX + 100_000], vec![])), Err(tonic::Code::InvalidArgument));
        assert_eq!(codes(read(vec![], vec![1; 2 * LOOKED_AT_BYTES])), Ok(()));
        assert!(
            check(Op::Query, &[0; LOOKED_AT_BYTES]).is_ok()
                && check(Op::Query, &[0; LOOKED_AT_BYTES + 1]).is_err()
        );
    }
}
