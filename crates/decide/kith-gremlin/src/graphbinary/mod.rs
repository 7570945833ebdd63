//! GraphBinary 1.0, the coding that most drivers use: each value is a byte that names its type, a byte that says whether it is
//! null, and the value itself. Numbers are big-endian, and lengths have four bytes.
//!
//! The types are those of TinkerPop 3.8. Graphs, trees, custom types and some of Java's types for dates are refused by name. A
//! binding within bytecode is replaced by its value. A `Date`, `Timestamp`, `Instant` or `ZonedDateTime` is read as a
//! [`Value::DateTime`], which is written as an `OffsetDateTime`.

mod code;
mod items;
mod reader;
mod scalars;
mod values;
mod write_elements;
mod write_traversals;
mod writer;

pub use items::{Items, RESULTS_MAX, check_count, counted};
pub use reader::Reader;
pub use writer::Writer;

use crate::{error::Result, room::Room, value::Value};

/// Values nest at most this deep, as deep as the stack of a thread certainly allows.
pub const DEPTH_MAX: usize = 100;

/// The one value that `bytes` hold.
///
/// # Errors
///
/// The bytes are no value, more than one, or one of a type that Kith does not support. The message names the position of the
/// byte. Memory is bounded by a multiple of the length of `bytes`, whatever lengths they claim.
pub fn read_value(bytes: &[u8]) -> Result<Value> {
    read_value_within(bytes, &mut Room::unbounded())
}

/// The one value that `bytes` hold, which takes no more memory than there is room.
///
/// # Errors
///
/// Those of [`read_value`] and [`Room::take`].
pub fn read_value_within(bytes: &[u8], room: &mut Room) -> Result<Value> {
    let mut reader = Reader::new(bytes).within(room);
    let value = reader.value()?;
    reader.finish()?;
    Ok(value)
}

/// The bytes of a value.
///
/// # Errors
///
/// The value nests deeper than [`DEPTH_MAX`], or something in it has 2³¹ or more parts.
pub fn write_value(value: &Value) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    writer.value(value)?;
    Ok(writer.into_bytes())
}

/// The bytes of a value, which take no more memory than there is room. The value may have parts that are written several times.
///
/// # Errors
///
/// Those of [`write_value`] and [`Room::take`].
pub fn write_value_within(value: &Value, room: &mut Room) -> Result<Vec<u8>> {
    let mut writer = Writer::within(std::mem::take(room));
    let written = writer.value(value);
    let (bytes, taken) = writer.into_parts();
    *room = taken;
    written.map(|()| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;

    fn error(bytes: &[u8]) -> String {
        read_value(bytes).expect_err("no value").message
    }

    #[test]
    fn errors_name_the_byte() {
        assert_eq!(error(&[]), "GraphBinary, byte 0: the input ends: 1 bytes are needed, 0 are left");
        assert_eq!(error(&[0x7f, 0]), "GraphBinary, byte 0: no type has the code 0x7f");
        assert_eq!(error(&[1, 2]), "GraphBinary, byte 1: a flag is 0x02, neither 0 nor 1");
        assert_eq!(error(&[3, 0, 0, 0, 0, 9]), "GraphBinary, byte 2: a length is 9, but 0 bytes are left");
        assert_eq!(
            error(&[9, 0, 255, 255, 255, 255]),
            "GraphBinary, byte 2: a length is -1, but 0 bytes are left"
        );
        assert_eq!(error(&[3, 0, 0, 0, 0, 1, 0xff]), "GraphBinary, byte 2: a string is not UTF-8");
        assert_eq!(error(&[0xfe, 1, 7]), "GraphBinary, byte 2: 1 bytes follow the end");
        assert_eq!(error(&[0x20, 0, 3, 0, 0, 0, 0, 1, b'x']), "GraphBinary, byte 2: T has no value x");
    }

    #[test]
    fn types_that_are_not_supported_are_named() {
        let tree = read_value(&[0x2b, 0, 0, 0, 0, 0]).expect_err("unsupported");
        assert_eq!(tree.code, ErrorCode::UnsupportedOperation);
        assert_eq!(tree.message, "GraphBinary, byte 0: the type Tree (0x2b) is not supported");
        let custom = error(&[0, 0, 0, 0, 5, b'P', b'o', b'i', b'n', b't', 0, 0, 0, 0]);
        assert_eq!(custom, "GraphBinary, byte 0: the custom type \"Point\" is not supported");
    }

    #[test]
    fn endless_depth_is_refused() {
        let nested = |depth: usize| [[9, 0, 0, 0, 0, 1].repeat(depth), vec![0xfe, 1]].concat();
        let value = read_value(&nested(DEPTH_MAX)).expect("as deep as allowed");
        assert_eq!(write_value(&value), Ok(nested(DEPTH_MAX)));
        assert!(write_value(&Value::list([value])).is_err());
        assert!(error(&nested(1_000_000)).contains("nest deeper than 100"));
    }

    #[test]
    fn a_binding_is_its_value() {
        let binding = [&[0x14, 0, 0, 0, 0, 1, b'x'][..], &[1, 0, 0, 0, 0, 7]].concat();
        assert_eq!(read_value(&binding), Ok(Value::Int(7)));
    }
}
