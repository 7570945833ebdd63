//! Which columns of a text file are read, and how their values become `u64`.
//!
//! Every kept value is stored as a `u64` whose order is the order of the values, so that a range over a
//! column is a range over stored numbers, whatever its kind.

use chrono::DateTime;
use std::fmt;
use std::str::FromStr;
use strum::IntoStaticStr;
use thiserror::Error;

/// What the values of a kept column are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ColumnKind {
    /// Milliseconds since 1970-01-01 UTC, or a time from then on in RFC 3339; stored as milliseconds.
    Time,
    /// A whole number from 0; stored as it is.
    #[default]
    U64,
    /// A signed whole number; stored with its sign bit flipped.
    I64,
    /// A finite number; stored as its IEEE 754 bits, all flipped if negative, else the sign bit flipped.
    F64,
}

impl ColumnKind {
    /// The name users type after the colon.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The stored form of `text`, or `None` if it is not of this kind. The order of stored values is the
    /// order of the numbers; `-0` is stored as `0`; NaN and infinities are refused.
    pub fn encode(self, text: &str) -> Option<u64> {
        match self {
            ColumnKind::Time if text.contains('-') => {
                let time = DateTime::parse_from_rfc3339(text).ok()?;
                u64::try_from(time.timestamp_millis()).ok()
            }
            ColumnKind::Time | ColumnKind::U64 => digits_only(text)?.parse().ok(),
            ColumnKind::I64 => text.parse::<i64>().ok().map(|value| value as u64 ^ SIGN),
            ColumnKind::F64 => text.parse::<f64>().ok().filter(|value| value.is_finite()).map(encode_f64),
        }
    }

    /// The stored form of a number without a sign, or `None` if it is not of this kind; as [`ColumnKind::encode`] of its text.
    pub fn encode_unsigned(self, value: u64) -> Option<u64> {
        match self {
            ColumnKind::Time | ColumnKind::U64 => Some(value),
            ColumnKind::I64 => i64::try_from(value).ok().map(|value| value as u64 ^ SIGN),
            ColumnKind::F64 => Some(encode_f64(value as f64)),
        }
    }

    /// As [`ColumnKind::encode_unsigned`], of a number that may be below zero.
    pub fn encode_signed(self, value: i64) -> Option<u64> {
        match self {
            ColumnKind::Time | ColumnKind::U64 => u64::try_from(value).ok(),
            ColumnKind::I64 => Some(value as u64 ^ SIGN),
            ColumnKind::F64 => Some(encode_f64(value as f64)),
        }
    }

    /// As [`ColumnKind::encode_unsigned`], of a floating number: only kind `f64` has such, and none that is not finite.
    pub fn encode_float(self, value: f64) -> Option<u64> {
        (self == ColumnKind::F64 && value.is_finite()).then(|| encode_f64(value))
    }

    /// The text of a stored value; undoes [`ColumnKind::encode`].
    pub fn decode(self, stored: u64) -> String {
        match self {
            ColumnKind::Time | ColumnKind::U64 => stored.to_string(),
            ColumnKind::I64 => ((stored ^ SIGN) as i64).to_string(),
            ColumnKind::F64 => decode_f64(stored).to_string(),
        }
    }
}

const SIGN: u64 = 1 << 63;

/// `str::parse` would take a plus sign; ids and columns are decimal digits only.
fn digits_only(text: &str) -> Option<&str> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}

fn encode_f64(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits & SIGN == 0 { bits ^ SIGN } else { !bits }
}

fn decode_f64(stored: u64) -> f64 {
    f64::from_bits(if stored & SIGN == 0 { !stored } else { stored ^ SIGN })
}

/// A column to keep beside the ids: `name[=position][:kind]`, as in `created_ms:time` or `weight=3:f64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Its name in the header line, in queries and in the manifest.
    pub name: String,
    /// What its values are.
    pub kind: ColumnKind,
    /// Where it is in a line, from 0; `None` finds it by name in the header.
    pub position: Option<usize>,
}

/// Why a column specification is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnSpecError {
    /// No name, or a character other than letters, digits, `_`, `-` and `.`.
    #[error("column {text:?} has no valid name (letters, digits, '_', '-' and '.')")]
    Name {
        /// What was given.
        text: String,
    },
    /// The part after the colon is unknown.
    #[error("column {text:?} has an unknown kind (time, u64, i64 or f64)")]
    Kind {
        /// What was given.
        text: String,
    },
    /// The part after `=` is not a number from 1.
    #[error("column {text:?} has no valid position (columns count from 1)")]
    Position {
        /// What was given.
        text: String,
    },
}

impl FromStr for ColumnSpec {
    type Err = ColumnSpecError;

    fn from_str(text: &str) -> Result<Self, ColumnSpecError> {
        let owned = || text.to_owned();
        let (rest, kind) = text.rsplit_once(':').unwrap_or((text, "u64"));
        let kind = [ColumnKind::Time, ColumnKind::U64, ColumnKind::I64, ColumnKind::F64]
            .into_iter()
            .find(|known| known.name() == kind)
            .ok_or_else(|| ColumnSpecError::Kind { text: owned() })?;
        let (name, position) = match rest.split_once('=') {
            None => (rest, None),
            Some((name, position)) => (name, Some(position)),
        };
        let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || !name.chars().all(valid) {
            return Err(ColumnSpecError::Name { text: owned() });
        }
        let position = position
            .map(|p| p.parse::<usize>().ok().and_then(|p| p.checked_sub(1)))
            .map(|p| p.ok_or_else(|| ColumnSpecError::Position { text: owned() }))
            .transpose()?;
        Ok(ColumnSpec { name: name.to_owned(), kind, position })
    }
}

/// Where an id column is: by its header name, or by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnRef {
    /// By its name in the header line.
    Name(String),
    /// By its place in a line, from 0.
    Position(usize),
}

impl FromStr for ColumnRef {
    type Err = std::convert::Infallible;

    /// A number from 1 is a place (as in `cut -f`), everything else a name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse::<usize>().ok().and_then(|place| place.checked_sub(1)) {
            Some(position) => ColumnRef::Position(position),
            None => ColumnRef::Name(text.to_owned()),
        })
    }
}

impl fmt::Display for ColumnRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnRef::Name(name) => write!(f, "{name:?}"),
            ColumnRef::Position(position) => write!(f, "{}", position + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_parsed() {
        let spec = |text: &str| text.parse::<ColumnSpec>();
        let of = |name: &str, kind, position| Ok(ColumnSpec { name: name.to_owned(), kind, position });
        assert_eq!(spec("created_ms:time"), of("created_ms", ColumnKind::Time, None));
        assert_eq!(spec("weight=3:f64"), of("weight", ColumnKind::F64, Some(2)));
        assert_eq!(spec("year"), of("year", ColumnKind::U64, None));
        assert!(matches!(spec("year:date"), Err(ColumnSpecError::Kind { .. })));
        assert!(matches!(spec(":u64"), Err(ColumnSpecError::Name { .. })));
        assert!(matches!(spec("a b"), Err(ColumnSpecError::Name { .. })));
        assert!(matches!(spec("year=0"), Err(ColumnSpecError::Position { .. })));
        assert_eq!("2".parse(), Ok(ColumnRef::Position(1)));
        assert_eq!("id_2".parse(), Ok(ColumnRef::Name("id_2".to_owned())));
    }

    #[test]
    fn stored_order_is_the_order_of_the_values() {
        let cases: [(ColumnKind, &[&str]); 3] = [
            (ColumnKind::U64, &["0", "9", "18446744073709551615"]),
            (ColumnKind::I64, &["-9223372036854775808", "-1", "0", "7", "9223372036854775807"]),
            (ColumnKind::F64, &["-1e300", "-2.5", "-0.001", "0", "0.001", "2.5", "1e300"]),
        ];
        for (kind, texts) in cases {
            let stored: Vec<u64> = texts.iter().map(|text| kind.encode(text).unwrap()).collect();
            assert!(stored.windows(2).all(|pair| pair[0] < pair[1]), "{kind:?}: {stored:?}");
            for (text, &value) in texts.iter().zip(&stored) {
                assert_eq!(kind.encode(&kind.decode(value)), Some(value), "{text}");
            }
        }
        assert_eq!(ColumnKind::F64.encode("-0"), ColumnKind::F64.encode("0"));
    }

    #[test]
    fn numbers_are_stored_as_their_text_is() {
        for kind in [ColumnKind::Time, ColumnKind::U64, ColumnKind::I64, ColumnKind::F64] {
            for value in [0, 7, 1 << 63, u64::MAX] {
                assert_eq!(kind.encode_unsigned(value), kind.encode(&value.to_string()), "{kind:?} {value}");
            }
            for value in [i64::MIN, -1, 0, i64::MAX] {
                assert_eq!(kind.encode_signed(value), kind.encode(&value.to_string()), "{kind:?} {value}");
            }
        }
        for value in [-0.0, 1.5, -1e300, f64::NAN, f64::INFINITY] {
            assert_eq!(ColumnKind::F64.encode_float(value), ColumnKind::F64.encode(&value.to_string()));
            assert_eq!(ColumnKind::I64.encode_float(value), None);
        }
    }

    #[test]
    fn times_are_milliseconds_or_rfc_3339() {
        let time = |text: &str| ColumnKind::Time.encode(text);
        assert_eq!(time("1766000000000"), Some(1_766_000_000_000));
        assert_eq!(time("1970-01-01T00:00:00.0019Z"), Some(1));
        assert_eq!(time("2025-12-17T19:33:20Z"), Some(1_766_000_000_000));
        assert_eq!(time("2025-12-17 20:33:20.500+01:00"), Some(1_766_000_000_500));
        for text in ["1969-12-31T23:59:59Z", "2025-12-17", "2025-12-17T19:33:20", "2025-13-17T19:33:20Z", "-"]
        {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        for text in ["", "x", "-1", "+1", "1.5", "18446744073709551616"] {
            assert_eq!(ColumnKind::U64.encode(text), None, "{text}");
            assert_eq!(ColumnKind::Time.encode(text), None, "{text}");
        }
        for text in ["", "1.5", "9223372036854775808"] {
            assert_eq!(ColumnKind::I64.encode(text), None, "{text}");
        }
        for text in ["", "NaN", "inf", "1e999", "x"] {
            assert_eq!(ColumnKind::F64.encode(text), None, "{text}");
        }
    }
}
