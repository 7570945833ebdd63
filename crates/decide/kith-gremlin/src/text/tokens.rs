//! The tokens of Gremlin text.

use super::{
    TextError,
    numbers::{is_part_of_name, number},
    strings::string,
};
use crate::value::Value;
use std::fmt;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub enum Token<'a> {
    /// A word, such as the name of a step or a constant.
    Name(&'a str),
    /// A quoted string.
    Text(String),
    /// A number with its type.
    Number(Value),
    /// One of `( ) [ ] { } , : ; .`
    Symbol(char),
    /// `..`, between the ends of a range.
    Dots,
    /// The text is at its end.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(formatter, "the name {:?}", shortened(name)),
            Self::Text(text) => write!(formatter, "the string {:?}", shortened(text)),
            Self::Number(_) => formatter.write_str("a number"),
            Self::Symbol(symbol) => write!(formatter, "\"{symbol}\""),
            Self::Dots => formatter.write_str("\"..\""),
            Self::End => formatter.write_str("the end of the text"),
        }
    }
}

/// The begin of a text, for messages.
pub fn shortened(text: &str) -> String {
    const CHARACTERS: usize = 40;
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Takes tokens off the front of a text.
#[derive(Clone, Copy)]
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The whole text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The next token, and where it begins.
    pub fn take(&mut self) -> Result<(usize, Token<'a>), TextError> {
        self.skip()?;
        let (begin, rest) = (self.at, &self.text[self.at..]);
        let Some(first) = rest.chars().next() else {
            return Ok((begin, Token::End));
        };
        let second = rest.chars().nth(1);
        let (token, length) = match first {
            '"' | '\'' => {
                let (value, length) =
                    string(rest).map_err(|(at, message)| TextError::at(self.text, begin + at, message))?;
                (Token::Text(value), length)
            }
            '0'..='9' => self.number(rest)?,
            '-' | '+' if second.is_some_and(|second| second.is_ascii_digit()) => self.number(rest)?,
            '-' | '+' if rest[1..].starts_with("Infinity") => {
                let infinity = if first == '-' { f64::NEG_INFINITY } else { f64::INFINITY };
                (Token::Number(Value::Double(infinity)), 1 + "Infinity".len())
            }
            '-' if second == Some('>') => {
                return Err(TextError::unsupported(self.text, begin, "a lambda"));
            }
            '.' if second == Some('.') => (Token::Dots, 2),
            '(' | ')' | '[' | ']' | '{' | '}' | ',' | ':' | ';' | '.' => (Token::Symbol(first), 1),
            _ if first.is_alphabetic() || matches!(first, '_' | '$') => {
                let length = rest.find(|character| !is_part_of_name(character)).unwrap_or(rest.len());
                (Token::Name(&rest[..length]), length)
            }
            _ => {
                return Err(TextError::at(self.text, begin, format!("unexpected character {first:?}")));
            }
        };
        self.at += length;
        Ok((begin, token))
    }

    fn number(&self, rest: &str) -> Result<(Token<'a>, usize), TextError> {
        let (value, length) = number(rest).map_err(|message| TextError::at(self.text, self.at, message))?;
        Ok((Token::Number(value), length))
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), TextError> {
        loop {
            let rest = self.text[self.at..].trim_start();
            self.at = self.text.len() - rest.len();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let error = || TextError::at(self.text, self.at, "this comment has no end (*/)");
                let end = comment.find("*/").ok_or_else(error)?;
                self.at += "/*".len() + end + "*/".len();
            } else {
                return Ok(());
            }
        }
    }
}
