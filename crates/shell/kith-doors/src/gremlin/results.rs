//! The results of a traversal as the values that its request is answered with.

use super::failure::of_gremlin;
use kith_gremlin::{
    graphbinary::{Items, check_count, counted},
    text::Terminal,
    value::{Map, Value},
};
use kith_query::QueryError;
use kith_types::ErrorCode;
use std::{collections::HashSet, iter, sync::Arc};

/// How results are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As traversers: each value with how often it occurs.
    Traversers,
    /// As plain values, each as often as it occurs, by the method at the end of the text.
    Plain(Option<Terminal>),
}

impl Form {
    /// Whether results can be sent before all of them are known.
    pub fn sends_early(self) -> bool {
        matches!(self, Self::Traversers | Self::Plain(None | Some(Terminal::ToList | Terminal::ToBulkSet)))
    }
}

/// A value, and roughly how many bytes it takes.
type Measured = (Value, usize);
/// Values, one after another.
type Values<'a> = Box<dyn Iterator<Item = Result<Measured, QueryError>> + Send + 'a>;

/// The values that stand for `results`, a list of traversers in GraphBinary. `plain` counts plain values over all parts of an
/// answer.
///
/// # Errors
/// There are more plain values than [`kith_gremlin::graphbinary::RESULTS_MAX`]; `next()` has nothing to return; the bytes are no results, which can also be
/// found later.
pub(super) fn values<'a>(results: &'a [u8], form: Form, plain: &mut u64) -> Result<Values<'a>, QueryError> {
    let items = Items::new(results).map_err(of_gremlin)?;
    let Form::Plain(terminal) = form else {
        return Ok(Box::new(measured(items)));
    };
    Ok(match terminal {
        Some(Terminal::Iterate) => Box::new(iter::empty()),
        Some(Terminal::HasNext) => one(Value::Bool(items.left() != 0)),
        Some(Terminal::TryNext) => Box::new(repeated(items).take(1)),
        Some(Terminal::Next(None)) => members(repeated(items).next().ok_or_else(nothing)??),
        Some(Terminal::Next(Some(count))) => Box::new(repeated(items).take(count as usize)),
        Some(Terminal::ToSet) => distinct(items),
        None | Some(Terminal::ToList | Terminal::ToBulkSet | Terminal::Explain) => {
            *plain = check_count(results, *plain).map_err(of_gremlin)?;
            Box::new(repeated(items))
        }
    })
}

fn one(value: Value) -> Values<'static> {
    Box::new(iter::once(Ok((value, 0))))
}

/// Each item, with the bytes that it took.
fn measured(mut items: Items<'_>) -> impl Iterator<Item = Result<Measured, QueryError>> + Send {
    iter::from_fn(move || {
        let before = items.offset();
        let value = items.next()?;
        Some(value.map(|value| (value, items.offset() - before)).map_err(of_gremlin))
    })
}

/// The values of traversers, each as often as it occurs.
fn repeated(items: Items<'_>) -> impl Iterator<Item = Result<Measured, QueryError>> + Send {
    measured(items).flat_map(|item| {
        let (item, count) = match item {
            Ok((traverser, bytes)) => {
                let (value, count) = counted(traverser);
                (Ok((value, bytes)), count)
            }
            Err(error) => (Err(error), 1),
        };
        iter::repeat_n(item, usize::try_from(count).unwrap_or(usize::MAX))
    })
}

/// The different values of traversers.
fn distinct(items: Items<'_>) -> Values<'_> {
    let mut seen = HashSet::new();
    Box::new(measured(items).filter_map(move |item| match item {
        Ok((traverser, bytes)) => {
            let (value, _) = counted(traverser);
            seen.insert(value.clone()).then_some(Ok((value, bytes)))
        }
        Err(error) => Some(Err(error)),
    }))
}

/// The answer of Gremlin Server to `next()`: the members of a value that has members, otherwise the value. An entry of a map is
/// a map.
fn members((value, bytes): Measured) -> Values<'static> {
    let each = |values: Vec<Value>| -> Values<'static> {
        let bytes = bytes / values.len().max(1);
        Box::new(values.into_iter().map(move |value| Ok((value, bytes))))
    };
    match value {
        Value::List(values) => each(Arc::unwrap_or_clone(values)),
        Value::Set(values) => each(Arc::unwrap_or_clone(values).into_iter().collect()),
        Value::Map(entries) => {
            let entries = Arc::unwrap_or_clone(entries).into_iter();
            each(entries.map(|entry| Value::Map(Arc::new(Map::from_iter([entry])))).collect())
        }
        Value::BulkSet(values) => {
            let repeated = |(value, count): &(Value, i64)| {
                iter::repeat_n(value.clone(), usize::try_from(*count).unwrap_or(0))
            };
            Box::new(
                Arc::unwrap_or_clone(values)
                    .into_iter()
                    .flat_map(move |entry| repeated(&entry))
                    .map(|value| Ok((value, 0))),
            )
        }
        value => Box::new(iter::once(Ok((value, bytes)))),
    }
}

fn nothing() -> QueryError {
    QueryError::Remote {
        code: ErrorCode::BadRequest,
        message: "the traversal has no result that next() could return".to_owned(),
        help: "end it with toList() or tryNext()".to_owned(),
    }
}
