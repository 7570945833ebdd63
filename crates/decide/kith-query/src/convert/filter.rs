//! Filters of edges by a column on the wire.

use super::ConvertError;
use crate::ColumnFilter;
use kith_schema::ColumnNumber;
use kith_wire::v1::{self, column_number::Number};

pub(crate) fn filter_to_wire(filter: &ColumnFilter) -> v1::ColumnFilter {
    v1::ColumnFilter {
        column: filter.column.clone(),
        low: filter.low.map(number_to_wire),
        high: filter.high.map(number_to_wire),
    }
}

pub(crate) fn filter_from_wire(wire: v1::ColumnFilter) -> Result<ColumnFilter, ConvertError> {
    let number = |wire: Option<v1::ColumnNumber>| wire.map(number_from_wire).transpose();
    Ok(ColumnFilter { column: wire.column, low: number(wire.low)?, high: number(wire.high)? })
}

fn number_to_wire(number: ColumnNumber) -> v1::ColumnNumber {
    let number = match number {
        ColumnNumber::U64(number) => Number::Unsigned(number),
        ColumnNumber::I64(number) => Number::Signed(number),
        ColumnNumber::F64(number) => Number::Floating(number),
    };
    v1::ColumnNumber { number: Some(number) }
}

fn number_from_wire(wire: v1::ColumnNumber) -> Result<ColumnNumber, ConvertError> {
    Ok(match wire.number.ok_or(ConvertError::Missing("filter.number"))? {
        Number::Unsigned(number) => ColumnNumber::U64(number),
        Number::Signed(number) => ColumnNumber::I64(number),
        Number::Floating(number) => ColumnNumber::F64(number),
    })
}
