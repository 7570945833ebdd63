//! Predicates: `gt(1)`, `P.between(1, 5).or(P.eq(9))`, `TextP.containing("x")`.

use super::{Parser, Result};
use crate::{
    predicate::Predicate,
    text::{DEPTH_MAX, error::unknown, words},
    value::Value,
};

/// Parses predicates with the tokens of a parser.
pub(super) struct PredicateParser<'r, 'a>(pub(super) &'r mut Parser<'a>);

impl PredicateParser<'_, '_> {
    /// The predicate after `P.` or `TextP.`
    pub(super) fn qualified_predicate(&mut self) -> Result<Value> {
        self.0.expect('.')?;
        let at = self.0.at;
        let name = self.0.name("the name of a predicate")?;
        if words::operands(name).is_none() {
            let known = words::PREDICATES.iter().map(|(name, _)| *name);
            return Err(self.0.error(at, unknown("predicate", name, known)));
        }
        let operands = self.0.arguments()?;
        self.predicate(at, name, operands)
    }

    /// A predicate, with the `and`, `or` and `negate` that follow it.
    pub(super) fn predicate(&mut self, at: usize, name: &str, operands: Vec<Value>) -> Result<Value> {
        let mut predicate = self.single(at, name, operands)?;
        let mut joined = 0;
        while self.0.is('.') {
            self.0.advance()?;
            let at = self.0.at;
            let joint = self.0.name("and, or or negate")?;
            joined += 1;
            if joined > DEPTH_MAX {
                let message = format!("a predicate can be joined with others {DEPTH_MAX} times at most");
                return Err(self.0.error(at, message));
            }
            let arguments = self.0.arguments()?;
            let (operator, operands) = match (joint, arguments.as_slice()) {
                ("and" | "or", [other @ Value::Predicate(_)]) => (joint, vec![predicate, other.clone()]),
                ("negate", []) => ("not", vec![predicate]),
                ("and" | "or", _) => return Err(self.0.error(at, format!("{joint}() takes one predicate"))),
                ("negate", _) => return Err(self.0.error(at, "negate() takes no argument")),
                _ => {
                    let message =
                        format!("a predicate can be followed by and, or or negate, not by {joint:?}");
                    return Err(self.0.error(at, message));
                }
            };
            predicate = join(operator, operands);
        }
        Ok(predicate)
    }

    fn single(&self, at: usize, name: &str, operands: Vec<Value>) -> Result<Value> {
        let expected = words::operands(name).flatten();
        if let Some(expected) = expected.filter(|expected| *expected != operands.len()) {
            let values = if expected == 1 { "value" } else { "values" };
            let message = format!("{name}() takes {expected} {values}, not {}", operands.len());
            return Err(self.0.error(at, message));
        }
        if name == "not" && !matches!(operands[..], [Value::Predicate(_)]) {
            return Err(self.0.error(at, "not() takes a predicate here"));
        }
        Ok(join(name, operands))
    }
}

fn join(operator: &str, operands: Vec<Value>) -> Value {
    Value::Predicate(Predicate { operator: operator.into(), operands }.into())
}
