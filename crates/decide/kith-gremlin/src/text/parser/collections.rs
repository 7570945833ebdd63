//! Literals, ranges and collections.

use super::{Parser, Result};
use crate::{
    room::{GROWING_ENTRY, HEAD, VALUE},
    text::{RANGE_VALUES_MAX, TextError, tokens::Token},
    value::{Map, Set, Value},
};

/// Parses literals, ranges and collections with the tokens of a parser.
pub(super) struct CollectionParser<'r, 'a>(pub(super) &'r mut Parser<'a>);

impl CollectionParser<'_, '_> {
    /// A number, a string, or a range of them.
    pub(super) fn literal(&mut self) -> Result<Value> {
        let begin = self.0.at;
        let first = self.plain_literal()?;
        if self.0.token != Token::Dots {
            return Ok(first);
        }
        self.0.advance()?;
        let last = match self.0.token {
            Token::Number(_) | Token::Text(_) => self.plain_literal()?,
            _ => return Err(self.0.unexpected("the last value of the range")),
        };
        self.range(begin, &first, &last)
    }

    fn plain_literal(&mut self) -> Result<Value> {
        let before = self.0.at;
        let token = self.0.advance()?;
        // A number or a text takes no more than it takes in the text, besides its head.
        self.0.take_room(self.0.at - before)?;
        Ok(match token {
            Token::Number(number) => number,
            Token::Text(text) => Value::text(text),
            _ => Value::Null,
        })
    }

    /// The list of all values from the first to the last, up or down.
    fn range(&mut self, at: usize, first: &Value, last: &Value) -> Result<Value> {
        let (prefix, first, last) = match (first, last) {
            (Value::Int(first), Value::Int(last)) => (None, *first, *last),
            (Value::String(first), Value::String(last)) => match (split_last(first), split_last(last)) {
                (Some((prefix, first)), Some((same, last))) if prefix == same => {
                    (Some(prefix), first as i32, last as i32)
                }
                _ => return Err(self.range_error(at)),
            },
            _ => return Err(self.range_error(at)),
        };
        let count = first.abs_diff(last) as usize + 1;
        self.0.range_values = self.0.range_values.saturating_add(count);
        if self.0.range_values > RANGE_VALUES_MAX {
            let message = format!("the ranges of a text can have at most {RANGE_VALUES_MAX} values");
            return Err(self.0.error(at, message));
        }
        self.0.take_room(count * (VALUE + prefix.map_or(0, |prefix| HEAD + prefix.len())))?;
        let value = |number: i32| match prefix {
            None => Some(Value::Int(number)),
            Some(prefix) => {
                let character = u32::try_from(number).ok().and_then(char::from_u32)?;
                Some(Value::text(format!("{prefix}{character}")))
            }
        };
        let values: Vec<Value> = match first <= last {
            true => (first..=last).filter_map(value).collect(),
            false => (last..=first).rev().filter_map(value).collect(),
        };
        Ok(Value::list(values))
    }

    fn range_error(&self, at: usize) -> TextError {
        self.0.error(at, "a range has two Int, or two strings that differ in their last characters only")
    }

    /// `[1, 2]`, `[:]`, `[a: 1, (T.id): 2]`
    pub(super) fn list_or_map(&mut self) -> Result<Value> {
        self.0.expect('[')?;
        if self.0.eat(':')? {
            self.0.expect(']')?;
            return Ok(Value::Map(Map::default().into()));
        }
        if self.0.eat(']')? {
            return Ok(Value::list([]));
        }
        let first = self.key_or_value()?;
        if self.0.eat(':')? { self.map(first) } else { self.list(first) }
    }

    /// The rest of a list after its first value.
    fn list(&mut self, first: Value) -> Result<Value> {
        let mut values = vec![first];
        self.rest(|parser| {
            parser.grow(&mut values)?;
            values.push(parser.value()?);
            Ok(())
        })?;
        Ok(Value::list(values))
    }

    /// The rest of a map after its first colon.
    fn map(&mut self, first: Value) -> Result<Value> {
        let mut entries = Map::default();
        let value = self.0.value()?;
        entries.insert(first, value);
        self.rest(|parser| {
            parser.take_room(GROWING_ENTRY + HEAD)?;
            let key = CollectionParser(parser).key_or_value()?;
            parser.expect(':')?;
            let value = parser.value()?;
            entries.insert(key, value);
            Ok(())
        })?;
        Ok(Value::Map(entries.into()))
    }

    /// The items after the first, up to a closing bracket.
    fn rest(&mut self, item: impl FnMut(&mut Parser<'_>) -> Result<()>) -> Result<()> {
        if self.0.eat(']')? {
            return Ok(());
        }
        if !self.0.is(',') {
            return Err(self.0.unexpected("\",\" or \"]\""));
        }
        self.0.advance()?;
        if self.0.is(']') {
            return Err(self.0.unexpected("a value"));
        }
        self.0.items(']', item)
    }

    /// A value, or the key of a map, which can be a name without quotes.
    fn key_or_value(&mut self) -> Result<Value> {
        match self.0.token {
            Token::Name(name) if self.0.is_before(':') => {
                self.0.advance()?;
                Ok(Value::text(name))
            }
            _ => self.0.value(),
        }
    }

    /// `{1, 2}`
    pub(super) fn set(&mut self) -> Result<Value> {
        self.0.expect('{')?;
        let mut values = Set::default();
        self.0.items('}', |parser| {
            parser.take_room(GROWING_ENTRY)?;
            values.insert(parser.value()?);
            Ok(())
        })?;
        Ok(Value::Set(values.into()))
    }
}

/// The text without its last character, and that.
fn split_last(text: &str) -> Option<(&str, char)> {
    let (at, last) = text.char_indices().next_back()?;
    Some((&text[..at], last))
}
