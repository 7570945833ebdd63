//! The layout of a record: null bits, then fixed slots in the order of the fields, then the variable part.
//!
//! The slot of a field of variable size holds the offset at which its value *ends* in the variable part. The value begins
//! where the previous variable field ends. So any field is found with at most two reads, whatever the others contain.

use super::error::ValueFault;
use crate::field::Field;
use crate::{FieldType, VALUE_BYTES_MAX};

/// The size of the slot of a field of variable size: its end offset, u32 little-endian.
const END_BYTES: usize = 4;

/// The places of a schema's fields.
pub(crate) struct Layout {
    slots: Vec<Slot>,
    null_bits: usize,
    fixed_bytes: usize,
    /// The place of the last end offset, if there is a variable part.
    last_end: Option<usize>,
}

struct Slot {
    at: usize,
    /// The index of the field's null bit, if it is nullable.
    null_bit: Option<usize>,
    placement: FieldPlacement,
}

enum FieldPlacement {
    /// In the slot itself, with this many bytes.
    Fixed(usize),
    /// In the variable part, from the end offset at that place (or from 0) to the end offset in this slot.
    Variable { previous_end: Option<usize> },
}

/// The encoded value of a field that is copied into a record.
pub(crate) enum Piece<'a> {
    /// A slice of another record or buffer.
    Slice(&'a [u8]),
    /// A value of eight bytes that was widened or computed.
    Wide([u8; 8]),
    /// A computed value.
    Owned(Vec<u8>),
}

impl Piece<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Piece::Slice(bytes) => bytes,
            Piece::Wide(bytes) => bytes,
            Piece::Owned(bytes) => bytes,
        }
    }
}

impl Layout {
    pub(crate) fn new(fields: &[Field]) -> Self {
        let null_bits = fields.iter().filter(|field| field.is_nullable()).count();
        let mut at = null_bits.div_ceil(8);
        let (mut next_bit, mut last_end) = (0, None);
        let mut slots = Vec::with_capacity(fields.len());
        for field in fields {
            let null_bit = field.is_nullable().then(|| {
                next_bit += 1;
                next_bit - 1
            });
            let (placement, bytes) = match FieldType::fixed_width(field.field_type()) {
                Some(width) => (FieldPlacement::Fixed(width), width),
                None => (FieldPlacement::Variable { previous_end: last_end.replace(at) }, END_BYTES),
            };
            slots.push(Slot { at, null_bit, placement });
            at += bytes;
        }
        Layout { slots, null_bits, fixed_bytes: at, last_end }
    }

    /// The number of bytes before the variable part.
    pub(crate) fn fixed_bytes(&self) -> usize {
        self.fixed_bytes
    }

    /// Checks that `record` has the length that its last end offset states, and no null bits that belong to no field.
    pub(crate) fn check(&self, record: &[u8]) -> Result<(), &'static str> {
        if record.len() < self.fixed_bytes {
            return Err("it is shorter than its fixed part");
        }
        let variable = self.last_end.map_or(0, |at| end_at(record, at));
        if record.len() - self.fixed_bytes != variable {
            return Err("its length is not the one it states");
        }
        let last = self.null_bits.div_ceil(8).checked_sub(1);
        let padding = last.map_or(0, |last| u16::from(record[last]) >> (self.null_bits - 8 * last));
        if padding != 0 { Err("it has null bits of no field") } else { Ok(()) }
    }

    /// The encoded value of a field of a record that passed [`Layout::check`]; `None` if it is null.
    #[inline]
    pub(crate) fn value<'a>(&self, index: usize, record: &'a [u8]) -> Result<Option<&'a [u8]>, &'static str> {
        const SHORT: &str = "the record ends before it";
        let slot = &self.slots[index];
        if let Some(bit) = slot.null_bit
            && record.get(bit / 8).ok_or(SHORT)? >> (bit % 8) & 1 == 1
        {
            return Ok(None);
        }
        let bytes = match slot.placement {
            FieldPlacement::Fixed(width) => record.get(slot.at..slot.at + width).ok_or(SHORT)?,
            FieldPlacement::Variable { previous_end } => {
                let variable = record.get(self.fixed_bytes..).ok_or(SHORT)?;
                let start = previous_end.map_or(0, |at| end_at(record, at));
                variable
                    .get(start..end_at(record, slot.at))
                    .ok_or("its ends are not in the record or not in order")?
            }
        };
        Ok(Some(bytes))
    }
}

/// The end offset stored at `at`, which lies in the fixed part.
#[inline]
fn end_at(record: &[u8], at: usize) -> usize {
    let bytes: [u8; END_BYTES] = record[at..at + END_BYTES].try_into().expect("four bytes were taken");
    u32::from_le_bytes(bytes) as usize
}

/// Appends a record to `out`. `value` returns the encoded value of each field in turn; `None` for null (of a nullable
/// field).
pub(crate) fn assemble<'a, E: From<ValueFault>>(
    layout: &Layout,
    out: &mut Vec<u8>,
    mut value: impl FnMut(usize) -> Result<Option<Piece<'a>>, E>,
) -> Result<(), E> {
    let start = out.len();
    out.resize(start + layout.fixed_bytes, 0);
    for (index, slot) in layout.slots.iter().enumerate() {
        let piece = value(index)?;
        match (&piece, slot.null_bit) {
            (None, Some(bit)) => out[start + bit / 8] |= 1 << (bit % 8),
            (None, None) => unreachable!("only a nullable field is given no value"),
            (Some(_), _) => {}
        }
        let bytes = piece.as_ref().map_or(&[][..], Piece::bytes);
        match slot.placement {
            FieldPlacement::Fixed(width) if piece.is_some() => {
                out[start + slot.at..start + slot.at + width].copy_from_slice(bytes);
            }
            FieldPlacement::Fixed(_) => {}
            FieldPlacement::Variable { .. } => {
                let record_bytes = out.len() - start + bytes.len();
                if VALUE_BYTES_MAX < record_bytes {
                    return Err(ValueFault::TooLarge.into());
                }
                out.extend_from_slice(bytes);
                let end = (record_bytes - layout.fixed_bytes) as u32;
                out[start + slot.at..start + slot.at + END_BYTES].copy_from_slice(&end.to_le_bytes());
            }
        }
    }
    Ok(())
}
