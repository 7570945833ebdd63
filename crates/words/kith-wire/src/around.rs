//! Encodes a long reply without copying its longest part. The functions here return the bytes before and after the
//! packed values, so that the values can be sent to the socket from where they lie.

use crate::v1;
use bytes::Bytes;
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint},
};

/// The field numbers in `kith.proto` of `EvaluateReply.value` and of `Value.records`.
const VALUE: u32 = 1;
const RECORDS: u32 = 6;
/// The field number of `EvaluateReply.slices`.
const SLICES: u32 = 5;
/// The field numbers of `records` in `MultiGetReply` and `ComputeReply`, and in `MultiGetPiece`, where `positions`
/// comes first.
const RECORDS_OF_REPLY: u32 = 1;
const RECORDS_OF_PIECE: u32 = 2;
/// The prefix has at most two field keys and two lengths.
const PREFIX_BYTES_MAX: usize = 2 * (1 + 10);

/// Returns the bytes before and after `value_bytes` bytes of values in an `EvaluateReply` whose value is a body of
/// records. The body is `head` (from [`crate::body::encode_records_head`]) followed by the values. `rest` is the reply
/// without its value.
pub fn around_records(rest: &v1::EvaluateReply, head: &[u8], value_bytes: usize) -> (Bytes, Bytes) {
    debug_assert!(rest.value.is_none(), "the value goes between the two parts");
    let body = (head.len() + value_bytes) as u64;
    let mut before = Vec::with_capacity(PREFIX_BYTES_MAX + head.len());
    encode_key(VALUE, WireType::LengthDelimited, &mut before);
    // The field key of `records` takes one byte.
    encode_varint(1 + encoded_len_varint(body) as u64 + body, &mut before);
    encode_key(RECORDS, WireType::LengthDelimited, &mut before);
    encode_varint(body, &mut before);
    before.extend_from_slice(head);
    (before.into(), rest.encode_to_vec().into())
}

/// As [`around_records`], but the records become the next of the reply's `slices`. To encode a reply of several slices,
/// concatenate the output of this function for each slice, with its values in between.
pub fn around_slice(rest: &v1::EvaluateReply, head: &[u8], value_bytes: usize) -> (Bytes, Bytes) {
    debug_assert!(rest.value.is_none() && rest.slices.is_empty(), "the slices go between the two parts");
    let mut before = Vec::with_capacity(PREFIX_BYTES_MAX + head.len());
    encode_key(SLICES, WireType::LengthDelimited, &mut before);
    encode_varint((head.len() + value_bytes) as u64, &mut before);
    before.extend_from_slice(head);
    (before.into(), rest.encode_to_vec().into())
}

/// Messages that consist mostly of packed records.
pub trait InSlices: Message {
    /// Encodes the message as three slices that follow each other. The second slice is the records, which are not
    /// copied.
    fn into_slices(self) -> [Bytes; 3];
}

impl InSlices for v1::MultiGetReply {
    fn into_slices(mut self) -> [Bytes; 3] {
        let records = std::mem::take(&mut self.records);
        slices(Vec::new(), RECORDS_OF_REPLY, records, &self)
    }
}

impl InSlices for v1::ComputeReply {
    fn into_slices(mut self) -> [Bytes; 3] {
        let records = std::mem::take(&mut self.records);
        slices(Vec::new(), RECORDS_OF_REPLY, records, &self)
    }
}

impl InSlices for v1::MultiGetPiece {
    fn into_slices(mut self) -> [Bytes; 3] {
        let records = std::mem::take(&mut self.records);
        let positions = Self { positions: std::mem::take(&mut self.positions), ..Self::default() };
        slices(positions.encode_to_vec(), RECORDS_OF_PIECE, records, &self)
    }
}

/// Returns `before`, then `field` with these bytes, then the rest of the message.
fn slices(mut before: Vec<u8>, field: u32, bytes: Bytes, rest: &impl Message) -> [Bytes; 3] {
    // An encoder omits empty fields.
    if !bytes.is_empty() {
        encode_key(field, WireType::LengthDelimited, &mut before);
        encode_varint(bytes.len() as u64, &mut before);
    }
    [before.into(), bytes, rest.encode_to_vec().into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::{RecordBody, encode_records, encode_records_head};

    fn check(message: &(impl InSlices + Clone + std::fmt::Debug)) {
        assert!(message.clone().into_slices().concat() == message.encode_to_vec(), "{message:?}");
    }

    #[test]
    fn messages_in_slices_are_those_in_one_place() {
        let served = v1::Served::of_version("pages".to_owned(), 7);
        for records in [Bytes::new(), Bytes::from_static(b"v"), vec![b'v'; 70_000].into()] {
            check(&v1::MultiGetReply { records: records.clone(), ..Default::default() });
            let (missing_partitions, profile) = (vec![1, 2], Some(v1::Profile::default()));
            check(&v1::MultiGetReply {
                records: records.clone(),
                complete: true,
                missing_partitions: missing_partitions.clone(),
                profile: profile.clone(),
                served: vec![served.clone()],
                schema: "7".repeat(64),
            });
            check(&v1::ComputeReply {
                records: records.clone(),
                best: vec![3, 1],
                complete: true,
                missing_partitions,
                profile,
                served: vec![served.clone()],
                result_schema: "{}".to_owned(),
            });
            for positions in [Bytes::new(), vec![b'p'; 300].into()] {
                check(&v1::MultiGetPiece {
                    positions,
                    records: records.clone(),
                    served: Some(served.clone()),
                    schema: "7".repeat(64),
                    footer: Some(v1::StreamFooter { found: 7, ..Default::default() }),
                    result_schema: String::new(),
                });
            }
        }
    }

    #[test]
    fn the_parts_of_a_reply_are_the_reply() {
        let rest = v1::EvaluateReply {
            value: None,
            load: Some(v1::NodeLoad { requests_per_second: 7.5, clients: 3, in_flight: 1, leaving: false }),
            served: vec![v1::Served::of_version("pages".to_owned(), 7)],
            service_us: 300,
            slices: Vec::new(),
            quota_left: v1::QuotaLeft::QuotaTight.into(),
        };
        let mut whole_in_slices = v1::EvaluateReply::default();
        let mut parts = Vec::new();
        for lengths in [vec![], vec![0], vec![5, 0, 100], vec![70_000; 40]] {
            let entries: Vec<RecordBody> = lengths.iter().map(|&length| RecordBody::Found(length)).collect();
            let values = vec![b'v'; lengths.iter().sum()];
            let head = encode_records_head(&entries, 0);
            let (before, behind) = around_records(&rest, &head, values.len());
            let body = encode_records(&entries, std::iter::once(&values[..]), values.len());
            let value = Some(v1::Value { value: Some(v1::value::Value::Records(body.clone())) });
            let whole = v1::EvaluateReply { value, ..rest.clone() };
            assert!([&before[..], &values, &behind].concat() == whole.encode_to_vec(), "{lengths:?}");
            whole_in_slices.slices.push(body);
            let (before, behind) = around_slice(&v1::EvaluateReply::default(), &head, values.len());
            parts.extend([&before[..], &values, &behind].concat());
        }
        // The last slice may carry the fields of the whole reply after its values.
        parts.extend(rest.encode_to_vec());
        let whole_in_slices = v1::EvaluateReply { slices: whole_in_slices.slices, ..rest };
        assert_eq!(v1::EvaluateReply::decode(&parts[..]), Ok(whole_in_slices));
    }
}
