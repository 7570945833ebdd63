//! The expressions of `math`, such as `a + sin(b) * 2`, with the operators and functions of exp4j, which TinkerPop uses.
//!
//! `+ - * / %` associate to the left and `^` to the right, and a sign binds weaker than `^`. A function without parentheses
//! takes all that follows: `sin _ + 1` is `sin(_ + 1)`.

mod function;
mod parse;

use crate::{GremlinError, Result};
use function::Function;
use std::sync::Arc;

/// An expression, read once and evaluated often.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Operations on a stack, in postfix order: evaluation needs no recursion, however long the expression is.
    operations: Vec<Operation>,
    variables: Vec<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Number(f64),
    /// The variable at this index.
    Variable(usize),
    Negate,
    Function(Function),
    Binary(Binary),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// The text is no expression; the error says where.
    pub fn parse(text: &str) -> Result<Self> {
        parse::parse(text)
    }

    /// The number of its operations.
    #[allow(clippy::len_without_is_empty, reason = "an expression has at least one operation")]
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// The names of the variables in the order in which they first occur. `_` stands for the current value.
    pub fn variables(&self) -> &[Arc<str>] {
        &self.variables
    }

    /// The result for these values of the variables, in the order of [`Self::variables`]. Variables beyond them are NaN.
    ///
    /// # Errors
    ///
    /// A number is divided by zero.
    pub fn evaluate(&self, values: &[f64]) -> Result<f64> {
        let mut stack: Vec<f64> = Vec::new();
        let pop = |stack: &mut Vec<f64>| stack.pop().unwrap_or(f64::NAN);
        for operation in &self.operations {
            let result = match operation {
                Operation::Number(number) => *number,
                Operation::Variable(index) => values.get(*index).copied().unwrap_or(f64::NAN),
                Operation::Negate => -pop(&mut stack),
                Operation::Function(function) => function.apply(pop(&mut stack)),
                Operation::Binary(binary) => {
                    let right = pop(&mut stack);
                    binary.apply(pop(&mut stack), right)?
                }
            };
            stack.push(result);
        }
        Ok(pop(&mut stack))
    }
}

impl Binary {
    fn apply(self, left: f64, right: f64) -> Result<f64> {
        if matches!(self, Self::Divide | Self::Remainder) && right == 0.0 {
            return Err(GremlinError::bad("Division by zero in math()"));
        }
        Ok(match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Remainder => left % right,
            Self::Power => left.powf(right),
        })
    }
}
