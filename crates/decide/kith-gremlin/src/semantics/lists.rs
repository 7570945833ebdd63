//! Functions of lists, sets and paths. Their messages begin as those of TinkerPop, which programs may look for.

use crate::{
    GremlinError, Result,
    value::{Map, Set, Value},
};
use std::sync::Arc;
use strum::{Display, EnumString};

/// The most items of a list that these functions return, so that a short traversal cannot fill the memory.
const ITEMS_MAX: usize = 1_000_000;

/// A function of two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum ListFunction {
    /// The set of items that both have.
    Intersect,
    /// The set of items that only the first has.
    Difference,
    /// The set of items that only one of them has.
    Disjunct,
    /// The set of items that at least one of them has. Of two maps: all their entries, the second's where keys are equal.
    Merge,
    /// The items of the first, then those of the second.
    Combine,
    /// All pairs of an item of the first and one of the second.
    Product,
}

/// The second operand of a [`ListFunction`].
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A value that the traversal contains.
    Literal(&'a Value),
    /// The result of a nested traversal.
    Yielded(&'a Value),
}

impl<'a> Argument<'a> {
    fn value(self) -> &'a Value {
        match self {
            Self::Literal(value) | Self::Yielded(value) => value,
        }
    }
}

impl ListFunction {
    /// Checks an argument that the traversal contains, before it runs.
    ///
    /// # Errors
    /// It is neither a list nor, for `merge`, a map.
    pub fn check(self, argument: &Value) -> Result<()> {
        if is_iterable(argument) || matches!((self, argument), (Self::Merge, Value::Map(_))) {
            return Ok(());
        }
        Err(self.bad_argument(Argument::Literal(argument)))
    }

    /// The result for one traverser. `O(n)`, and `O(n × m)` for [`ListFunction::Product`].
    ///
    /// # Errors
    /// A value is no list, or the result would have more than a million items.
    pub fn apply(self, incoming: &Value, argument: Argument<'_>) -> Result<Value> {
        if let (Self::Merge, Value::Map(entries)) = (self, incoming) {
            return self.merge_maps(entries, argument);
        }
        let Some(items) = values(incoming)? else {
            return Err(bad_incoming(self, incoming));
        };
        let Some(others) = values(argument.value())? else {
            return Err(self.bad_argument(argument));
        };
        Ok(match self {
            Self::Intersect => set(both(items, &others.into_iter().collect(), true)),
            Self::Difference => set(both(items, &others.into_iter().collect(), false)),
            Self::Disjunct => disjunct(items.into_iter().collect(), others.into_iter().collect()),
            Self::Merge => set(items.into_iter().chain(others)),
            Self::Combine => {
                check_length(items.len().saturating_add(others.len()))?;
                Value::list(items.into_iter().chain(others).collect::<Vec<_>>())
            }
            Self::Product => product(&items, &others)?,
        })
    }

    fn merge_maps(self, entries: &Arc<Map>, argument: Argument<'_>) -> Result<Value> {
        let Value::Map(others) = argument.value() else {
            return Err(GremlinError::bad(format!(
                "{self} step expected provided argument to evaluate to a Map, encountered {}",
                argument.value().type_name()
            )));
        };
        let mut merged = entries.as_ref().clone();
        merged.extend(others.iter().map(|(key, value)| (key.clone(), value.clone())));
        Ok(Value::Map(Arc::new(merged)))
    }

    fn bad_argument(self, argument: Argument<'_>) -> GremlinError {
        let found = argument.value().type_name();
        GremlinError::bad(match (argument, argument.value()) {
            (Argument::Literal(_), Value::Null) => format!("Argument provided for {self} step can't be null"),
            (Argument::Literal(_), Value::Map(_)) if self == Self::Merge => {
                format!("{self} step type mismatch: expected argument to be Iterable but got Map")
            }
            (Argument::Literal(_), _) => {
                format!(
                    "{self} step can only take an array or an Iterable as an argument, encountered {found}"
                )
            }
            (Argument::Yielded(_), Value::Null) => {
                format!("traversal argument for {self} step must yield an iterable type, not null")
            }
            (Argument::Yielded(_), _) => {
                format!("traversal argument for {self} step must yield an iterable type, encountered {found}")
            }
        })
    }
}

/// The texts of the items of a list, with a delimiter between them. Nulls are left out.
///
/// # Errors
/// The value is no list.
pub fn conjoin(incoming: &Value, delimiter: &str) -> Result<Value> {
    let items = values(incoming)?.ok_or_else(|| bad_incoming("conjoin", incoming))?;
    let texts: Vec<String> =
        items.iter().filter(|item| !matches!(item, Value::Null)).map(Value::to_string).collect();
    Ok(Value::text(texts.join(delimiter)))
}

/// The items of a list, set, bulk set or path; `None` for other values.
///
/// # Errors
/// A bulk set has more than a million items.
pub fn values(value: &Value) -> Result<Option<Vec<Value>>> {
    Ok(Some(match value {
        Value::List(items) => items.as_ref().clone(),
        Value::Set(items) => items.iter().cloned().collect(),
        Value::Path(path) => path.objects.clone(),
        Value::BulkSet(items) => {
            let bulks = items.iter().map(|(_, bulk)| usize::try_from(*bulk).unwrap_or(0));
            check_length(bulks.fold(0, usize::saturating_add))?;
            let repeated = |(item, bulk): &(Value, i64)| {
                std::iter::repeat_n(item.clone(), usize::try_from(*bulk).unwrap_or(0))
            };
            items.iter().flat_map(repeated).collect()
        }
        _ => return Ok(None),
    }))
}

fn is_iterable(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_))
}

fn bad_incoming(step: impl std::fmt::Display, incoming: &Value) -> GremlinError {
    GremlinError::bad(match incoming {
        Value::Null => format!("Incoming traverser for {step} step can't be null"),
        _ => format!(
            "{step} step can only take an array or an Iterable type for incoming traversers, encountered {}",
            incoming.type_name()
        ),
    })
}

fn check_length(length: usize) -> Result<()> {
    if length <= ITEMS_MAX {
        return Ok(());
    }
    Err(GremlinError::bad(format!(
        "a list would have {length} items, but at most {ITEMS_MAX} are allowed; unfold() the lists, or limit them"
    )))
}

fn set(items: impl IntoIterator<Item = Value>) -> Value {
    Value::Set(Arc::new(items.into_iter().collect()))
}

/// The items that the others have, or have not.
fn both(items: Vec<Value>, others: &Set, have: bool) -> impl Iterator<Item = Value> {
    items.into_iter().filter(move |item| others.contains(item) == have)
}

fn disjunct(items: Set, others: Set) -> Value {
    let only_others: Vec<_> = others.difference(&items).cloned().collect();
    set(items.into_iter().filter(|item| !others.contains(item)).chain(only_others))
}

fn product(items: &[Value], others: &[Value]) -> Result<Value> {
    check_length(items.len().saturating_mul(others.len()))?;
    let pairs = |item: &Value| {
        let item = item.clone();
        others.iter().map(move |other| Value::list([item.clone(), other.clone()]))
    };
    Ok(Value::list(items.iter().flat_map(pairs).collect::<Vec<_>>()))
}
