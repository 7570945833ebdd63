//! An example of an operation, for tests of all operations.

use super::{GraphAnswer, Operation};
use serde_json::{Map, Value, json};

/// A request with an answer to it.
#[derive(Debug)]
pub struct Example {
    /// The request line.
    pub line: &'static str,
    /// The answer.
    pub answer: GraphAnswer,
    /// The answer as JSON.
    pub json: &'static str,
}

impl Example {
    pub(super) fn new(line: &'static str, answer: GraphAnswer, json: &'static str) -> Self {
        Self { line, answer, json }
    }

    pub(super) fn fields(&self) -> Map<String, Value> {
        serde_json::from_str(self.line).expect(self.line)
    }

    /// The operation, without its page.
    ///
    /// # Panics
    /// If the line is no request of an operation.
    pub fn operation(&self) -> Operation {
        let mut fields = self.fields();
        let op = fields.remove("op").expect("a line has an operation");
        for option in ["graph", "limit", "after"] {
            fields.remove(option);
        }
        let op = op.as_str().expect("a name").to_owned();
        serde_json::from_value(json!({ op: fields })).expect(self.line)
    }
}
