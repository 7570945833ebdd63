//! Arguments of steps, taken one after the other.

use super::{ByArgument, Kind, Label, StepArgument, Traversal, anonymous, calls::Call};
use crate::{
    bytecode::Instruction,
    error::{GremlinError, Result},
    predicate::Predicate,
    semantics::Test,
    value::{Scope, Symbol, Token, Value},
};
use std::sync::Arc;

/// The arguments of an instruction.
#[derive(Clone, Debug)]
pub(super) struct Arguments<'a> {
    name: &'a str,
    values: &'a [Value],
}

impl<'a> Arguments<'a> {
    pub fn of(instruction: &'a Instruction) -> Result<Self> {
        refuse_lambdas(instruction)?;
        Ok(Self { name: &instruction.name, values: &instruction.arguments })
    }

    /// The number of arguments that are left.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Whether one of the arguments that are left is null.
    pub fn has_null(&self) -> bool {
        self.values.contains(&Value::Null)
    }

    /// The next argument, which stays.
    pub fn peek(&self) -> Option<&'a Value> {
        self.values.first()
    }

    /// The next argument.
    pub fn next(&mut self) -> Option<&'a Value> {
        let (first, rest) = self.values.split_first()?;
        self.values = rest;
        Some(first)
    }

    /// All arguments that are left.
    pub fn rest(&mut self) -> &'a [Value] {
        std::mem::take(&mut self.values)
    }

    /// Refuses further arguments.
    pub fn end(&self) -> Result<()> {
        match self.values {
            [] => Ok(()),
            more => {
                Err(GremlinError::bad(format!("{}() has {} argument(s) too many", self.name, more.len())))
            }
        }
    }

    /// The step that a call stands for, if it has no further arguments and no modulators but these.
    pub fn finish(&self, call: &Call<'_>, modulators: &[&str], kind: Kind) -> Result<Option<Vec<Kind>>> {
        call.allow(modulators)?;
        self.end()?;
        Ok(Some(vec![kind]))
    }

    /// The next argument, which must exist.
    pub fn required(&mut self, what: &str) -> Result<&'a Value> {
        self.next().ok_or_else(|| GremlinError::bad(format!("{}() needs {what}", self.name)))
    }

    fn wrong<T>(&self, what: &str, found: &Value) -> Result<T> {
        let found = found.type_name();
        Err(GremlinError::bad(format!("{}() needs {what}, not a value of type {found}", self.name)))
    }

    pub fn text(&mut self, what: &str) -> Result<Label> {
        match self.required(what)? {
            Value::String(text) => Ok(Arc::clone(text)),
            other => self.wrong(what, other),
        }
    }

    /// All arguments that are left, as strings. Lists are taken apart; null stands for no string.
    pub fn texts(&mut self, what: &str) -> Result<Vec<Label>> {
        let mut texts = Vec::new();
        for value in flat(self.rest()) {
            match value {
                Value::String(text) => texts.push(text),
                Value::Null => {}
                other => return self.wrong(what, &other),
            }
        }
        Ok(texts)
    }

    pub fn whole(&mut self, what: &str) -> Result<i64> {
        let value = self.required(what)?;
        match whole(value) {
            Some(number) => Ok(number),
            None => self.wrong(what, value),
        }
    }

    pub fn flag(&mut self, what: &str) -> Result<bool> {
        match self.required(what)? {
            Value::Bool(flag) => Ok(*flag),
            other => self.wrong(what, other),
        }
    }

    pub fn traversal(&mut self, what: &str) -> Result<Traversal> {
        let value = self.required(what)?;
        match value {
            Value::Traversal(bytecode) => anonymous(bytecode),
            other => self.wrong(what, other),
        }
    }

    /// All arguments that are left, as traversals.
    pub fn traversals(&mut self) -> Result<Vec<Traversal>> {
        let mut all = Vec::with_capacity(self.len());
        while !self.is_empty() {
            all.push(self.traversal("traversals")?);
        }
        Ok(all)
    }

    /// The scope, if that is the next argument.
    pub fn scope(&mut self) -> Option<Scope> {
        match self.peek() {
            Some(Value::Symbol(Symbol::Scope(scope))) => {
                self.next();
                Some(*scope)
            }
            _ => None,
        }
    }

    /// Whether the step is about the value of each traverser (`Scope.local`).
    pub fn is_local(&mut self) -> bool {
        self.scope() == Some(Scope::Local)
    }

    /// A predicate, or a value that must be equal.
    pub fn test(&mut self, what: &str) -> Result<Test> {
        test(self.required(what)?)
    }

    /// The next argument as something that may be known only when the step runs.
    pub fn given(&mut self, what: &str) -> Result<StepArgument> {
        given(self.required(what)?)
    }
}

/// Refuses functions of another language as arguments, also of modulators.
pub(super) fn refuse_lambdas(instruction: &Instruction) -> Result<()> {
    if !instruction.arguments.iter().any(has_lambda) {
        return Ok(());
    }
    Err(GremlinError::unsupported(format!("a lambda as an argument of {}()", instruction.name)))
}

fn has_lambda(value: &Value) -> bool {
    match value {
        Value::Lambda { .. } => true,
        Value::Predicate(predicate) => predicate.operands.iter().any(has_lambda),
        Value::List(values) => values.iter().any(has_lambda),
        _ => false,
    }
}

/// A value or a traversal.
pub(super) fn given(value: &Value) -> Result<StepArgument> {
    Ok(match value {
        Value::Traversal(bytecode) => StepArgument::Traversal(anonymous(bytecode)?),
        value => StepArgument::Value(value.clone()),
    })
}

/// A predicate, or a value that must be equal.
pub(super) fn test(value: &Value) -> Result<Test> {
    match value {
        Value::Predicate(predicate) => Test::compile(predicate),
        value => Test::compile(&Predicate { operator: "eq".into(), operands: vec![value.clone()] }),
    }
}

/// A test that any of several values passes. Lists are taken apart. A single predicate stands for itself.
pub(super) fn any_of(values: &[Value]) -> Result<Test> {
    match values {
        [Value::Predicate(predicate)] => Test::compile(predicate),
        values => Test::compile(&Predicate { operator: "within".into(), operands: flat(values) }),
    }
}

/// Values, with the members of lists and sets in the place of these.
pub(super) fn flat(values: &[Value]) -> Vec<Value> {
    let mut all = Vec::with_capacity(values.len());
    for value in values {
        match value {
            Value::List(members) => all.extend(members.iter().cloned()),
            Value::Set(members) => all.extend(members.iter().cloned()),
            other => all.push(other.clone()),
        }
    }
    all
}

/// The number of a whole number of any type that fits.
pub(super) fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Byte(number) => Some(i64::from(*number)),
        Value::Short(number) => Some(i64::from(*number)),
        Value::Int(number) => Some(i64::from(*number)),
        Value::Long(number) => Some(*number),
        Value::BigInteger(number) => i64::try_from(&**number).ok(),
        _ => None,
    }
}

/// The meaning of the argument of `by`.
pub(super) fn by(name: &str, argument: Option<&Value>) -> Result<ByArgument> {
    Ok(match argument {
        None => ByArgument::Identity,
        Some(Value::String(key)) => ByArgument::Key(Arc::clone(key)),
        Some(Value::Symbol(Symbol::Token(token))) => ByArgument::Token(*token),
        Some(Value::Symbol(Symbol::Column(column))) => ByArgument::Column(*column),
        Some(Value::Traversal(bytecode)) => by_traversal(anonymous(bytecode)?),
        Some(other) => {
            let found = other.type_name();
            return Err(GremlinError::bad(format!(
                "{name}() takes a key, a token such as T.id, or a traversal, not a value of type {found}"
            )));
        }
    })
}

/// A traversal that only takes a token is evaluated as such.
fn by_traversal(traversal: Traversal) -> ByArgument {
    match &*traversal {
        [step] => match &step.kind {
            Kind::Token(token @ (Token::Id | Token::Label)) => ByArgument::Token(*token),
            Kind::Identity => ByArgument::Identity,
            _ => ByArgument::Traversal(traversal),
        },
        _ => ByArgument::Traversal(traversal),
    }
}
