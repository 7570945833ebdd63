//! The entries that the maps of `mergeV` and `mergeE` may have. The messages are TinkerPop's, which its suite asks for. Maps that are known beforehand are checked when the traversal is
//! compiled, all others when it runs.

use super::keys;
use crate::{
    error::{GremlinError, Result},
    value::{Cardinality, Direction, Map, Merge, Symbol, Token, Value},
};

/// The map that is searched for, or that of `option(onCreate)`.
pub(crate) fn check(map: &Map, is_edge: bool) -> Result<()> {
    let name = if is_edge { "mergeE" } else { "mergeV" };
    for (key, value) in map {
        match (key, value) {
            (Value::String(key), _) => keys::check_property(key)?,
            (Value::Symbol(Symbol::Token(Token::Id | Token::Label)), Value::Null) => {
                return Err(GremlinError::bad(format!(
                    "{name}() does not allow null Map values - check: {key}"
                )));
            }
            (Value::Symbol(Symbol::Token(Token::Id)), _) => {}
            (Value::Symbol(Symbol::Token(Token::Label)), label @ Value::String(_)) => {
                keys::check_label(label).map(drop)?;
            }
            (Value::Symbol(Symbol::Token(Token::Label)), other) => {
                return Err(GremlinError::bad(format!(
                    "{name}() and option(onCreate) args expect T.label value to be of String - found: {}",
                    other.type_name()
                )));
            }
            (Value::Symbol(Symbol::Direction(Direction::Out)), end) if is_edge => {
                check_end(Merge::OutV, end)?
            }
            (Value::Symbol(Symbol::Direction(Direction::In)), end) if is_edge => check_end(Merge::InV, end)?,
            _ => {
                let tokens = if is_edge { "[id, label, IN, OUT]" } else { "[id, label]" };
                return Err(GremlinError::bad(format!(
                    "{name}() and option(onCreate) args expect keys in Map to be either String or {tokens} - check: {key}"
                )));
            }
        }
    }
    Ok(())
}

fn check_end(allowed: Merge, end: &Value) -> Result<()> {
    match end {
        Value::Symbol(Symbol::Merge(found)) if *found != allowed => {
            let end = if allowed == Merge::OutV { Direction::Out } else { Direction::In };
            Err(GremlinError::bad(format!(
                "Only Merge.{allowed} token may be used for Direction.{end}, found: {found}"
            )))
        }
        _ => Ok(()),
    }
}

/// The map of `option(onMatch)`: ids, labels and ends of elements that exist cannot be changed.
pub(crate) fn check_on_match(map: &Map) -> Result<()> {
    map.keys().try_for_each(|key| match key {
        Value::String(key) => keys::check_property(key),
        other => Err(GremlinError::bad(format!(
            "option(onMatch) expects keys in Map to be of String - check: {other}"
        ))),
    })
}

/// Refuses a value that would be set beside those that its key has.
pub(crate) fn check_cardinality(value: &Value, default: Option<Cardinality>) -> Result<()> {
    let (cardinality, value) = with_cardinality(value, default);
    match cardinality {
        Some(Cardinality::List | Cardinality::Set) if *value != Value::Null => {
            Err(GremlinError::unsupported("more than one value of a key"))
        }
        _ => Ok(()),
    }
}

/// A value without the cardinality that it may carry, and this cardinality, or the default.
pub(crate) fn with_cardinality(value: &Value, default: Option<Cardinality>) -> (Option<Cardinality>, &Value) {
    match value {
        Value::CardinalityValue { cardinality, value } => (Some(*cardinality), value),
        value => (default, value),
    }
}

/// Refuses a map of `option(onCreate)` that contradicts the map that is searched for.
pub(crate) fn check_overrides(search: &Map, on_create: &Map) -> Result<()> {
    match on_create.iter().find(|(key, value)| search.get(*key).is_some_and(|known| known != *value)) {
        None => Ok(()),
        Some((key, value)) => Err(GremlinError::bad(format!(
            "option(onCreate) cannot override values from merge() argument: ({key}, {value})"
        ))),
    }
}
