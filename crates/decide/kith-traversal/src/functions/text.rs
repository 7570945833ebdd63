//! Functions of text: `length`, `toLower`, `toUpper`, `trim`, `lTrim`, `rTrim`, `replace`, `split`, `substring` and `concat`.

use crate::{
    GremlinError, Result,
    semantics::lists,
    value::{Scope, Value},
};
use std::sync::Arc;

/// A step that turns one text into a value. Of null it makes null.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the variants and fields have the names of Gremlin's steps and their arguments"
)]
pub enum TextFunction {
    /// An `Int`.
    Length,
    ToLower,
    ToUpper,
    Trim,
    LTrim,
    RTrim,
    /// Replaces nothing if `old` is empty or one of them is null.
    Replace {
        old: Option<Arc<str>>,
        new: Option<Arc<str>>,
    },
    /// Splits at white space without a separator, and after each character if the separator is empty.
    Split {
        separator: Option<Arc<str>>,
    },
    /// From `start` up to `end`, which is not included. Negative positions count from the end.
    Substring {
        start: i32,
        end: Option<i32>,
    },
}

impl TextFunction {
    /// The name of the step.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::ToLower => "toLower",
            Self::ToUpper => "toUpper",
            Self::Trim => "trim",
            Self::LTrim => "lTrim",
            Self::RTrim => "rTrim",
            Self::Replace { .. } => "replace",
            Self::Split { .. } => "split",
            Self::Substring { .. } => "substring",
        }
    }

    /// The result for a text. With a local scope, the list of the results for a collection's members.
    ///
    /// # Errors
    ///
    /// The value, or a member with a local scope, is neither a text nor null.
    pub fn apply(&self, value: &Value, scope: Scope) -> Result<Value> {
        let one = |value: &Value| match value {
            Value::Null => Ok(Value::Null),
            Value::String(text) => Ok(self.of_text(text)),
            _ => Err(self.wrong_type(value, scope)),
        };
        if scope == Scope::Local
            && let Some(members) = lists::values(value)?
        {
            let results: Vec<Value> = members.iter().map(one).collect::<Result<_>>()?;
            return Ok(Value::list(results));
        }
        one(value)
    }

    fn wrong_type(&self, value: &Value, scope: Scope) -> GremlinError {
        let (name, found) = (self.name(), value.type_name());
        GremlinError::bad(match scope {
            Scope::Global => {
                format!("The {name}() step can only take string as argument, encountered {found}")
            }
            Scope::Local => {
                format!("The {name}(local) step can only take string or list of strings, encountered {found}")
            }
        })
    }

    fn of_text(&self, text: &Arc<str>) -> Value {
        match self {
            Self::Length => Value::Int(i32::try_from(text.encode_utf16().count()).unwrap_or(i32::MAX)),
            Self::ToLower => Value::text(text.to_lowercase()),
            Self::ToUpper => Value::text(text.to_uppercase()),
            Self::Trim => Value::text(text.trim_matches(is_white_space)),
            Self::LTrim => Value::text(text.trim_start_matches(is_white_space)),
            Self::RTrim => Value::text(text.trim_end_matches(is_white_space)),
            Self::Replace { old: Some(old), new: Some(new) } if !old.is_empty() => {
                Value::text(text.replace(&**old, new))
            }
            Self::Replace { .. } => Value::String(text.clone()),
            Self::Split { separator } => split(text, separator.as_deref()),
            Self::Substring { start, end } => Value::text(substring(text, *start, *end)),
        }
    }
}

/// The white space of Java: separators that allow a line break, and some control characters.
fn is_white_space(character: char) -> bool {
    match character {
        '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}' => false,
        '\u{1c}'..='\u{1f}' => true,
        _ => character.is_whitespace(),
    }
}

/// The parts of a text between separators. Separators side by side, and at the begin, count as one.
fn split(text: &str, separator: Option<&str>) -> Value {
    let parts: Vec<Value> = match separator {
        None => text.split(is_white_space).filter(|part| !part.is_empty()).map(Value::from).collect(),
        // As `String.split` of Java, which does not split an empty text.
        Some("") if text.is_empty() => vec![Value::from("")],
        Some("") => text.chars().map(|character| Value::text(character.to_string())).collect(),
        Some(separator) => {
            let mut parts = text.split(separator).peekable();
            let mut kept = Vec::new();
            while let Some(part) = parts.next() {
                // As in the library that TinkerPop uses, what follows the last separator is kept even if it is empty.
                if !part.is_empty() || (parts.peek().is_none() && !text.is_empty()) {
                    kept.push(Value::from(part));
                }
            }
            kept
        }
    };
    Value::list(parts)
}

/// The code units from `start` up to `end`. Half of a character outside of 16 bits becomes U+FFFD.
fn substring(text: &str, start: i32, end: Option<i32>) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let position = |index: i32| match usize::try_from(index) {
        Ok(index) => index.min(units.len()),
        Err(_) => units.len().saturating_sub(index.unsigned_abs() as usize),
    };
    let (start, end) = (position(start), end.map_or(units.len(), position));
    String::from_utf16_lossy(units.get(start..end).unwrap_or_default())
}

/// A text followed by others. Nulls are left out; only nulls make null.
///
/// # Errors
///
/// A value is neither a text nor null.
pub fn concat<'a>(value: &'a Value, others: impl IntoIterator<Item = &'a Value>) -> Result<Value> {
    let mut joined: Option<String> = None;
    for part in std::iter::once(value).chain(others) {
        match part {
            Value::Null => {}
            Value::String(text) => joined.get_or_insert_default().push_str(text),
            _ => {
                let found = part.type_name();
                return Err(GremlinError::bad(format!(
                    "String concat() can only take string as argument, encountered {found}"
                )));
            }
        }
    }
    Ok(joined.map_or(Value::Null, Value::text))
}
