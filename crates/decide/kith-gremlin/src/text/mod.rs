//! Reads Gremlin text, such as `g.V().has("age", gt(30)).out("knows").values("name")`, into bytecode.
//!
//! The language is gremlin-language of TinkerPop 3.8: calls with literals, no expressions and no lambdas. The bytecode is the
//! one that gremlin-python makes of the same traversal. The reader checks that names of steps and constants exist; whether a
//! step takes such arguments is checked when the traversal is compiled.
//!
//! ```
//! use kith_gremlin::{text, value::Map};
//!
//! let bindings = Map::default();
//! let inputs = text::Inputs { bindings: &bindings, now: chrono::DateTime::UNIX_EPOCH.fixed_offset(), entropy: 7 };
//! let script = text::parse(r#"g.V(1).out("knows").toList()"#, &inputs)?;
//! assert_eq!(&*script.source, "g");
//! assert_eq!(script.bytecode.steps.len(), 2);
//! assert_eq!(script.terminal, Some(text::Terminal::ToList));
//! # Ok::<(), text::TextError>(())
//! ```

mod error;
mod numbers;
mod parser;
mod strings;
#[cfg(test)]
mod tests;
mod tokens;
mod words;

pub use error::TextError;
pub use words::STEPS;

use crate::{
    bytecode::{Bytecode, Instruction},
    room::Room,
    value::{Map, Value},
};
use chrono::{DateTime, FixedOffset};
use std::sync::Arc;

/// Longer texts are refused. Long lists of values belong in bindings.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Traversals, collections and predicates can be nested this deep.
pub const DEPTH_MAX: usize = 100;
/// All ranges of a text, such as `1..5`, have this many values at most.
pub const RANGE_VALUES_MAX: usize = 100_000;

/// The names that a text can use besides its own words.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The values of variables, by name. A variable hides a constant of the same name, such as `id`.
    pub bindings: &'a Map,
    /// The time that `datetime()` stands for.
    pub now: DateTime<FixedOffset>,
    /// Random bits, from which `UUID()` makes ids.
    pub entropy: u128,
}

/// A traversal, and what was written around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The name of the traversal source: the word before the first dot.
    pub source: Arc<str>,
    /// The traversal.
    pub bytecode: Bytecode,
    /// The method at the end that says what becomes of the results.
    pub terminal: Option<Terminal>,
}

impl Script {
    /// The traversal with a last step that keeps it from returning more than the method at its end needs. A profile stays the
    /// last step; `explain()` becomes the last instruction.
    pub fn into_bytecode(self) -> Bytecode {
        let mut bytecode = self.bytecode;
        let is_profiled = bytecode.steps.last().is_some_and(|step| &*step.name == "profile");
        let limit = |count| Instruction::new("limit", vec![Value::Long(count)]);
        let last = match self.terminal {
            Some(Terminal::Explain) => Some(Instruction::new(EXPLAIN, Vec::new())),
            _ if is_profiled => None,
            Some(Terminal::Next(count)) => Some(limit(count.unwrap_or(1).into())),
            Some(Terminal::HasNext | Terminal::TryNext) => Some(limit(1)),
            Some(Terminal::Iterate) => Some(Instruction::new("discard", Vec::new())),
            None | Some(Terminal::ToList | Terminal::ToSet | Terminal::ToBulkSet) => None,
        };
        bytecode.steps.extend(last);
        bytecode
    }
}

/// Whether a text is a traversal that may change the graph. A text that cannot be read changes nothing.
pub fn changes_graph(text: &str, bindings: &Map) -> bool {
    let inputs = Inputs { bindings, now: DateTime::UNIX_EPOCH.fixed_offset(), entropy: 0 };
    parse(text, &inputs).is_ok_and(|script| script.bytecode.changes_graph())
}

/// The name of the instruction that asks for the plan of the instructions before it, in place of their results.
pub const EXPLAIN: &str = "explain";

/// A method at the end of a traversal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// `next()`, or `next(n)` for up to `n` results.
    Next(Option<u32>),
    /// `toList()`
    ToList,
    /// `toSet()`
    ToSet,
    /// `toBulkSet()`
    ToBulkSet,
    /// `iterate()`, which drops the results.
    Iterate,
    /// `hasNext()`
    HasNext,
    /// `tryNext()`
    TryNext,
    /// `explain()`, which runs nothing.
    Explain,
}

/// Reads a text that holds one traversal.
///
/// # Errors
///
/// The text is no Gremlin, uses a name that does not exist, or is too long or too deeply nested. The error says where.
pub fn parse(text: &str, inputs: &Inputs<'_>) -> Result<Script, TextError> {
    parse_within(text, inputs, &mut Room::alone())
}

/// Reads a text that holds one traversal, which takes no more memory than there is room.
///
/// # Errors
///
/// Those of [`parse`] and [`Room::take`].
pub fn parse_within(text: &str, inputs: &Inputs<'_>, room: &mut Room) -> Result<Script, TextError> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!(
            "the text has {} bytes, but at most {TEXT_BYTES_MAX} are allowed; pass large values as bindings",
            text.len()
        );
        return Err(TextError::at(text, 0, message));
    }
    parser::Parser::new(text, inputs, room)?.script()
}
