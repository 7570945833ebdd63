//! The verdicts of the predicates `P` and `TextP` about values.

use super::{
    compare::compare,
    equality::{Members, equal},
    types::{type_named, type_names, type_of, type_of_class},
};
use crate::{
    GremlinError, Result, Room, graphbinary,
    predicate::Predicate,
    value::{GType, Symbol, Value},
};
use kith_schema::nearest;
use kith_types::ErrorCode;
use regex::{Regex, RegexBuilder};
use std::{
    cmp::Ordering,
    fmt::{self, Display, Formatter},
    sync::Arc,
};

/// The operators of predicates.
const OPERATORS: &[&str] = &[
    "eq",
    "neq",
    "gt",
    "gte",
    "lt",
    "lte",
    "between",
    "inside",
    "outside",
    "within",
    "without",
    "typeOf",
    "containing",
    "notContaining",
    "startingWith",
    "notStartingWith",
    "endingWith",
    "notEndingWith",
    "regex",
    "notRegex",
    "and",
    "or",
    "not",
];

/// A compiled regular expression takes at most this much memory: the time of a match grows with it and with the text.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// A regular expression takes texts of at most this many bytes. Nothing can interrupt it.
const REGEX_TEXT_BYTES_MAX: usize = 256 << 10;

/// A predicate whose operator and operands have been checked.
#[derive(Clone, Debug)]
pub struct Test {
    check: Check,
    /// The predicate that it was compiled from, unless it is a part of another.
    source: Option<Arc<Predicate>>,
}

#[derive(Clone, Debug)]
enum Check {
    Equal(Value),
    Compare(fn(Ordering) -> bool, Value),
    Within(Members),
    TypeOf(GType),
    Text(fn(&str, &str) -> bool, Arc<str>),
    Regex(Regex),
    /// A text predicate whose operand is null.
    Never,
    And(Vec<Test>),
    Or(Vec<Test>),
    Not(Box<Test>),
}

impl Display for Test {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(predicate) => predicate.fmt(f),
            None => f.write_str("a part of a predicate"),
        }
    }
}

impl Test {
    /// Checks a predicate and prepares it. `O(n)`; regular expressions are compiled.
    ///
    /// # Errors
    /// The operator is unknown, the operands do not fit it, or one of them is a traversal.
    pub fn compile(predicate: &Predicate) -> Result<Self> {
        if predicate.operands.iter().any(|operand| matches!(operand, Value::Traversal(_))) {
            return Err(GremlinError::unsupported(format!(
                "a traversal as the operand of the predicate {}()",
                predicate.operator
            )));
        }
        let compiled = Self::compile_part(predicate)?;
        Ok(Self { source: Some(Arc::new(predicate.clone())), ..compiled })
    }

    fn compile_part(predicate: &Predicate) -> Result<Self> {
        let one = || operand(predicate);
        Ok(match &*predicate.operator {
            "eq" => Self::of(Check::Equal(one()?)),
            "neq" => !Self::of(Check::Equal(one()?)),
            "gt" => Self::order(Ordering::is_gt, one()?),
            "gte" => Self::order(Ordering::is_ge, one()?),
            "lt" => Self::order(Ordering::is_lt, one()?),
            "lte" => Self::order(Ordering::is_le, one()?),
            "between" | "inside" | "outside" => Self::range(predicate)?,
            "within" => Self::of(Check::Within(Members::new(flat(predicate)))),
            "without" => !Self::of(Check::Within(Members::new(flat(predicate)))),
            "typeOf" => Self::of(Check::TypeOf(named_type(&one()?)?)),
            "containing" => Self::text(predicate, |text, part| text.contains(part))?,
            "notContaining" => !Self::text(predicate, |text, part| text.contains(part))?,
            "startingWith" => Self::text(predicate, |text, part| text.starts_with(part))?,
            "notStartingWith" => !Self::text(predicate, |text, part| text.starts_with(part))?,
            "endingWith" => Self::text(predicate, |text, part| text.ends_with(part))?,
            "notEndingWith" => !Self::text(predicate, |text, part| text.ends_with(part))?,
            "regex" => Self::regex(predicate)?,
            "notRegex" => !Self::regex(predicate)?,
            "and" => Self::of(Check::And(nested(predicate)?)),
            "or" => Self::of(Check::Or(nested(predicate)?)),
            "not" => match <[Self; 1]>::try_from(nested(predicate)?) {
                Ok([inner]) => !inner,
                Err(inner) => return Err(wrong_count(predicate, "one predicate", inner.len())),
            },
            unknown => return Err(unknown_operator(unknown)),
        })
    }

    /// The predicate in GraphBinary, for another process. `None` if it has none, or cannot be coded.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        graphbinary::write_value(&Value::Predicate(Arc::clone(self.source.as_ref()?))).ok()
    }

    /// Reads what [`Test::to_bytes`] has written.
    ///
    /// # Errors
    /// The bytes are no predicate, or one that [`Test::compile`] refuses.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match graphbinary::read_value_within(bytes, &mut Room::alone())? {
            Value::Predicate(predicate) => Self::compile(&predicate),
            other => Err(GremlinError::bad(format!(
                "a predicate is needed, not a value of type {}",
                other.type_name()
            ))),
        }
    }

    /// The value that the predicate compares with, if it is `eq`.
    pub fn equal_value(&self) -> Option<&Value> {
        if let Check::Equal(value) = &self.check { Some(value) } else { None }
    }

    /// The values of which one must be equal, if the predicate is `eq` or `within`.
    pub fn equal_values(&self) -> Option<&[Value]> {
        match &self.check {
            Check::Equal(value) => Some(std::slice::from_ref(value)),
            Check::Within(members) => Some(members.all()),
            _ => None,
        }
    }

    /// A lower and an upper bound of the values for which the predicate holds; `None` where it has no such bound, or the bound
    /// is not known. Values between the bounds need not satisfy the predicate.
    pub fn bounds(&self) -> (Option<&Value>, Option<&Value>) {
        match &self.check {
            Check::Equal(value) => (Some(value), Some(value)),
            Check::Compare(holds, value) => {
                ((!holds(Ordering::Less)).then_some(value), (!holds(Ordering::Greater)).then_some(value))
            }
            Check::And(tests) => tests
                .iter()
                .map(Self::bounds)
                .fold((None, None), |known, next| (known.0.or(next.0), known.1.or(next.1))),
            _ => (None, None),
        }
    }

    /// Whether the predicate holds of a value. A comparison that has no answer, such as one of a text with a number or with
    /// NaN, does not hold; its negation does, as in TinkerPop from 3.8 on.
    pub fn is_true(&self, value: &Value) -> bool {
        match &self.check {
            Check::Equal(operand) => equal(value, operand),
            Check::Compare(holds, operand) => compare(value, operand).is_some_and(holds),
            Check::Within(members) => members.contain(value),
            Check::TypeOf(expected) => type_of(value, *expected),
            Check::Text(holds, part) => value.as_text().is_some_and(|text| holds(text, part)),
            Check::Regex(pattern) => value.as_text().is_some_and(|text| pattern.is_match(text)),
            Check::Never => false,
            Check::And(tests) => tests.iter().all(|test| test.is_true(value)),
            Check::Or(tests) => tests.iter().any(|test| test.is_true(value)),
            Check::Not(test) => !test.is_true(value),
        }
    }

    /// As [`Test::is_true`].
    ///
    /// # Errors
    /// A regular expression meets a text of more than `REGEX_TEXT_BYTES_MAX` bytes.
    pub fn holds(&self, value: &Value) -> Result<bool> {
        if let Some(text) = value.as_text()
            && REGEX_TEXT_BYTES_MAX < text.len()
            && self.has_regex()
        {
            return Err(GremlinError::new(
                ErrorCode::TooLarge,
                format!(
                    "a text of {} bytes is too long for a regular expression, which takes at most {REGEX_TEXT_BYTES_MAX}; \
                     use containing(), startingWith() or endingWith()",
                    text.len()
                ),
            ));
        }
        Ok(self.is_true(value))
    }

    fn has_regex(&self) -> bool {
        match &self.check {
            Check::Regex(_) => true,
            Check::And(tests) | Check::Or(tests) => tests.iter().any(Self::has_regex),
            Check::Not(test) => test.has_regex(),
            _ => false,
        }
    }

    /// The work of testing a value, in units of a simple comparison.
    pub fn effort(&self, value: &Value) -> u64 {
        match &self.check {
            Check::Within(members) => members.effort(value),
            Check::Regex(pattern) => pattern.as_str().len() as u64,
            Check::And(tests) | Check::Or(tests) => tests.iter().map(|test| test.effort(value)).sum(),
            Check::Not(test) => test.effort(value),
            _ => 1,
        }
    }

    /// The work of preparing it for many values.
    pub(super) fn effort_to_compile(&self) -> u64 {
        if let Check::Within(members) = &self.check { members.len() } else { 1 }
    }

    fn of(check: Check) -> Self {
        Self { check, source: None }
    }

    fn order(holds: fn(Ordering) -> bool, operand: Value) -> Self {
        Self::of(Check::Compare(holds, operand))
    }

    fn range(predicate: &Predicate) -> Result<Self> {
        let [first, second] = <[Value; 2]>::try_from(flat(predicate))
            .map_err(|operands| wrong_count(predicate, "two values", operands.len()))?;
        Ok(Self::of(match &*predicate.operator {
            "between" => {
                Check::And(vec![Self::order(Ordering::is_ge, first), Self::order(Ordering::is_lt, second)])
            }
            "inside" => {
                Check::And(vec![Self::order(Ordering::is_gt, first), Self::order(Ordering::is_lt, second)])
            }
            _ => Check::Or(vec![Self::order(Ordering::is_lt, first), Self::order(Ordering::is_gt, second)]),
        }))
    }

    fn text(predicate: &Predicate, holds: fn(&str, &str) -> bool) -> Result<Self> {
        Ok(Self::of(text_operand(predicate)?.map_or(Check::Never, |part| Check::Text(holds, part))))
    }

    fn regex(predicate: &Predicate) -> Result<Self> {
        let Some(pattern) = text_operand(predicate)? else {
            return Ok(Self::of(Check::Never));
        };
        let compiled = RegexBuilder::new(&pattern).size_limit(REGEX_BYTES_MAX).build().map_err(|error| {
            GremlinError::bad(format!(
                "the regular expression of {}() is not valid: {error}. Look-around and back-references are not \
                 available",
                predicate.operator
            ))
        })?;
        Ok(Self::of(Check::Regex(compiled)))
    }
}

impl std::ops::Not for Test {
    type Output = Self;

    fn not(self) -> Self {
        Self::of(Check::Not(Box::new(self)))
    }
}

/// The only operand of a predicate.
fn operand(predicate: &Predicate) -> Result<Value> {
    match predicate.operands.as_slice() {
        [operand] => Ok(operand.clone()),
        operands => Err(wrong_count(predicate, "one value", operands.len())),
    }
}

/// The operands, which some drivers send as one list or set.
fn flat(predicate: &Predicate) -> Vec<Value> {
    match predicate.operands.as_slice() {
        [Value::List(values)] => values.as_ref().clone(),
        [Value::Set(values)] => values.iter().cloned().collect(),
        // How often a value occurs makes no difference.
        [Value::BulkSet(values)] => values.iter().map(|(value, _)| value.clone()).collect(),
        operands => operands.to_vec(),
    }
}

fn text_operand(predicate: &Predicate) -> Result<Option<Arc<str>>> {
    match operand(predicate)? {
        Value::String(text) => Ok(Some(text)),
        Value::Null => Ok(None),
        other => Err(GremlinError::bad(format!(
            "the predicate {}() takes a String, but got a value of type {}",
            predicate.operator,
            other.type_name()
        ))),
    }
}

fn nested(predicate: &Predicate) -> Result<Vec<Test>> {
    let operands = flat(predicate);
    if operands.is_empty() {
        return Err(wrong_count(predicate, "predicates", 0));
    }
    let compile = |operand: &Value| match operand {
        Value::Predicate(inner) => Test::compile(inner),
        other => Err(GremlinError::bad(format!(
            "the predicate {}() takes predicates, but got a value of type {}",
            predicate.operator,
            other.type_name()
        ))),
    };
    operands.iter().map(compile).collect()
}

fn named_type(operand: &Value) -> Result<GType> {
    match operand {
        Value::Symbol(Symbol::GType(token)) => Ok(*token),
        Value::String(name) => type_named(name).ok_or_else(|| unknown_type(name)),
        Value::Class(name) => type_of_class(name).ok_or_else(|| unknown_type(name)),
        other => Err(GremlinError::bad(format!(
            "the predicate typeOf() takes a GType or the name of a type, but got a value of type {}",
            other.type_name()
        ))),
    }
}

fn wrong_count(predicate: &Predicate, takes: &str, count: usize) -> GremlinError {
    GremlinError::bad(format!("the predicate {}() takes {takes}, but got {count} values", predicate.operator))
}

fn unknown_type(name: &str) -> GremlinError {
    let simple = name.rsplit('.').next().unwrap_or(name);
    GremlinError::bad(format!("{name} is not a registered type{}", hint(simple, type_names())))
}

fn unknown_operator(name: &str) -> GremlinError {
    let hint = hint(name, OPERATORS.iter().copied());
    GremlinError::bad(format!("there is no predicate {name}(){hint}"))
}

fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("; did you mean {near}?"))
}
