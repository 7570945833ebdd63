//! The columns of a graph: values that are kept beside the ids of its neighbour lists.
//!
//! Every value is stored as a `u64` that has the order of the values. So a range over a column is a range over stored
//! numbers, and lists can be sorted by a column whatever its kind is.

use serde::{Deserialize, Serialize};
use std::str::FromStr;
use strum::{EnumString, IntoStaticStr};
use thiserror::Error;

/// A column of an edge type or entity kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name in queries.
    pub name: String,
    /// The kind of its values.
    pub kind: ColumnKind,
}

/// The kind of the values of a column.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    IntoStaticStr,
    EnumString,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ColumnKind {
    /// Milliseconds since 1970-01-01 UTC; stored unchanged.
    Time,
    /// A whole number that is not negative; stored unchanged.
    #[default]
    U64,
    /// A signed whole number; stored with its sign bit flipped.
    I64,
    /// A finite number; stored as its IEEE 754 bits, with all bits flipped if it is negative, else with the sign bit
    /// flipped.
    F64,
}

/// One value of a column.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ColumnNumber {
    /// A whole number that is not negative, or a time in milliseconds.
    U64(u64),
    /// A signed whole number.
    I64(i64),
    /// A finite number.
    F64(f64),
}

/// Compares bits, so that every value equals itself.
impl PartialEq for ColumnNumber {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (ColumnNumber::U64(a), ColumnNumber::U64(b)) => a == b,
            (ColumnNumber::I64(a), ColumnNumber::I64(b)) => a == b,
            (ColumnNumber::F64(a), ColumnNumber::F64(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

impl Eq for ColumnNumber {}

const SIGN: u64 = 1 << 63;

impl ColumnKind {
    /// The name that users type and that manifests contain.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The stored form of a number; `None` if this kind does not have the number: a negative one for `u64`, one with a
    /// fraction for whole numbers, NaN or an infinity for `f64`. `-0` is stored as `0`.
    pub fn store(self, value: ColumnNumber) -> Option<u64> {
        match (self, value) {
            (ColumnKind::Time | ColumnKind::U64, ColumnNumber::U64(value)) => Some(value),
            (ColumnKind::Time | ColumnKind::U64, ColumnNumber::I64(value)) => u64::try_from(value).ok(),
            (ColumnKind::I64, ColumnNumber::U64(value)) => {
                i64::try_from(value).ok().map(|value| value as u64 ^ SIGN)
            }
            (ColumnKind::I64, ColumnNumber::I64(value)) => Some(value as u64 ^ SIGN),
            (ColumnKind::F64, ColumnNumber::U64(value)) => Some(store_f64(value as f64)),
            (ColumnKind::F64, ColumnNumber::I64(value)) => Some(store_f64(value as f64)),
            (ColumnKind::F64, ColumnNumber::F64(value)) => value.is_finite().then(|| store_f64(value)),
            (ColumnKind::Time | ColumnKind::U64 | ColumnKind::I64, ColumnNumber::F64(_)) => None,
        }
    }

    /// The value with this stored form: the inverse of [`ColumnKind::store`].
    pub fn value(self, stored: u64) -> ColumnNumber {
        match self {
            ColumnKind::Time | ColumnKind::U64 => ColumnNumber::U64(stored),
            ColumnKind::I64 => ColumnNumber::I64((stored ^ SIGN) as i64),
            ColumnKind::F64 => {
                let bits = if stored & SIGN == 0 { !stored } else { stored ^ SIGN };
                ColumnNumber::F64(f64::from_bits(bits))
            }
        }
    }
}

fn store_f64(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits & SIGN == 0 { bits ^ SIGN } else { !bits }
}

/// The text is not a finite decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a number")]
pub struct NotANumber;

impl FromStr for ColumnNumber {
    type Err = NotANumber;

    fn from_str(text: &str) -> Result<Self, NotANumber> {
        let whole = text.parse().map(ColumnNumber::U64).or_else(|_| text.parse().map(ColumnNumber::I64));
        let number = whole.or_else(|_| text.parse().map(ColumnNumber::F64).map_err(|_| NotANumber))?;
        match number {
            ColumnNumber::F64(number) if !number.is_finite() => Err(NotANumber),
            number => Ok(number),
        }
    }
}

impl std::fmt::Display for ColumnNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ColumnNumber::U64(value) => value.fmt(f),
            ColumnNumber::I64(value) => value.fmt(f),
            ColumnNumber::F64(value) => value.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stored_order_is_the_order_of_the_values(a: i64, b: i64, x: f64, y: f64, n: u64) {
            let whole = |value| ColumnKind::I64.store(ColumnNumber::I64(value)).unwrap();
            prop_assert_eq!(whole(a).cmp(&whole(b)), a.cmp(&b));
            prop_assert_eq!(ColumnKind::I64.value(whole(a)), ColumnNumber::I64(a));
            prop_assert_eq!(ColumnKind::U64.value(n), ColumnNumber::U64(n));
            prop_assume!(x.is_finite() && y.is_finite());
            let number = |value| ColumnKind::F64.store(ColumnNumber::F64(value)).unwrap();
            prop_assert_eq!(number(x).partial_cmp(&number(y)), x.partial_cmp(&y));
            prop_assert_eq!(ColumnKind::F64.value(number(x)), ColumnNumber::F64(x + 0.0));
        }
    }

    #[test]
    fn values_of_another_kind_have_no_stored_form() {
        use ColumnNumber::{F64, I64, U64};
        assert_eq!(ColumnKind::U64.store(I64(-1)), None);
        assert_eq!(ColumnKind::Time.store(F64(1.0)), None);
        assert_eq!(ColumnKind::I64.store(U64(1 << 63)), None);
        assert_eq!(ColumnKind::F64.store(F64(f64::NAN)), None);
        assert_eq!(ColumnKind::F64.store(F64(f64::INFINITY)), None);
        assert_eq!(ColumnKind::F64.store(F64(-0.0)), ColumnKind::F64.store(U64(0)));
        assert_eq!(ColumnKind::U64.store(I64(7)), Some(7));
    }

    #[test]
    fn kinds_are_read_by_the_names_that_users_type() {
        for kind in [ColumnKind::Time, ColumnKind::U64, ColumnKind::I64, ColumnKind::F64] {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
    }
}
