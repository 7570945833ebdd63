//! The parser of controllers.

use super::{Argument, ConfigError, ControllerConfig};
use std::str::FromStr;

/// The maximum depth to which controllers may be nested.
const DEPTH_MAX: usize = 4;

impl FromStr for ControllerConfig {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let mut reader = Reader { text, at: 0 };
        let config = reader.controller(DEPTH_MAX)?;
        if reader.peek().is_some() { Err(reader.expected("the end")) } else { Ok(config) }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn controller(&mut self, depth: usize) -> Result<ControllerConfig, ConfigError> {
        let name = self.word();
        if name.is_empty() {
            return Err(self.expected("a name"));
        }
        let mut arguments = Vec::new();
        if self.eat('(') && !self.eat(')') {
            loop {
                arguments.push(self.argument(depth)?);
                if self.eat(')') {
                    break;
                }
                if !self.eat(',') {
                    return Err(self.expected("a comma or a closing parenthesis"));
                }
            }
        }
        Ok(ControllerConfig { name, arguments })
    }

    fn argument(&mut self, depth: usize) -> Result<Argument, ConfigError> {
        let start = self.at;
        let word = self.word();
        if let Ok(number) = word.parse() {
            return Ok(Argument::Number(number));
        }
        if self.eat('=') {
            let number = self.word();
            return match number.parse() {
                Ok(number) => Ok(Argument::Named(word, number)),
                Err(_) => Err(self.expected("a number")),
            };
        }
        if depth == 0 {
            return Err(self.expected("at most four controllers inside each other"));
        }
        self.at = start;
        Ok(Argument::Controller(self.controller(depth - 1)?))
    }

    /// Reads letters, digits and `-+._`, and skips the blanks before them.
    fn word(&mut self) -> String {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-+._".contains(c)).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_blanks();
        self.text[self.at..].chars().next()
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn expected(&self, expected: &'static str) -> ConfigError {
        ConfigError::Syntax { text: self.text.to_owned(), expected, at: self.at }
    }
}
