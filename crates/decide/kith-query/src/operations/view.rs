//! Answers as people read them: text of which a terminal makes tables. The JSON is what the same types serialize as.

use crate::GraphAnswer;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use thiserror::Error;

/// The answer is of another kind than the operation's, which is a defect of the process that answered.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the answer does not fit the question: {0}")]
pub struct WrongAnswer(pub String);

impl WrongAnswer {
    /// The error for an answer of another kind.
    pub(crate) fn kind(answer: &GraphAnswer) -> Self {
        Self(format!("{answer:.60?}"))
    }
}

/// An answer as it is printed: its JSON, and its text for people.
pub trait PrintedAnswer: Serialize {
    /// The text for people.
    fn text(&self) -> Vec<Block>;
}

/// A part of an answer's text.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A line of its own.
    Line(String),
    /// A number on a line of its own.
    Count(u64),
    /// A set of ids. A terminal may show only the first of them.
    Ids {
        /// The kind of the ids.
        title: &'static str,
        /// The ids.
        ids: Vec<u64>,
    },
    /// A table.
    Table {
        /// The heading of each column.
        columns: Vec<Column>,
        /// The cells of each row.
        rows: Vec<Vec<Cell>>,
    },
}

/// The heading of a column, with the side to which its cells are aligned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// Whether the cells are aligned to the right, as numbers are.
    pub is_right: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A text, or a number that is printed digit by digit, such as an id.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A time in milliseconds since 1970-01-01 UTC.
    Time(u64),
    /// The fields of an object or association, as the JSON that a node wrote.
    Fields {
        /// Whether they are an object's, not an association's.
        is_object: bool,
        /// The name of the type.
        kind: String,
        /// The JSON.
        json: String,
    },
}

impl Column {
    /// A column of names.
    pub(crate) fn left(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_right: false }
    }

    /// A column of numbers.
    pub(crate) fn right(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_right: true }
    }
}

impl Cell {
    /// A text, an id, or another number that is printed digit by digit.
    pub(crate) fn text(text: impl ToString) -> Self {
        Self::Text(text.to_string())
    }
}

/// JSON that is printed exactly as a node wrote it.
#[derive(Clone, Debug)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The name under which it serializes as a newtype, so that serializers of other forms than JSON can tell that its text
    /// is JSON.
    pub const NAME: &'static str = "kith_query::Json";

    pub(crate) fn of(text: String) -> Result<Self, WrongAnswer> {
        let json = RawValue::from_string(text);
        json.map(Self).map_err(|error| WrongAnswer(format!("fields that are not JSON: {error}")))
    }

    /// The JSON.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(Self::NAME, &self.0)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}
