//! Records of batch reads, and groups of aggregations, on the wire.

use super::ConvertError;
use bytes::Bytes;
use kith_operators::{Groups, Record, RecordError, Records, RecordsOver};
use kith_schema::compute::ComputeFault;
use kith_wire::{
    body::{
        BodyError, RecordBody, decode_keys, decode_records, encode_keys, encode_records, encode_records_head,
    },
    v1,
};

pub(super) fn body_error(field: &'static str) -> impl FnOnce(BodyError) -> ConvertError {
    move |source| ConvertError::Body { field, source }
}

/// Encodes records as a packed body; values are copied once.
pub fn records_to_wire(records: &Records) -> Bytes {
    let values = records.iter().filter_map(|record| match record {
        Record::Found(value) => Some(value),
        _ => None,
    });
    encode_records(&bodies(records), values, records.value_bytes() as usize)
}

/// Encodes the part before the values, and returns the values where they lie; `None` if they do not lie end to end.
pub fn records_in_place(records: &Records) -> Option<(Vec<u8>, Bytes)> {
    let values = records.end_to_end()?;
    Some((encode_records_head(&bodies(records), 0), values))
}

fn bodies(records: &Records) -> Vec<RecordBody> {
    let body = |(index, record): (usize, Record<'_>)| match record {
        Record::Found(value) => match records.proof(index) {
            Some(proof) => RecordBody::FoundWith(value.len(), proof),
            None => RecordBody::Found(value.len()),
        },
        Record::Absent => RecordBody::Absent,
        Record::Error(RecordError::Damaged) => RecordBody::Damaged,
        Record::Error(RecordError::Unsuitable) => RecordBody::Unsuitable,
        Record::Error(RecordError::Disagreeing) => RecordBody::Disagreeing,
        Record::Error(RecordError::Dimensions(ComputeFault { operator, want, got })) => {
            RecordBody::Dimensions { operator, want, got }
        }
        Record::Unanswered => RecordBody::Unanswered,
        Record::Unsent => RecordBody::Unsent,
    };
    records.iter().enumerate().map(body).collect()
}

/// Decodes records over a packed body; values are not copied.
///
/// # Errors
/// If the body is malformed, or has more than `records_max` records.
pub fn records_from_wire(body: &Bytes, records_max: usize) -> Result<Records, BodyError> {
    let (entries, values) = decode_records(body, records_max)?;
    let mut records = RecordsOver::new(entries.len(), values);
    for entry in entries {
        match entry {
            RecordBody::Found(length) if !records.found(length) => return Err(BodyError::Short),
            RecordBody::FoundWith(length, proof) if !records.found_with(length, Some(proof)) => {
                return Err(BodyError::Short);
            }
            RecordBody::Found(_) | RecordBody::FoundWith(..) => {}
            RecordBody::Absent => records.absent(),
            RecordBody::Damaged => records.error(RecordError::Damaged),
            RecordBody::Unsuitable => records.error(RecordError::Unsuitable),
            RecordBody::Disagreeing => records.error(RecordError::Disagreeing),
            RecordBody::Dimensions { operator, want, got } => {
                records.error(RecordError::Dimensions(ComputeFault { operator, want, got }));
            }
            RecordBody::Unanswered => records.unanswered(),
            RecordBody::Unsent => records.unsent(),
        }
    }
    records.finish().ok_or(BodyError::Trailing(1))
}

/// Encodes groups.
pub fn groups_to_wire(groups: &Groups) -> v1::Groups {
    v1::Groups {
        records: records_to_wire(&groups.records),
        values: encode_keys(&groups.values),
        counts: groups.counts.clone(),
        truncated: groups.truncated,
    }
}

/// Decodes groups. Whether they belong to a plan is checked when they are merged.
///
/// # Errors
/// If a body is malformed.
pub fn groups_from_wire(wire: v1::Groups, keys: usize) -> Result<Groups, ConvertError> {
    Ok(Groups {
        records: records_from_wire(&wire.records, keys).map_err(body_error("value.groups.records"))?,
        values: decode_keys(&wire.values).map_err(body_error("value.groups.values"))?,
        counts: wire.counts,
        truncated: wire.truncated,
    })
}
