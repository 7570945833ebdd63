//! Reads expressions into postfix order, by recursive descent.

use super::{Binary, Expression, Operation, function::Function};
use crate::{GremlinError, Result};
use strum::VariantNames;

/// Parentheses, functions, signs and powers can be nested this deep.
const DEPTH_MAX: usize = 100;

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    expression: Expression,
}

/// Reads a whole text.
pub fn parse(text: &str) -> Result<Expression> {
    let expression = Expression { operations: Vec::new(), variables: Vec::new() };
    let mut parser = Parser { text, at: 0, depth: 0, expression };
    parser.sum()?;
    match parser.peek() {
        None => Ok(parser.expression),
        Some(_) => Err(parser.unexpected("an operator or the end")),
    }
}

impl<'a> Parser<'a> {
    /// The text from the next character that is no white space.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn peek(&mut self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, symbol: char) -> bool {
        let found = self.peek() == Some(symbol);
        if found {
            self.at += symbol.len_utf8();
        }
        found
    }

    fn push(&mut self, operation: Operation) {
        self.expression.operations.push(operation);
    }

    /// Terms joined by `+` and `-`.
    fn sum(&mut self) -> Result<()> {
        self.product()?;
        loop {
            let binary = match self.peek() {
                Some('+') => Binary::Add,
                Some('-') => Binary::Subtract,
                _ => return Ok(()),
            };
            self.at += 1;
            self.product()?;
            self.push(Operation::Binary(binary));
        }
    }

    /// Factors joined by `*`, `/` and `%`.
    fn product(&mut self) -> Result<()> {
        self.signed()?;
        loop {
            let binary = match self.peek() {
                Some('*') => Binary::Multiply,
                Some('/') => Binary::Divide,
                Some('%') => Binary::Remainder,
                _ => return Ok(()),
            };
            self.at += 1;
            self.signed()?;
            self.push(Operation::Binary(binary));
        }
    }

    /// A power with any number of signs.
    fn signed(&mut self) -> Result<()> {
        let mut is_negative = false;
        while let Some(sign @ ('+' | '-')) = self.peek() {
            is_negative ^= sign == '-';
            self.at += 1;
        }
        self.power()?;
        if is_negative {
            self.push(Operation::Negate);
        }
        Ok(())
    }

    fn power(&mut self) -> Result<()> {
        self.operand()?;
        if self.eat('^') {
            self.nested(Self::signed)?;
            self.push(Operation::Binary(Binary::Power));
        }
        Ok(())
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(GremlinError::bad(format!(
                "an expression of math() is nested more than {DEPTH_MAX} deep"
            )));
        }
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// A number, a variable, a function, or an expression in parentheses.
    fn operand(&mut self) -> Result<()> {
        let rest = self.rest();
        match rest.chars().next() {
            Some('(') => self.parenthesised(),
            Some('0'..='9' | '.') => self.number(rest),
            Some(first) if first.is_alphabetic() || first == '_' => {
                let is_inside = |character: char| character.is_alphanumeric() || character == '_';
                let length = rest.find(|character| !is_inside(character)).unwrap_or(rest.len());
                self.at += length;
                self.named(&rest[..length])
            }
            _ => Err(self.unexpected("a number, a variable or a function")),
        }
    }

    fn parenthesised(&mut self) -> Result<()> {
        self.at += 1;
        self.nested(Self::sum)?;
        match self.eat(')') {
            true => Ok(()),
            false => Err(self.unexpected("an operator or \")\"")),
        }
    }

    fn number(&mut self, rest: &str) -> Result<()> {
        let bytes = rest.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = digits(0);
        if bytes.get(end) == Some(&b'.') {
            end += 1 + digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let begin = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let count = bytes.get(begin..).map_or(0, |_| digits(begin));
            end = if count == 0 { end } else { begin + count };
        }
        let Ok(number) = rest[..end].parse() else {
            return Err(self.unexpected("a number"));
        };
        self.at += end;
        self.push(Operation::Number(number));
        Ok(())
    }

    fn named(&mut self, name: &str) -> Result<()> {
        if let Ok(function) = name.parse::<Function>() {
            // Without parentheses, the argument is all that follows.
            if self.peek() == Some('(') {
                self.parenthesised()?
            } else {
                self.nested(Self::sum)?
            }
            self.push(Operation::Function(function));
            return Ok(());
        }
        if self.peek() == Some('(') {
            let known = Function::VARIANTS.join(", ");
            return Err(GremlinError::bad(format!(
                "math() has no function {name:?}; its functions are {known}"
            )));
        }
        let variables = &mut self.expression.variables;
        let index = variables.iter().position(|known| &**known == name).unwrap_or_else(|| {
            variables.push(name.into());
            variables.len() - 1
        });
        self.push(Operation::Variable(index));
        Ok(())
    }

    fn unexpected(&mut self, expected: &str) -> GremlinError {
        let found = self.peek().map_or("the end".to_owned(), |character| format!("{character:?}"));
        let column = self.text[..self.at].chars().count() + 1;
        GremlinError::bad(format!(
            "expected {expected} at character {column} of the expression of math(), found {found}"
        ))
    }
}
