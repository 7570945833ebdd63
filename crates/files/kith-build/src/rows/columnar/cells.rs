//! The values of one column of a batch, of any Arrow type.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray,
    LargeStringArray, PrimitiveArray, StringArray, StringViewArray,
};
use arrow_schema::{DataType, TimeUnit};

/// A column, by type.
pub(super) enum Cells<'a> {
    Null,
    Bool(&'a BooleanArray),
    I8(&'a PrimitiveArray<Int8Type>),
    I16(&'a PrimitiveArray<Int16Type>),
    I32(&'a PrimitiveArray<Int32Type>),
    I64(&'a PrimitiveArray<Int64Type>),
    U8(&'a PrimitiveArray<UInt8Type>),
    U16(&'a PrimitiveArray<UInt16Type>),
    U32(&'a PrimitiveArray<UInt32Type>),
    U64(&'a PrimitiveArray<UInt64Type>),
    F16(&'a PrimitiveArray<Float16Type>),
    F32(&'a PrimitiveArray<Float32Type>),
    F64(&'a PrimitiveArray<Float64Type>),
    Decimal32(&'a PrimitiveArray<Decimal32Type>, i8),
    Decimal64(&'a PrimitiveArray<Decimal64Type>, i8),
    Decimal128(&'a PrimitiveArray<Decimal128Type>, i8),
    Decimal256(&'a PrimitiveArray<Decimal256Type>, i8),
    Seconds(&'a PrimitiveArray<TimestampSecondType>),
    Millis(&'a PrimitiveArray<TimestampMillisecondType>),
    Micros(&'a PrimitiveArray<TimestampMicrosecondType>),
    Nanos(&'a PrimitiveArray<TimestampNanosecondType>),
    Days(&'a PrimitiveArray<Date32Type>),
    DayMillis(&'a PrimitiveArray<Date64Type>),
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    TextView(&'a StringViewArray),
    Bytes(&'a BinaryArray),
    LargeBytes(&'a LargeBinaryArray),
    BytesView(&'a BinaryViewArray),
    FixedBytes(&'a FixedSizeBinaryArray),
    /// Values that are referred to by number.
    Dictionary {
        array: &'a dyn Array,
        keys: Vec<usize>,
        values: Box<Cells<'a>>,
    },
    /// Runs of the items of another column.
    List {
        array: &'a dyn Array,
        runs: Runs<'a>,
        items: Box<Cells<'a>>,
    },
    /// Runs of the entries of two other columns.
    Map {
        array: &'a dyn Array,
        runs: Runs<'a>,
        keys: Box<Cells<'a>>,
        values: Box<Cells<'a>>,
    },
}

/// The beginning and end of each row's items.
pub(super) enum Runs<'a> {
    Offsets(&'a [i32]),
    LargeOffsets(&'a [i64]),
    Each(usize),
}

/// One value.
#[derive(Clone, Copy)]
pub(super) enum Cell<'a> {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Single(f32),
    Double(f64),
    /// A time in milliseconds.
    Timestamp(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// A list or map.
    Many,
    /// A decimal or time that no stored type holds exactly, described for messages.
    Inexact(&'static str),
}

/// The greatest number of a decimal's digits that an `f64` always gives back unchanged, as a bound of the number.
const DECIMAL_F64_MAX: u128 = 1_000_000_000_000_000;

impl Cell<'_> {
    /// A decimal: a whole number if it is one, else the floating-point number that has its digits.
    fn decimal(unscaled: Option<i128>, scale: i8) -> Self {
        const TOO_LARGE: Cell<'_> = Cell::Inexact("a decimal that no type holds exactly");
        let Some(unscaled) = unscaled else { return TOO_LARGE };
        let power = 10i128.checked_pow(scale.unsigned_abs().into());
        let whole = match power {
            Some(power) if scale < 0 => unscaled.checked_mul(power),
            Some(power) if unscaled % power == 0 => Some(unscaled / power),
            None if unscaled == 0 => Some(0),
            _ => None,
        };
        if let Some(whole) = whole {
            let signed = i64::try_from(whole).map(Cell::Signed);
            return signed.or_else(|_| u64::try_from(whole).map(Cell::Unsigned)).unwrap_or(TOO_LARGE);
        }
        match format!("{unscaled}e-{scale}").parse() {
            Ok(double) if 0 < scale && unscaled.unsigned_abs() < DECIMAL_F64_MAX => Cell::Double(double),
            _ => TOO_LARGE,
        }
    }

    /// A time in seconds.
    fn seconds(value: i64) -> Self {
        value.checked_mul(1_000).map_or(Cell::Inexact("a time out of range"), Cell::Timestamp)
    }
}

impl Runs<'_> {
    pub(super) fn range(&self, row: usize) -> std::ops::Range<usize> {
        match self {
            Runs::Offsets(ends) => ends[row] as usize..ends[row + 1] as usize,
            Runs::LargeOffsets(ends) => ends[row] as usize..ends[row + 1] as usize,
            Runs::Each(length) => row * length..(row + 1) * length,
        }
    }
}

impl<'a> Cells<'a> {
    /// Wraps a column. The error is the name of its type if its values cannot be stored.
    pub(super) fn of(array: &'a ArrayRef) -> Result<Self, String> {
        Ok(match array.data_type() {
            DataType::Null => Cells::Null,
            DataType::Boolean => Cells::Bool(array.as_boolean()),
            DataType::Int8 => Cells::I8(array.as_primitive()),
            DataType::Int16 => Cells::I16(array.as_primitive()),
            DataType::Int32 => Cells::I32(array.as_primitive()),
            DataType::Int64 => Cells::I64(array.as_primitive()),
            DataType::UInt8 => Cells::U8(array.as_primitive()),
            DataType::UInt16 => Cells::U16(array.as_primitive()),
            DataType::UInt32 => Cells::U32(array.as_primitive()),
            DataType::UInt64 => Cells::U64(array.as_primitive()),
            DataType::Float16 => Cells::F16(array.as_primitive()),
            DataType::Float32 => Cells::F32(array.as_primitive()),
            DataType::Float64 => Cells::F64(array.as_primitive()),
            DataType::Decimal32(_, scale) => Cells::Decimal32(array.as_primitive(), *scale),
            DataType::Decimal64(_, scale) => Cells::Decimal64(array.as_primitive(), *scale),
            DataType::Decimal128(_, scale) => Cells::Decimal128(array.as_primitive(), *scale),
            DataType::Decimal256(_, scale) => Cells::Decimal256(array.as_primitive(), *scale),
            DataType::Timestamp(TimeUnit::Second, _) => Cells::Seconds(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Millisecond, _) => Cells::Millis(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Cells::Micros(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Cells::Nanos(array.as_primitive()),
            DataType::Date32 => Cells::Days(array.as_primitive()),
            DataType::Date64 => Cells::DayMillis(array.as_primitive()),
            DataType::Utf8 => Cells::Text(array.as_string()),
            DataType::LargeUtf8 => Cells::LargeText(array.as_string()),
            DataType::Utf8View => Cells::TextView(array.as_string_view()),
            DataType::Binary => Cells::Bytes(array.as_binary()),
            DataType::LargeBinary => Cells::LargeBytes(array.as_binary()),
            DataType::BinaryView => Cells::BytesView(array.as_binary_view()),
            DataType::FixedSizeBinary(_) => Cells::FixedBytes(array.as_fixed_size_binary()),
            _ => return Cells::nested(array),
        })
    }

    /// Wraps a column like [`Cells::of`], if its values lie in other columns.
    fn nested(array: &'a ArrayRef) -> Result<Self, String> {
        let unknown = || Err(array.data_type().to_string());
        Ok(match array.data_type() {
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                if dictionary.values().is_empty() && dictionary.keys().null_count() < dictionary.len() {
                    return unknown();
                }
                let keys =
                    if dictionary.values().is_empty() { Vec::new() } else { dictionary.normalized_keys() };
                Cells::Dictionary { array, keys, values: Box::new(Cells::of(dictionary.values())?) }
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let items = Box::new(Cells::plain(list.values())?);
                Cells::List { array, runs: Runs::Offsets(list.value_offsets()), items }
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let items = Box::new(Cells::plain(list.values())?);
                Cells::List { array, runs: Runs::LargeOffsets(list.value_offsets()), items }
            }
            DataType::FixedSizeList(_, length) => {
                let list = array.as_fixed_size_list();
                let items = Box::new(Cells::plain(list.values())?);
                Cells::List { array, runs: Runs::Each(usize::try_from(*length).unwrap_or(0)), items }
            }
            DataType::Map(..) => {
                let map = array.as_map();
                let keys = Box::new(Cells::plain(map.keys())?);
                if !matches!(*keys, Cells::Text(_) | Cells::LargeText(_) | Cells::TextView(_)) {
                    return unknown();
                }
                let values = Box::new(Cells::plain(map.values())?);
                Cells::Map { array, runs: Runs::Offsets(map.value_offsets()), keys, values }
            }
            _ => return unknown(),
        })
    }

    /// Wraps a column of plain values inside another.
    fn plain(array: &'a ArrayRef) -> Result<Self, String> {
        match Cells::of(array)? {
            Cells::List { .. } | Cells::Map { .. } => Err(format!("a list or map of {}", array.data_type())),
            plain => Ok(plain),
        }
    }

    /// The value in `row`; `None` if it is null.
    #[inline]
    pub(super) fn at(&self, row: usize) -> Option<Cell<'_>> {
        macro_rules! at {
            ($array:expr, $value:ident => $cell:expr) => {{
                if $array.is_null(row) {
                    return None;
                }
                let $value = $array.value(row);
                $cell
            }};
        }
        Some(match self {
            Cells::Null => return None,
            Cells::Bool(array) => at!(array, value => Cell::Bool(value)),
            Cells::I8(array) => at!(array, value => Cell::Signed(value.into())),
            Cells::I16(array) => at!(array, value => Cell::Signed(value.into())),
            Cells::I32(array) => at!(array, value => Cell::Signed(value.into())),
            Cells::I64(array) => at!(array, value => Cell::Signed(value)),
            Cells::U8(array) => at!(array, value => Cell::Unsigned(value.into())),
            Cells::U16(array) => at!(array, value => Cell::Unsigned(value.into())),
            Cells::U32(array) => at!(array, value => Cell::Unsigned(value.into())),
            Cells::U64(array) => at!(array, value => Cell::Unsigned(value)),
            Cells::F16(array) => at!(array, value => Cell::Single(value.to_f32())),
            Cells::F32(array) => at!(array, value => Cell::Single(value)),
            Cells::F64(array) => at!(array, value => Cell::Double(value)),
            Cells::Decimal32(array, scale) => at!(array, value => Cell::decimal(Some(value.into()), *scale)),
            Cells::Decimal64(array, scale) => at!(array, value => Cell::decimal(Some(value.into()), *scale)),
            Cells::Decimal128(array, scale) => at!(array, value => Cell::decimal(Some(value), *scale)),
            Cells::Decimal256(array, scale) => at!(array, value => Cell::decimal(value.to_i128(), *scale)),
            Cells::Seconds(array) => at!(array, value => Cell::seconds(value)),
            Cells::Millis(array) => at!(array, value => Cell::Timestamp(value)),
            Cells::Micros(array) => at!(array, value => Cell::Timestamp(value.div_euclid(1_000))),
            Cells::Nanos(array) => at!(array, value => Cell::Timestamp(value.div_euclid(1_000_000))),
            Cells::Days(array) => at!(array, value => Cell::Timestamp(i64::from(value) * 86_400_000)),
            Cells::DayMillis(array) => at!(array, value => Cell::Timestamp(value)),
            Cells::Text(array) => at!(array, value => Cell::Text(value)),
            Cells::LargeText(array) => at!(array, value => Cell::Text(value)),
            Cells::TextView(array) => at!(array, value => Cell::Text(value)),
            Cells::Bytes(array) => at!(array, value => Cell::Bytes(value)),
            Cells::LargeBytes(array) => at!(array, value => Cell::Bytes(value)),
            Cells::BytesView(array) => at!(array, value => Cell::Bytes(value)),
            Cells::FixedBytes(array) => at!(array, value => Cell::Bytes(value)),
            Cells::Dictionary { array, .. } if array.is_null(row) => return None,
            Cells::Dictionary { keys, values, .. } => return values.at(keys[row]),
            Cells::List { array, .. } | Cells::Map { array, .. } if array.is_null(row) => return None,
            Cells::List { .. } | Cells::Map { .. } => Cell::Many,
        })
    }
}
