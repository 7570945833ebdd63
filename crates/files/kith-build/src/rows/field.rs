//! The fields of rows, for callers that turn rows into something other than keys and values.

use crate::rows::fault::RowFault;
use std::borrow::Cow;
use std::fmt;

/// A field of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<'a> {
    /// Null, or missing.
    Null,
    /// A whole number that is not negative.
    Unsigned(u64),
    /// A time since 1970 in milliseconds.
    Time(u64),
    /// A floating-point number that is not known to be an exact whole number from 0.
    Float(f64),
    /// Everything else as text: text unchanged, other numbers in decimal, lists and objects as JSON or as a description.
    Text(Cow<'a, str>),
}

/// Receives rows: the number of each, from 1, and its fields or its fault. Returns whether to continue.
pub type EachRow<'f> = dyn FnMut(u64, Result<&[Field<'_>], RowFault>) -> bool + 'f;

impl Field<'_> {
    /// The field as text; null is empty.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Field::Null => Cow::Borrowed(""),
            Field::Unsigned(number) | Field::Time(number) => Cow::Owned(number.to_string()),
            Field::Float(number) => Cow::Owned(number.to_string()),
            Field::Text(text) => Cow::Borrowed(text),
        }
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}
