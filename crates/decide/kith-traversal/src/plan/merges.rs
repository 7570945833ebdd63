//! `mergeV` and `mergeE`.

use super::{
    Kind, MergeMaps, StepArgument,
    arguments::{Arguments, given},
    calls::Call,
    merge_maps,
    step::traversal,
};
use crate::{
    error::{GremlinError, Result},
    value::{Cardinality, Map, Merge, Symbol, Token, Value},
};

pub(super) fn merge(call: &Call<'_>, arguments: &mut Arguments<'_>, is_edge: bool) -> Result<MergeMaps> {
    call.allow(&["option"])?;
    let search = match arguments.next() {
        None => StepArgument::Traversal(traversal(vec![Kind::Identity])),
        Some(value) => map_or_traversal(value)?,
    };
    let mut maps = MergeMaps { search, on_create: None, on_match: None, out_vertex: None, in_vertex: None };
    for modulator in call.modulators("option") {
        match &*modulator.instruction.arguments {
            [Value::Symbol(Symbol::Merge(key)), value] => put(&mut maps, *key, value, None)?,
            [Value::Symbol(Symbol::Merge(key)), value, Value::Symbol(Symbol::Cardinality(cardinality))] => {
                put(&mut maps, *key, value, Some(*cardinality))?;
            }
            _ => {
                let name = call.name();
                return Err(GremlinError::bad(format!(
                    "option() of {name}() takes Merge.onCreate and others, and a map"
                )));
            }
        }
    }
    check(&maps, is_edge)?;
    Ok(maps)
}

/// Checks the maps that are known beforehand.
fn check(maps: &MergeMaps, is_edge: bool) -> Result<()> {
    let (search, on_create) = (known(Some(&maps.search)), known(maps.on_create.as_ref()));
    let on_match = known(maps.on_match.as_ref().map(|(given, _)| given));
    let default = maps.on_match.as_ref().and_then(|(_, cardinality)| *cardinality);
    check_kind(maps, is_edge)?;
    for map in [search, on_create].into_iter().flatten() {
        merge_maps::check(map, is_edge)?;
    }
    if let Some(on_match) = on_match {
        merge_maps::check_on_match(on_match)?;
        on_match.values().try_for_each(|value| merge_maps::check_cardinality(value, default))?;
    }
    if let (Some(search), Some(on_create)) = (search, on_create) {
        merge_maps::check_overrides(search, on_create)?;
    }
    match on_create {
        Some(map) if is_edge && map.contains_key(&Value::from(Token::Id)) => {
            Err(GremlinError::unsupported("an id that is given to an edge"))
        }
        _ => Ok(()),
    }
}

/// Refuses what only `mergeV` or only `mergeE` takes.
fn check_kind(maps: &MergeMaps, is_edge: bool) -> Result<()> {
    let on_match = maps.on_match.as_ref();
    let all = [Some(&maps.search), maps.on_create.as_ref(), on_match.map(|(given, _)| given)];
    let has_cardinality = all.into_iter().filter_map(known).any(has_cardinality)
        || on_match.is_some_and(|(_, cardinality)| cardinality.is_some());
    if is_edge && has_cardinality {
        let message = "option() with the Cardinality argument can only be used following mergeV()";
        return Err(GremlinError::bad(message));
    }
    let ends = [(&maps.out_vertex, Merge::OutV), (&maps.in_vertex, Merge::InV)];
    match ends.iter().find(|(given, _)| !is_edge && given.is_some()) {
        Some((_, end)) => {
            Err(GremlinError::bad(format!("option({end}) can only be used following mergeE()")))
        }
        None => Ok(()),
    }
}

fn known(given: Option<&StepArgument>) -> Option<&Map> {
    match given {
        Some(StepArgument::Value(Value::Map(map))) => Some(map),
        _ => None,
    }
}

fn has_cardinality(map: &Map) -> bool {
    map.values().any(|value| matches!(value, Value::CardinalityValue { .. }))
}

fn put(maps: &mut MergeMaps, key: Merge, value: &Value, cardinality: Option<Cardinality>) -> Result<()> {
    let value = match key {
        Merge::OnCreate | Merge::OnMatch => map_or_traversal(value)?,
        Merge::OutV | Merge::InV => given(value)?,
    };
    match key {
        Merge::OnCreate => maps.on_create = Some(value),
        Merge::OnMatch => maps.on_match = Some((value, cardinality)),
        Merge::OutV => maps.out_vertex = Some(value),
        Merge::InV => maps.in_vertex = Some(value),
    }
    Ok(())
}

fn map_or_traversal(value: &Value) -> Result<StepArgument> {
    match value {
        Value::Map(_) | Value::Null | Value::Traversal(_) => given(value),
        other => {
            let found = other.type_name();
            Err(GremlinError::bad(format!("a map or a traversal is needed, not a value of type {found}")))
        }
    }
}
