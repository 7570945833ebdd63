//! The fields of rows, for callers that make something else of rows than keys and values.

use crate::fault::RowFault;
use std::borrow::Cow;
use std::fmt;

/// A field of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<'a> {
    /// Null, or not there.
    Null,
    /// A whole number from 0, or a time from 1970 on in milliseconds.
    Unsigned(u64),
    /// Everything else as text: text as it is, other numbers in decimal, lists and objects as JSON or what they are.
    Text(Cow<'a, str>),
}

/// What rows are handed to: the number of each, from 1, and its fields, or why it has none. It answers whether to go on.
pub type EachRow<'f> = dyn FnMut(u64, Result<&[Field<'_>], RowFault>) -> bool + 'f;

impl Field<'_> {
    /// As text; null is empty.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Field::Null => Cow::Borrowed(""),
            Field::Unsigned(number) => Cow::Owned(number.to_string()),
            Field::Text(text) => Cow::Borrowed(text),
        }
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}
