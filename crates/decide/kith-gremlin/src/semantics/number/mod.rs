//! Numbers of all types: their widths, their comparison, their arithmetic, and conversions.
//!
//! A result has the wider of the types of its operands, and the next wider one if it does not fit, up to `Long`. With a
//! floating-point operand the result is a floating-point number.

mod arithmetic;
mod compare;
mod convert;
mod reduce;
mod size;

pub use arithmetic::{add, divide, fraction, multiply, subtract};
pub use convert::as_number;
pub use reduce::{Mean, Sum};

pub(super) use compare::{Number, compare};
pub(super) use convert::widen;

use crate::value::{GType, Value};

/// The number as the nearest `Double`, which is infinite if the number is too large. `None` if the value is not of a numeric
/// type.
pub fn to_double(value: &Value) -> Option<f64> {
    Number::of(value).map(arithmetic::double)
}

/// A type of numbers. Integers come before floating-point numbers, each from the narrowest to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants have the names of Gremlin's types")]
pub enum Kind {
    Byte,
    Short,
    Int,
    Long,
    BigInteger,
    Float,
    Double,
    BigDecimal,
}

impl Kind {
    /// The type of a number; `None` for a value that is no number.
    pub fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Byte(_) => Self::Byte,
            Value::Short(_) => Self::Short,
            Value::Int(_) => Self::Int,
            Value::Long(_) => Self::Long,
            Value::Float(_) => Self::Float,
            Value::Double(_) => Self::Double,
            Value::BigInteger(_) => Self::BigInteger,
            Value::BigDecimal(_) => Self::BigDecimal,
            _ => return None,
        })
    }

    /// The type that a token such as `GType.INT` names; `None` for a token that names no single type of numbers.
    pub fn named(token: GType) -> Option<Self> {
        Some(match token {
            GType::Byte => Self::Byte,
            GType::Short => Self::Short,
            GType::Int => Self::Int,
            GType::Long => Self::Long,
            GType::Float => Self::Float,
            GType::Double => Self::Double,
            GType::BigInt => Self::BigInteger,
            GType::BigDecimal => Self::BigDecimal,
            _ => return None,
        })
    }

    /// Its name in Java, which messages of TinkerPop use.
    fn java_name(self) -> &'static str {
        match self {
            Self::Byte => "Byte",
            Self::Short => "Short",
            Self::Int => "Integer",
            Self::Long => "Long",
            Self::BigInteger => "BigInteger",
            Self::Float => "Float",
            Self::Double => "Double",
            Self::BigDecimal => "BigDecimal",
        }
    }

    fn is_floating(self) -> bool {
        Self::Float <= self
    }

    /// The number of bits of its values; 128 stands for any number of bits.
    fn bits(self) -> u8 {
        match self {
            Self::Byte => 8,
            Self::Short => 16,
            Self::Int | Self::Float => 32,
            Self::Long | Self::Double => 64,
            Self::BigInteger | Self::BigDecimal => 128,
        }
    }

    /// The type in which numbers of two types are combined. `floating` asks for a floating-point type in any case.
    pub(super) fn common(self, other: Self, floating: bool) -> Self {
        let floating = floating || self.is_floating() || other.is_floating();
        match (floating, self.bits().max(other.bits())) {
            (false, 8) => Self::Byte,
            (false, 16) => Self::Short,
            (false, 32) => Self::Int,
            (false, 64) => Self::Long,
            (false, _) => Self::BigInteger,
            (true, 8 | 16 | 32) => Self::Float,
            (true, 64) => Self::Double,
            (true, _) => Self::BigDecimal,
        }
    }
}
