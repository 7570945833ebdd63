//! Steps that let traversers pass or not.

use super::{
    Condition, HasTest, Kind, Label, Quantifier, TestedPart, anonymous,
    arguments::{Arguments, any_of, flat, test},
    calls::Call,
    modulators::{all_by, between, one_by},
    wheres,
};
use crate::{
    error::{GremlinError, Result},
    semantics::{Test, number},
    value::{GType, Symbol, Token, Value},
};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn compile(call: &Call<'_>) -> Result<Option<Vec<Kind>>> {
    let mut arguments = Arguments::of(call.instruction)?;
    let kind = match call.name() {
        "has" => return has(call, arguments).map(Some),
        "hasNot" => Kind::HasKey { key: arguments.text("a key")?, is_present: false },
        "hasId" => ids(arguments.rest())?,
        "hasLabel" => token(Token::Label, any_of(arguments.rest())?),
        "hasKey" => token(Token::Key, any_of(arguments.rest())?),
        "hasValue" => token(Token::Value, any_of(arguments.rest())?),
        "is" => Kind::Is(arguments.test("a value or a predicate")?),
        "filter" => Kind::Filter { traversal: arguments.traversal("a traversal")?, is_negated: false },
        "not" => Kind::Filter { traversal: arguments.traversal("a traversal")?, is_negated: true },
        "and" | "or" => {
            Kind::Connective { traversals: arguments.traversals()?, is_and: call.name() == "and" }
        }
        "where" => return wheres::compile(call, arguments).map(|kind| Some(vec![kind])),
        "dedup" => return dedup(call, arguments).map(|kind| Some(vec![kind])),
        "range" | "limit" | "skip" | "tail" => cut(call, &mut arguments)?,
        "timeLimit" => Kind::TimeLimit(time_limit(&mut arguments)?),
        "coin" => Kind::Coin(probability(&mut arguments)?),
        "sample" => return sample(call, arguments).map(|kind| Some(vec![kind])),
        "simplePath" | "cyclicPath" => return simple_path(call, &arguments).map(|kind| Some(vec![kind])),
        "all" => Kind::Members { quantifier: Quantifier::All, test: arguments.test("a predicate")? },
        "any" => Kind::Members { quantifier: Quantifier::Any, test: arguments.test("a predicate")? },
        "none" if !arguments.is_empty() => {
            Kind::Members { quantifier: Quantifier::None, test: arguments.test("a predicate")? }
        }
        "none" | "discard" => Kind::Discard,
        _ => return Ok(None),
    };
    arguments.finish(call, &[], kind)
}

fn token(token: Token, test: Test) -> Kind {
    Kind::Has(HasTest { subject: TestedPart::Token(token), condition: Condition::Test(Arc::new(test)) })
}

/// A filter of elements with one of these ids, for which elements may stand, or with an id that passes a predicate. Ids are
/// compared as texts with texts, so that `hasId("1")` finds the element with the number 1.
fn ids(values: &[Value]) -> Result<Kind> {
    let id = |value: &Value| match value {
        Value::Vertex(vertex) => vertex.id.clone(),
        Value::Edge(edge) => edge.id.clone(),
        Value::VertexProperty(property) => property.id.clone(),
        other => other.clone(),
    };
    let test = any_of(&values.iter().map(id).collect::<Vec<_>>())?;
    let is_text = match values {
        [Value::Predicate(predicate)] => are_texts(&predicate.operands),
        values => are_texts(values),
    };
    let subject = if is_text { TestedPart::IdText } else { TestedPart::Token(Token::Id) };
    Ok(Kind::Has(HasTest { subject, condition: Condition::Test(Arc::new(test)) }))
}

fn are_texts(values: &[Value]) -> bool {
    let values = flat(values);
    !values.is_empty() && values.iter().all(|value| matches!(value, Value::String(_) | Value::Null))
}

/// `has(key)`, `has(key, wanted)` and `has(label, key, wanted)`.
fn has(call: &Call<'_>, mut arguments: Arguments<'_>) -> Result<Vec<Kind>> {
    call.allow(&[])?;
    let mut kinds = Vec::new();
    if arguments.len() == 3 {
        let label = match arguments.required("a label")? {
            Value::Predicate(predicate) => Test::compile(predicate)?,
            label => test(label)?,
        };
        kinds.push(token(Token::Label, label));
    }
    let subject = match arguments.required("a key")? {
        Value::String(key) => TestedPart::Property(key.clone()),
        Value::Symbol(Symbol::Token(token)) => TestedPart::Token(*token),
        // No element has a property without a key.
        Value::Null => TestedPart::Property(Label::from("")),
        other => {
            let found = other.type_name();
            return Err(GremlinError::bad(format!(
                "has() needs a key or a token, not a value of type {found}"
            )));
        }
    };
    let condition = match (arguments.next(), &subject) {
        (None, TestedPart::Property(key)) => {
            kinds.push(Kind::HasKey { key: key.clone(), is_present: true });
            return Ok(kinds);
        }
        (None, TestedPart::Token(_) | TestedPart::IdText) => {
            return Err(GremlinError::bad("has() needs a key, or a token and a value"));
        }
        (Some(Value::Traversal(bytecode)), _) => Condition::Traversal(anonymous(bytecode)?),
        (Some(wanted), TestedPart::Token(Token::Id)) => {
            arguments.end()?;
            kinds.push(ids(std::slice::from_ref(wanted))?);
            return Ok(kinds);
        }
        (Some(wanted), _) => Condition::Test(Arc::new(test(wanted)?)),
    };
    arguments.end()?;
    kinds.push(Kind::Has(HasTest { subject, condition }));
    Ok(kinds)
}

fn simple_path(call: &Call<'_>, arguments: &Arguments<'_>) -> Result<Kind> {
    call.allow(&["by", "from", "to"])?;
    arguments.end()?;
    Ok(Kind::SimplePath {
        is_simple: call.name() == "simplePath",
        between: between(call)?,
        by: all_by(call)?,
    })
}

/// `range`, `limit`, `skip` and `tail`.
fn cut(call: &Call<'_>, arguments: &mut Arguments<'_>) -> Result<Kind> {
    let is_local = arguments.is_local();
    let (low, high) = match call.name() {
        "limit" => (0, arguments.whole("a number")?),
        "skip" => (arguments.whole("a number")?, -1),
        "range" => (arguments.whole("two numbers")?, arguments.whole("two numbers")?),
        _ => {
            let count = if arguments.is_empty() { 1 } else { arguments.whole("a number")? };
            return Ok(if is_local { Kind::TailLocal(count) } else { Kind::Tail(count) });
        }
    };
    if low != -1 && high != -1 && high < low {
        return Err(GremlinError::bad(format!("not a legal range: [{low}, {high}]")));
    }
    Ok(if is_local { Kind::RangeLocal { low, high } } else { Kind::Range { low, high } })
}

/// The milliseconds of `timeLimit`.
fn time_limit(arguments: &mut Arguments<'_>) -> Result<Duration> {
    let given = arguments.whole("a number of milliseconds")?;
    u64::try_from(given).map(Duration::from_millis).map_err(|_| {
        GremlinError::bad(format!(
            "timeLimit() needs a number of milliseconds that is not negative, not {given}"
        ))
    })
}

fn dedup(call: &Call<'_>, mut arguments: Arguments<'_>) -> Result<Kind> {
    call.allow(&["by"])?;
    if arguments.is_local() {
        // TinkerPop accepts labels here, and ignores them.
        arguments.texts("labels")?;
        return Ok(Kind::DedupLocal);
    }
    Ok(Kind::Dedup { labels: arguments.texts("labels")?, by: one_by(call)? })
}

fn sample(call: &Call<'_>, mut arguments: Arguments<'_>) -> Result<Kind> {
    call.allow(&["by"])?;
    let is_local = arguments.is_local();
    let count = arguments.whole("a number")?;
    arguments.end()?;
    if is_local {
        return Ok(Kind::SampleLocal(count));
    }
    Ok(Kind::Sample { count, by: one_by(call)? })
}

fn probability(arguments: &mut Arguments<'_>) -> Result<f64> {
    let given = arguments.required("a probability")?;
    match number::as_number(given, Some(GType::Double)) {
        Ok(Value::Double(probability)) if given.is_number() && (0.0..=1.0).contains(&probability) => {
            Ok(probability)
        }
        _ => Err(GremlinError::bad(format!("coin() needs a number from 0 to 1, not {given}"))),
    }
}
