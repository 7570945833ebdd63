//! The columns of a text file that are read, and the conversion of their texts to stored values.

use kith_schema::{Column, ColumnKind, ColumnNumber, TimeUnit, time_of_text};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The stored form of `text`; `None` if it is not a value of the kind. Times are milliseconds since 1970-01-01 UTC, or RFC
/// 3339 from 1970 on; other numbers are decimal.
pub fn store_text(kind: ColumnKind, text: &str) -> Option<u64> {
    kind.store(match kind {
        ColumnKind::Time if text.contains('-') => ColumnNumber::I64(time_of_text(text)?),
        ColumnKind::Time | ColumnKind::U64 => ColumnNumber::U64(digits_only(text)?.parse().ok()?),
        ColumnKind::I64 => ColumnNumber::I64(text.parse().ok()?),
        ColumnKind::F64 => ColumnNumber::F64(exact_f64(text)?),
    })
}

/// The stored form of a number; `None` if it is not exactly a value of the kind.
pub fn store_number(kind: ColumnKind, number: ColumnNumber) -> Option<u64> {
    let is_exact = match (kind, number) {
        (ColumnKind::F64, ColumnNumber::U64(whole)) => whole as f64 as i128 == i128::from(whole),
        (ColumnKind::F64, ColumnNumber::I64(whole)) => whole as f64 as i128 == i128::from(whole),
        _ => true,
    };
    kind.store(number).filter(|_| is_exact)
}

/// The number that a text spells; `None` for a whole number that an `f64` would round.
fn exact_f64(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    match text.parse::<i128>() {
        Ok(whole) if number as i128 != whole => None,
        _ => Some(number),
    }
}

/// `str::parse` would accept a plus sign, but ids and columns consist of decimal digits only.
fn digits_only(text: &str) -> Option<&str> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}

/// A column to keep beside the ids: `name[=position][:kind]`, as in `created_ms:time` or `weight=3:f64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// The name in the header line, in queries and in the manifest.
    pub name: String,
    /// The kind of its values.
    pub kind: ColumnKind,
    /// The unit of times that are plain numbers.
    pub unit: TimeUnit,
    /// Its place in a line, from 0; `None` looks it up by name in the header.
    pub position: Option<usize>,
}

/// Why a column specification is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnSpecError {
    /// The name is missing, or contains a character other than letters, digits, `_`, `-` and `.`.
    #[error("column {text:?} has no valid name (letters, digits, '_', '-' and '.')")]
    Name {
        /// The specification as written.
        text: String,
    },
    /// The kind after the colon is unknown.
    #[error("column {text:?} has an unknown kind (time, time-s, time-us, time-ns, u64, i64 or f64)")]
    Kind {
        /// The specification as written.
        text: String,
    },
    /// The position after `=` is not a number from 1.
    #[error("column {text:?} has no valid position (columns count from 1)")]
    Position {
        /// The specification as written.
        text: String,
    },
}

impl ColumnSpec {
    /// The column as a version stores it.
    pub fn column(&self) -> Column {
        Column { name: self.name.clone(), kind: self.kind }
    }

    /// The stored form of a value that was a plain number; `None` if it is out of range. A time is then in the unit of the
    /// column. Notes the first one in `doubt` that is unlikely to be in milliseconds.
    pub fn of_number(&self, stored: u64, doubt: &mut Option<String>) -> Option<u64> {
        if self.kind == ColumnKind::Time && self.unit == TimeUnit::Millis && doubt.is_none() {
            *doubt = TimeUnit::doubt(&self.name, stored.into(), |kind| {
                format!("write the column as {}:{kind}", self.name)
            });
        }
        if self.kind != ColumnKind::Time {
            return Some(stored);
        }
        self.unit.millis(stored.into()).and_then(|millis| u64::try_from(millis).ok())
    }
}

impl FromStr for ColumnSpec {
    type Err = ColumnSpecError;

    fn from_str(text: &str) -> Result<Self, ColumnSpecError> {
        let owned = || text.to_owned();
        let (rest, kind) = text.rsplit_once(':').unwrap_or((text, "u64"));
        let (kind, unit) = match TimeUnit::of_kind(kind) {
            Some(unit) => (ColumnKind::Time, unit),
            None => (kind.parse().map_err(|_| ColumnSpecError::Kind { text: owned() })?, TimeUnit::Millis),
        };
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
        Ok(ColumnSpec { name: name.to_owned(), kind, unit, position })
    }
}

/// Refers to a column by its header name or by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnRef {
    /// By its name in the header line.
    Name(String),
    /// By its place in a line, from 0.
    Position(usize),
}

impl FromStr for ColumnRef {
    type Err = std::convert::Infallible;

    /// Parses a reference: a number from 1 is a place (as in `cut -f`), everything else is a name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse::<usize>().ok().and_then(|index| index.checked_sub(1)) {
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
        let of = |name: &str, kind, position| {
            Ok(ColumnSpec { name: name.to_owned(), kind, unit: TimeUnit::Millis, position })
        };
        let seconds = spec("since:time-s").unwrap();
        assert_eq!((seconds.kind, seconds.unit), (ColumnKind::Time, TimeUnit::Seconds));
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
    fn texts_are_stored_as_the_numbers_that_they_are() {
        for (kind, number) in [
            (ColumnKind::U64, ColumnNumber::U64(u64::MAX)),
            (ColumnKind::I64, ColumnNumber::I64(i64::MIN)),
            (ColumnKind::I64, ColumnNumber::I64(7)),
            (ColumnKind::F64, ColumnNumber::F64(-1e300)),
            (ColumnKind::F64, ColumnNumber::F64(0.001)),
        ] {
            assert_eq!(store_text(kind, &number.to_string()), kind.store(number), "{kind:?} {number}");
        }
        assert_eq!(store_text(ColumnKind::F64, "-0"), store_text(ColumnKind::F64, "0"));
    }

    #[test]
    fn times_are_milliseconds_or_rfc_3339() {
        let time = |text: &str| store_text(ColumnKind::Time, text);
        assert_eq!(time("1766000000000"), Some(1_766_000_000_000));
        assert_eq!(time("1970-01-01T00:00:00.0019Z"), Some(1));
        assert_eq!(time("2025-12-17T19:33:20Z"), Some(1_766_000_000_000));
        assert_eq!(time("2025-12-17"), Some(1_765_929_600_000));
        assert_eq!(time("2025-12-17T20:33:20+01"), Some(1_766_000_000_000));
        assert_eq!(time("2025-12-17 20:33:20+0100"), Some(1_766_000_000_000));
        assert_eq!(time("2025-12-17 20:33:20.500+01:00"), Some(1_766_000_000_500));
        for text in ["1969-12-31T23:59:59Z", "2025-13-17", "2025-12-17T19:33:20", "2025-13-17T19:33:20Z", "-"]
        {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        for text in ["", "x", "-1", "+1", "1.5", "18446744073709551616"] {
            assert_eq!(store_text(ColumnKind::U64, text), None, "{text}");
            assert_eq!(store_text(ColumnKind::Time, text), None, "{text}");
        }
        for text in ["", "1.5", "9223372036854775808"] {
            assert_eq!(store_text(ColumnKind::I64, text), None, "{text}");
        }
        for text in ["", "NaN", "inf", "1e999", "x"] {
            assert_eq!(store_text(ColumnKind::F64, text), None, "{text}");
        }
    }
}
