//! The faults of a line, and the wrong lines of one file.

use crate::rows::id::NotAnId;
use crate::rows::wrong::WrongRows;
use kith_schema::ColumnKind;
use std::fmt;

/// The longest part of a wrong line that is shown, in characters.
const EXCERPT_CHARS_MAX: usize = 60;

/// The fault in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineFault {
    /// The line has another number of columns than the first line of its file.
    ColumnCount {
        /// The number of columns of the first line.
        expected: usize,
        /// The number of columns of this line.
        got: usize,
    },
    /// An id is missing.
    EmptyId,
    /// An id has a character that is not a decimal digit.
    NotANumber,
    /// An id is below zero.
    NegativeId,
    /// An id needs more than 64 bits.
    IdTooLarge,
    /// An id is a floating-point number that is too large to be exact.
    Rounded,
    /// The value of a kept column is not of the column's kind.
    ColumnValue(ColumnKind),
    /// A column that must be text is not UTF-8.
    NotText,
    /// The fields of an object or association cannot be stored, for this reason.
    Fields(String),
    /// The cluster refused to write the object or association, for this reason.
    Refused(String),
    /// The name of an entity kind is not a valid component name.
    KindName,
    /// A quoted field has no closing quote.
    UnclosedQuote,
    /// A closing quote is followed by more text.
    TextAfterQuote,
    /// A line of a JSON file is not an object of distinct members.
    NotAnObject,
}

impl LineFault {
    /// The name under which lines with this fault are counted.
    pub fn reason(&self) -> &'static str {
        match self {
            LineFault::ColumnCount { .. } => "wrong column count",
            LineFault::EmptyId => "empty id",
            LineFault::NotANumber => "id not a number",
            LineFault::NegativeId => "negative id",
            LineFault::IdTooLarge => "id too large",
            LineFault::Rounded => "id in a floating-point column",
            LineFault::ColumnValue(_) => "bad column value",
            LineFault::NotText => "not UTF-8 text",
            LineFault::Fields(_) => "bad data",
            LineFault::Refused(_) => "refused by the cluster",
            LineFault::KindName => "bad kind name",
            LineFault::UnclosedQuote => "unclosed quote",
            LineFault::TextAfterQuote => "text after a closing quote",
            LineFault::NotAnObject => "not a JSON object",
        }
    }
}

impl From<NotAnId> for LineFault {
    fn from(fault: NotAnId) -> Self {
        match fault {
            NotAnId::Empty => LineFault::EmptyId,
            NotAnId::NotANumber => LineFault::NotANumber,
            NotAnId::Negative => LineFault::NegativeId,
            NotAnId::TooLarge => LineFault::IdTooLarge,
        }
    }
}

/// One wrong line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// Its number in the decompressed file, from 1.
    pub line: u64,
    /// `line` for text and JSON, `row` for tables.
    pub unit: &'static str,
    /// The faulty column, if one is.
    pub column: Option<String>,
    /// The fault.
    pub fault: LineFault,
    /// The beginning of the line, with control characters escaped.
    pub excerpt: String,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column.as_deref().unwrap_or("the line");
        write!(f, "{} {}: ", self.unit, self.line)?;
        match &self.fault {
            LineFault::ColumnCount { expected, got } => {
                write!(f, "expected {expected} columns, got {got}")
            }
            LineFault::EmptyId => write!(f, "{column} is empty"),
            LineFault::NotANumber => write!(f, "{column} is not a whole number"),
            LineFault::NegativeId => write!(f, "{column} is negative"),
            LineFault::IdTooLarge => write!(f, "{column} is above {}", u64::MAX),
            LineFault::Rounded => write!(
                f,
                "{column} is a floating-point number of 2^53 or more and may have been rounded; write the ids as whole numbers or text"
            ),
            LineFault::ColumnValue(ColumnKind::Time) => {
                write!(f, "{column} is not a time from 1970 on, in milliseconds or as 2026-11-25T08:00:00Z")
            }
            LineFault::ColumnValue(kind) => write!(f, "{column} is not of kind {}", kind.name()),
            LineFault::NotText => write!(f, "{column} is not UTF-8 text"),
            LineFault::Fields(why) => write!(f, "{column}: {why}"),
            LineFault::Refused(why) => write!(f, "{why}"),
            LineFault::KindName => {
                write!(f, "{column} is not a name (1 to 64 letters, digits, '_' or '-')")
            }
            LineFault::UnclosedQuote => write!(f, "a quoted field is not closed"),
            LineFault::TextAfterQuote => write!(f, "text follows a closing quote"),
            LineFault::NotAnObject => write!(f, "the line is not one JSON object of distinct members"),
        }?;
        if self.excerpt.is_empty() {
            return Ok(());
        }
        write!(f, ": \"{}\"", self.excerpt)
    }
}

/// The wrong lines of one file, counted by [`LineFault::reason`].
pub type LineErrors = WrongRows<LineError>;

/// The beginning of a line, fit for one line of a message.
pub(super) fn excerpt(line: &[u8]) -> String {
    // A character has at most four bytes, so the rest of a huge line need not be read.
    let head = &line[..line.len().min(EXCERPT_CHARS_MAX * 4 + 4)];
    let text = String::from_utf8_lossy(head);
    let mut out = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == EXCERPT_CHARS_MAX {
            out.push('…');
            break;
        }
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt(b"1,2\t\x00"), "1,2\\t\\u{0}");
        assert_eq!(excerpt("é".repeat(80).as_bytes()), "é".repeat(60) + "…");
        assert_eq!(excerpt(&[0xff, b'1']), "\u{fffd}1");
    }

    #[test]
    fn only_the_first_ten_are_kept_but_all_are_counted() {
        let mut errors = LineErrors::default();
        for line in 1..=12 {
            let fault = if line % 2 == 0 { LineFault::EmptyId } else { LineFault::NotANumber };
            errors.record(fault.reason(), || LineError {
                line,
                unit: "line",
                column: None,
                fault,
                excerpt: String::new(),
            });
        }
        assert_eq!((errors.first.len(), errors.total()), (10, 12));
        assert_eq!(errors.by_reason["empty id"], 6);
    }
}
