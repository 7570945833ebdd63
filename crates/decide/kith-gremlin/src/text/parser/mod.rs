//! The parser: recursive descent over tokens, with one token of lookahead besides the current one.

mod chain;
mod collections;
mod names;
mod predicates;
mod source;

use self::collections::CollectionParser;
use super::{
    DEPTH_MAX, Inputs, TextError,
    tokens::{Lexer, Token},
};
use crate::{
    room::{HEAD, Room},
    value::Value,
};

type Result<T> = std::result::Result<T, TextError>;

/// Reads one text.
pub struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The current token.
    token: Token<'a>,
    /// Where the current token begins.
    at: usize,
    inputs: &'a Inputs<'a>,
    /// How many values enclose the current one.
    depth: usize,
    /// How many values the ranges have so far.
    range_values: usize,
    /// How many ids `UUID()` has made.
    uuids: u128,
    /// The memory for what is read.
    room: &'a mut Room,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str, inputs: &'a Inputs<'a>, room: &'a mut Room) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let (at, token) = lexer.take()?;
        Ok(Self { lexer, token, at, inputs, depth: 0, range_values: 0, uuids: 0, room })
    }

    /// Takes room for what is allocated next.
    fn take_room(&mut self, bytes: usize) -> Result<()> {
        self.room.take(bytes).map_err(|error| TextError::of(self.lexer.text(), self.at, error))
    }

    /// Takes room for one more item of a list.
    fn grow<T>(&mut self, list: &mut Vec<T>) -> Result<()> {
        self.room.grow(list).map_err(|error| TextError::of(self.lexer.text(), self.at, error))
    }

    /// Takes room for a step or a call of the source.
    fn take_instruction(&mut self) -> Result<()> {
        self.room.take_instructions(1).map_err(|error| TextError::of(self.lexer.text(), self.at, error))
    }

    /// Takes the current token.
    fn advance(&mut self) -> Result<Token<'a>> {
        let (at, next) = self.lexer.take()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Whether the current token is this symbol.
    fn is(&self, symbol: char) -> bool {
        self.token == Token::Symbol(symbol)
    }

    /// Whether the token after the current one is this symbol.
    fn is_before(&self, symbol: char) -> bool {
        let mut lexer = self.lexer;
        lexer.take().is_ok_and(|(_, token)| token == Token::Symbol(symbol))
    }

    /// Takes this symbol if it is there.
    fn eat(&mut self, symbol: char) -> Result<bool> {
        let found = self.is(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, symbol: char) -> Result<()> {
        match self.eat(symbol)? {
            true => Ok(()),
            false => Err(self.unexpected(&format!("\"{symbol}\""))),
        }
    }

    /// Takes a name. `what` says in an error what it would have named.
    fn name(&mut self, what: &str) -> Result<&'a str> {
        let Token::Name(name) = self.token else {
            return Err(self.unexpected(what));
        };
        self.advance()?;
        Ok(name)
    }

    /// Takes items and commas up to a closing symbol, and that too.
    fn items(&mut self, closing: char, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if self.eat(closing)? {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.eat(closing)? {
                return Ok(());
            }
            if !self.eat(',')? {
                return Err(self.unexpected(&format!("\",\" or \"{closing}\"")));
            }
        }
    }

    /// An error at the current token.
    fn unexpected(&self, expected: &str) -> TextError {
        self.error(self.at, format!("expected {expected}, found {}", self.token))
    }

    fn error(&self, at: usize, message: impl Into<String>) -> TextError {
        TextError::at(self.lexer.text(), at, message)
    }

    fn unsupported(&self, at: usize, what: &str) -> TextError {
        TextError::unsupported(self.lexer.text(), at, what)
    }

    /// A value of any kind.
    fn value(&mut self) -> Result<Value> {
        if self.depth == DEPTH_MAX {
            return Err(self.error(self.at, format!("values are nested more than {DEPTH_MAX} deep")));
        }
        self.depth += 1;
        // Most values point to something.
        self.take_room(HEAD)?;
        let value = self.value_inside();
        self.depth -= 1;
        value
    }

    fn value_inside(&mut self) -> Result<Value> {
        match self.token {
            Token::Number(_) | Token::Text(_) => CollectionParser(self).literal(),
            Token::Symbol('[') => CollectionParser(self).list_or_map(),
            Token::Symbol('{') => CollectionParser(self).set(),
            Token::Symbol('(') => {
                self.advance()?;
                let value = self.value()?;
                self.expect(')')?;
                Ok(value)
            }
            Token::Name(name) => self.named(name),
            _ => Err(self.unexpected("a value")),
        }
    }
}
