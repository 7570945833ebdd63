//! One value, to be encoded or decoded.

use crate::ScalarType;

/// One value. When it is written, it is converted to the field's type if that loses no information. When it is read, it has
/// exactly the field's type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// `false` or `true`.
    Bool(bool),
    /// A signed whole number of 32 bits.
    I32(i32),
    /// A signed whole number of 64 bits.
    I64(i64),
    /// A whole number of 64 bits that is not negative.
    U64(u64),
    /// Single precision.
    F32(f32),
    /// Double precision.
    F64(f64),
    /// Text.
    Text(&'a str),
    /// Raw bytes (not base64).
    Bytes(&'a [u8]),
    /// Milliseconds since 1970-01-01 UTC.
    Timestamp(i64),
}

impl<'a> Scalar<'a> {
    /// Decodes a value. The error describes the fault if the bytes are not a value of the type.
    #[inline]
    pub(crate) fn decode(scalar: ScalarType, bytes: &'a [u8]) -> Result<Self, &'static str> {
        const LENGTH: &str = "it is not as long as its type";
        let four = || <[u8; 4]>::try_from(bytes).map_err(|_| LENGTH);
        let eight = || <[u8; 8]>::try_from(bytes).map_err(|_| LENGTH);
        Ok(match scalar {
            ScalarType::Bool => match bytes {
                [0] => Scalar::Bool(false),
                [1] => Scalar::Bool(true),
                _ => return Err("it is neither false nor true"),
            },
            ScalarType::I32 => Scalar::I32(i32::from_le_bytes(four()?)),
            ScalarType::I64 => Scalar::I64(i64::from_le_bytes(eight()?)),
            ScalarType::U64 => Scalar::U64(u64::from_le_bytes(eight()?)),
            ScalarType::F32 => Scalar::F32(f32::from_le_bytes(four()?)),
            ScalarType::F64 => Scalar::F64(f64::from_le_bytes(eight()?)),
            ScalarType::Timestamp => Scalar::Timestamp(i64::from_le_bytes(eight()?)),
            ScalarType::Text => Scalar::Text(std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?),
            ScalarType::Bytes => Scalar::Bytes(bytes),
        })
    }

    /// A description for messages: `number 1.5`, `text`.
    pub(crate) fn describe(&self) -> String {
        match self {
            Scalar::Bool(value) => value.to_string(),
            Scalar::I32(value) => format!("number {value}"),
            Scalar::I64(value) | Scalar::Timestamp(value) => format!("number {value}"),
            Scalar::U64(value) => format!("number {value}"),
            Scalar::F32(value) => format!("number {value:?}"),
            Scalar::F64(value) => format!("number {value:?}"),
            Scalar::Text(_) => "text".to_owned(),
            Scalar::Bytes(_) => "bytes".to_owned(),
        }
    }
}
