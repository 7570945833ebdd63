//! One line of data: its wanted columns as ids, names and stored values.

use super::columns::store_text;
use super::fault::LineFault;
use super::record::RecordReader;
use crate::rows::field::Field;
use crate::rows::id::parse_id;
use kith_schema::{ColumnKind, ColumnNumber};
use std::borrow::Cow;

/// One line of data: the wanted columns.
pub(super) enum Row<'a> {
    /// A line of delimited text.
    Text { reader: &'a RecordReader, indexes: &'a [usize] },
    /// A row of a file of rows.
    Fields { number: u64, fields: &'a [Field<'a>] },
}

/// A fault in the wanted column with this index.
pub(super) struct ColumnFault(pub(super) usize, pub(super) LineFault);

impl Row<'_> {
    /// Its number in the file, from 1. In text, the number of the line on which it begins.
    pub(super) fn number(&self) -> u64 {
        match self {
            Row::Text { reader, .. } => reader.record_line(),
            Row::Fields { number, .. } => *number,
        }
    }

    /// How many of the wanted columns it has.
    pub(super) fn columns(&self) -> usize {
        match self {
            Row::Text { indexes, .. } => indexes.len(),
            Row::Fields { fields, .. } => fields.len(),
        }
    }

    /// The wanted column with this index as text; `None` if it is not UTF-8.
    pub(super) fn text(&self, column: usize) -> Option<Cow<'_, str>> {
        match self {
            Row::Text { reader, indexes } => {
                let bytes = reader.field(indexes[column]).trim_ascii();
                std::str::from_utf8(bytes).ok().map(Cow::Borrowed)
            }
            Row::Fields { fields, .. } => Some(fields[column].text()),
        }
    }

    /// The wanted column with this index as an id.
    #[inline]
    pub(super) fn id(&self, column: usize) -> Result<u64, ColumnFault> {
        let id = match self {
            Row::Text { reader, indexes } => parse_id(reader.field(indexes[column]).trim_ascii()),
            Row::Fields { fields, .. } => match &fields[column] {
                Field::Unsigned(id) => Ok(*id),
                Field::Float(number) => return Err(ColumnFault(column, float_id(*number))),
                field => parse_id(field.text().as_bytes().trim_ascii()),
            },
        };
        id.map_err(|fault| ColumnFault(column, fault.into()))
    }

    /// Whether the wanted column with this index is a plain number, which says nothing about its unit.
    pub(super) fn is_number(&self, column: usize) -> bool {
        match self {
            Row::Fields { fields, .. } if matches!(fields[column], Field::Time(_)) => false,
            _ => self.text(column).is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit())),
        }
    }

    /// The wanted column with this index as the stored form of a value of `kind`.
    #[inline]
    pub(super) fn value(&self, column: usize, kind: ColumnKind) -> Result<u64, ColumnFault> {
        let value = match self {
            Row::Text { .. } => self.text(column).and_then(|text| store_text(kind, &text)),
            Row::Fields { fields, .. } => stored(&fields[column], kind),
        };
        value.ok_or(ColumnFault(column, LineFault::ColumnValue(kind)))
    }
}

/// Hands on the first two wanted columns as ids.
#[inline]
pub(super) fn pair<E>(
    row: &Row<'_>,
    each: &mut impl FnMut(u64, u64) -> Result<(), E>,
) -> Result<Result<(), ColumnFault>, E> {
    let ids = row.id(0).and_then(|src| Ok((src, row.id(1)?)));
    match ids {
        Ok((src, dst)) => each(src, dst).map(Ok),
        Err(fault) => Ok(Err(fault)),
    }
}

/// Why a floating-point number is no id. Whole numbers that were not rounded are no longer floating-point here.
fn float_id(number: f64) -> LineFault {
    match number {
        _ if number.is_finite() && number.fract() == 0.0 => LineFault::Rounded,
        _ => LineFault::NotANumber,
    }
}

/// The stored form of a field as a value of `kind`; `None` if it is not such a value.
fn stored(field: &Field<'_>, kind: ColumnKind) -> Option<u64> {
    match (field, kind) {
        (Field::Unsigned(number) | Field::Time(number), ColumnKind::Time | ColumnKind::U64) => Some(*number),
        (Field::Float(number), ColumnKind::F64) => kind.store(ColumnNumber::F64(*number)),
        (Field::Float(_), _) => None,
        _ => store_text(kind, field.text().trim_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_values_as_their_texts_are() {
        let text = |text: &'static str| Field::Text(text.into());
        for kind in [ColumnKind::Time, ColumnKind::U64, ColumnKind::I64, ColumnKind::F64] {
            assert_eq!(stored(&Field::Unsigned(7), kind), store_text(kind, "7"), "{kind:?}");
            assert_eq!(stored(&text("-7"), kind), store_text(kind, "-7"), "{kind:?}");
            assert_eq!(stored(&Field::Null, kind), None, "{kind:?}");
        }
        assert_eq!(stored(&text("1970-01-01T00:00:01Z"), ColumnKind::Time), Some(1_000));
    }
}
