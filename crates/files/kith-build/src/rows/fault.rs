//! The faults of a row, and the place of a row.

use crate::rows::limits::JSON_DEPTH_MAX;
use crate::rows::wrong::WrongRows;
use kith_schema::{EncodeError, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The place of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLocation {
    /// The name of its source.
    pub file: Arc<str>,
    /// Its number, from 1. In text formats, the number of the line in which it begins.
    pub row: u64,
    /// `line` or `row`, depending on what `row` counts.
    pub unit: &'static str,
}

impl fmt::Display for RowLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.file, self.unit, self.row)
    }
}

/// The fault in a row.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum RowFault {
    /// The row has another number of columns than the first row.
    #[error("expected {expected} columns, got {got}")]
    ColumnCount {
        /// The number of columns of the first row.
        expected: usize,
        /// The number of columns of this row.
        got: usize,
    },
    /// The row has no key.
    #[error("it has no key: {name:?} is missing, null or empty")]
    NoKey {
        /// The name of the key column.
        name: String,
    },
    /// The key should be an id, but is not a whole number from 0 to 2^64 - 1.
    #[error("key {key} is no id: {why}")]
    NotAnId {
        /// The key as written, shortened.
        key: String,
        /// The fault in it.
        why: &'static str,
    },
    /// The key has another type.
    #[error("key is {got}, keys of this store are {expected}")]
    KeyType {
        /// The type of the store's keys.
        expected: &'static str,
        /// The type of the given key.
        got: &'static str,
    },
    /// The key is too long.
    #[error("key has {bytes} bytes, at most {KEY_BYTES_MAX} are allowed")]
    KeyTooLong { bytes: usize },
    /// The row has no value.
    #[error("it has no value: {name:?} is missing or null")]
    NoValue {
        /// The name of the value column.
        name: String,
    },
    /// The value has another type.
    #[error("value is {got}, values of this store are {expected}")]
    ValueType {
        /// The type of the store's values.
        expected: &'static str,
        /// The type of the given value.
        got: &'static str,
    },
    /// The value is too large.
    #[error("value has {bytes} bytes, at most {VALUE_BYTES_MAX} are allowed")]
    ValueTooLarge { bytes: usize },
    /// Bytes are not text.
    #[error("{what} is not UTF-8 text")]
    NotText {
        /// The column, or the line.
        what: String,
    },
    /// Text is not base64.
    #[error("{what} is not base64 text (standard alphabet, padded)")]
    NotBase64 {
        /// Whether it is the key or the value.
        what: &'static str,
    },
    /// Text is not JSON, or not an object where an object is required.
    #[error("{detail} (byte {column})")]
    Json {
        /// The fault.
        detail: String,
        /// The byte position, from 1.
        column: usize,
    },
    /// JSON is nested too deeply.
    #[error("lists and objects are nested deeper than {JSON_DEPTH_MAX}")]
    TooDeep,
    /// A member is repeated.
    #[error("member {name:?} is there twice")]
    Repeated { name: String },
    /// A member has no meaning here.
    #[error("member {name:?} is neither key nor value{}; with --key-field the whole object is the value", near.as_ref().map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default())]
    UnknownMember {
        name: String,
        /// The member that was probably meant.
        near: Option<String>,
    },
    /// A quoted field has no closing quote before the end of the file.
    #[error("a quoted field is not closed")]
    UnclosedQuote,
    /// Text follows the quote that closes a field, as where quotes inside it are escaped by a backslash.
    #[error("text follows a closing quote; quotes inside a quoted field are written twice (\"\")")]
    TextAfterQuote,
    /// The value does not fit the schema.
    #[error(transparent)]
    Record(#[from] EncodeError),
}

impl RowFault {
    /// The name under which rows with this fault are counted.
    pub fn reason(&self) -> &'static str {
        match self {
            RowFault::ColumnCount { .. } => "wrong column count",
            RowFault::NoKey { .. } => "no key",
            RowFault::NotAnId { .. } => "key is no id",
            RowFault::KeyType { .. } => "key of another type",
            RowFault::KeyTooLong { .. } => "key too long",
            RowFault::NoValue { .. } => "no value",
            RowFault::ValueType { .. } => "value of another type",
            RowFault::ValueTooLarge { .. } => "value too large",
            RowFault::NotText { .. } => "not UTF-8",
            RowFault::NotBase64 { .. } => "not base64",
            RowFault::Json { .. } => "not JSON",
            RowFault::TooDeep => "nested too deeply",
            RowFault::Repeated { .. } => "repeated member",
            RowFault::UnknownMember { .. } => "unknown member",
            RowFault::UnclosedQuote => "unclosed quote",
            RowFault::TextAfterQuote => "text after a closing quote",
            RowFault::Record(_) => "does not fit the schema",
        }
    }
}

/// One wrong row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    /// The place of the row.
    pub location: RowLocation,
    /// The fault in it.
    pub fault: RowFault,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.fault)
    }
}

/// The wrong rows of all files, counted by [`RowFault::reason`].
pub type RowErrors = WrongRows<RowError>;

/// The beginning of a text from a file, fit for one line of a message.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    let mut out = format!("{:?}", text.chars().take(CHARS_MAX).collect::<String>());
    if text.chars().nth(CHARS_MAX).is_some() {
        out.push('…');
    }
    out
}
