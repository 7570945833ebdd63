//! `mergeV` and `mergeE`: find elements, or add one.

use super::{
    by,
    change::{self, New, add_edge, add_vertex, id_of, set_one},
    context::Context,
    nested,
    traverser::{Batch, Traverser},
};
use crate::{
    error::{GremlinError, Result},
    graph::{Expansion, Wanted},
    plan::{Given, MergeMaps},
    semantics,
    value::{Direction, ElementId, Map, Merge, Symbol, Token, Value},
};
use std::sync::Arc;

/// The maps of a traverser.
struct Maps {
    search: Map,
    on_create: Option<Map>,
}

async fn map(given: &Given, traverser: &Traverser, context: &Context<'_>) -> Result<Option<Map>> {
    let batch = std::slice::from_ref(traverser);
    match nested::given(given, batch, context).await?.into_iter().next().flatten() {
        Some(Value::Map(map)) => Ok(Some(Arc::unwrap_or_clone(map))),
        Some(Value::Null) => Ok(Some(Map::new())),
        None => Ok(None),
        Some(other) => {
            let found = other.type_name();
            Err(GremlinError::bad(format!("mergeV() and mergeE() need maps, not a value of type {found}")))
        }
    }
}

async fn maps(merge: &MergeMaps, traverser: &Traverser, context: &Context<'_>) -> Result<Maps> {
    let no_map =
        || GremlinError::bad("the traversal of mergeV() or mergeE() has no result, but a map is needed");
    let search = map(&merge.search, traverser, context).await?.ok_or_else(no_map)?;
    let on_create = match &merge.on_create {
        None => None,
        Some(given) => Some(map(given, traverser, context).await?.unwrap_or_default()),
    };
    Ok(Maps { search, on_create })
}

async fn on_match(
    merge: &MergeMaps,
    element: &Value,
    from: &Traverser,
    context: &Context<'_>,
) -> Result<Option<Map>> {
    match &merge.on_match {
        None => Ok(None),
        Some((given, _)) => Ok(map(given, &from.to(element.clone()), context).await?),
    }
}

/// `mergeV`.
pub(super) async fn vertex(merge: &MergeMaps, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let mut reached = Batch::new();
    for traverser in batch {
        let maps = maps(merge, &traverser, context).await?;
        check(&maps.search, false)?;
        let mut found = find_vertices(&maps.search, context).await?;
        if found.is_empty() {
            let new = created(&maps, &[], false)?;
            reached.push(traverser.to(add_vertex(new, context).await?));
            continue;
        }
        matched(merge, &mut found, &traverser, context).await?;
        reached.extend(found.into_iter().map(|vertex| traverser.to(vertex)));
    }
    Ok(reached)
}

async fn matched(
    merge: &MergeMaps,
    found: &mut [Value],
    from: &Traverser,
    context: &Context<'_>,
) -> Result<()> {
    let cardinality = merge.on_match.as_ref().and_then(|(_, cardinality)| *cardinality);
    for element in found {
        for (key, value) in on_match(merge, element, from, context).await?.unwrap_or_default() {
            if matches!(key, Value::Symbol(_)) {
                return Err(GremlinError::bad(format!("option(onMatch) cannot set {key}")));
            }
            let (cardinality, value) = unwrapped(value, cardinality);
            set_one(element, cardinality, &key, value, context).await?;
        }
    }
    Ok(())
}

fn unwrapped(
    value: Value,
    default: Option<crate::value::Cardinality>,
) -> (Option<crate::value::Cardinality>, Value) {
    match value {
        Value::CardinalityValue { cardinality, value } => (Some(cardinality), Arc::unwrap_or_clone(value)),
        value => (default, value),
    }
}

/// Refuses keys that `mergeV` or `mergeE` does not know.
fn check(map: &Map, is_edge: bool) -> Result<()> {
    for (key, value) in map {
        let is_known = match key {
            Value::String(_) => true,
            Value::Symbol(Symbol::Token(Token::Id | Token::Label)) => true,
            Value::Symbol(Symbol::Direction(Direction::Out | Direction::In)) => is_edge,
            _ => false,
        };
        if !is_known {
            let name = if is_edge { "mergeE" } else { "mergeV" };
            return Err(GremlinError::bad(format!("{name}() cannot use the key {key}")));
        }
        if matches!((key, value), (Value::Symbol(Symbol::Token(_)), Value::Null)) {
            return Err(GremlinError::bad(format!("{key} cannot be null")));
        }
    }
    Ok(())
}

/// What is added: the entries of the search and those of `onCreate`, which must not contradict them.
fn created(maps: &Maps, ends: &[Direction], is_edge: bool) -> Result<New> {
    let mut all = maps.search.clone();
    if let Some(on_create) = &maps.on_create {
        check(on_create, is_edge)?;
        for (key, value) in on_create {
            let is_fixed = matches!(key, Value::Symbol(_));
            if is_fixed && maps.search.get(key).is_some_and(|known| !semantics::equal(known, value)) {
                return Err(GremlinError::bad(format!(
                    "option(onCreate) cannot override values from merge() argument: ({key}, {value})"
                )));
            }
            all.insert(key.clone(), value.clone());
        }
    }
    let mut new = New::default();
    for (key, value) in all {
        let is_end = matches!(key, Value::Symbol(Symbol::Direction(direction)) if ends.contains(&direction));
        if !is_end {
            new.put(&key, unwrapped(value, None).1)?;
        }
    }
    Ok(new)
}

/// The vertices that have all entries of a map.
async fn find_vertices(search: &Map, context: &Context<'_>) -> Result<Vec<Value>> {
    let candidates = match search.get(&Value::from(Token::Id)) {
        Some(id) => {
            let found = context.graph.vertices(vec![id_of(id)], Wanted::None).await?;
            found.into_iter().flatten().map(Value::Vertex).collect()
        }
        None => super::hop::all_vertices(context).await?,
    };
    let properties = context.properties(&candidates.iter().collect::<Vec<_>>(), &Wanted::All).await?;
    let fits = |(element, properties): &(Value, Vec<Value>)| fits(element, properties, search);
    Ok(candidates.into_iter().zip(properties).filter(fits).map(|(element, _)| element).collect())
}

/// Whether an element has all entries of a map. Entries about the ends of edges have been looked at before.
fn fits(element: &Value, properties: &[Value], search: &Map) -> bool {
    search.iter().all(|(key, wanted)| match key {
        Value::Symbol(Symbol::Direction(_)) => true,
        Value::Symbol(Symbol::Token(token)) => {
            by::token(*token, element).is_ok_and(|found| semantics::equal(&found, &id_of(wanted)))
        }
        key => properties.iter().any(|property| {
            let is_key = Value::String(super::property::key_of(property)) == *key;
            is_key && by::property_value(property).is_some_and(|value| semantics::equal(value, wanted))
        }),
    })
}

/// `mergeE`.
pub(super) async fn edge(merge: &MergeMaps, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let mut reached = Batch::new();
    for traverser in batch {
        let mut maps = maps(merge, &traverser, context).await?;
        check(&maps.search, true)?;
        resolve(merge, &mut maps, &traverser, context).await?;
        let mut found = find_edges(&maps.search, context).await?;
        if found.is_empty() {
            let new = created(&maps, &[Direction::Out, Direction::In], true)?;
            let [out_vertex, in_vertex] = ends(&maps)?;
            reached.push(traverser.to(add_edge(new, out_vertex, in_vertex, context).await?));
            continue;
        }
        matched(merge, &mut found, &traverser, context).await?;
        reached.extend(found.into_iter().map(|edge| traverser.to(edge)));
    }
    Ok(reached)
}

/// Replaces `Merge.outV` and `Merge.inV` by what their options name, and an end that is not named by the traverser's vertex.
async fn resolve(
    merge: &MergeMaps,
    maps: &mut Maps,
    traverser: &Traverser,
    context: &Context<'_>,
) -> Result<()> {
    for (direction, own, given) in
        [(Direction::Out, Merge::OutV, &merge.out_vertex), (Direction::In, Merge::InV, &merge.in_vertex)]
    {
        for map in [Some(&mut maps.search), maps.on_create.as_mut()].into_iter().flatten() {
            let Some(end) = map.get_mut(&Value::from(direction)) else { continue };
            match end {
                Value::Symbol(Symbol::Merge(merge)) if *merge == own => {
                    let vertex = option(given.as_ref(), own, traverser, context).await?;
                    *end = vertex;
                }
                end => *end = id_of(end),
            }
        }
    }
    Ok(())
}

async fn option(given: Option<&Given>, own: Merge, from: &Traverser, context: &Context<'_>) -> Result<Value> {
    let no_option =
        || GremlinError::bad(format!("mergeE() names {own}, but has no option({own}) with a vertex"));
    let given = given.ok_or_else(no_option)?;
    let value = nested::given(given, std::slice::from_ref(from), context).await?.into_iter().next().flatten();
    let value = match value {
        Some(Value::Map(map)) => find_vertices(&map, context).await?.into_iter().next(),
        other => other,
    };
    value.map(|value| id_of(&value)).ok_or_else(no_option)
}

fn ends(maps: &Maps) -> Result<[ElementId; 2]> {
    let end = |direction: Direction| {
        let key = Value::from(direction);
        let named = maps.search.get(&key).or_else(|| maps.on_create.as_ref()?.get(&key));
        named.map(id_of).ok_or_else(|| {
            GremlinError::bad(format!(
                "{direction} Vertex not specified in onCreate or the search of mergeE()"
            ))
        })
    };
    Ok([end(Direction::Out)?, end(Direction::In)?])
}

/// The edges that have all entries of a map.
async fn find_edges(search: &Map, context: &Context<'_>) -> Result<Vec<Value>> {
    let end = |direction: Direction| search.get(&Value::from(direction)).map(id_of);
    let label = search.get(&Value::from(Token::Label)).map(change::label_of).transpose()?;
    let candidates: Vec<Value> =
        match (search.get(&Value::from(Token::Id)), end(Direction::Out), end(Direction::In)) {
            (Some(id), _, _) => {
                let found = context.graph.edges(vec![id_of(id)]).await?;
                found.into_iter().flatten().map(Value::Edge).collect()
            }
            (None, Some(vertex), _) => expanded(vertex, Direction::Out, label, context).await?,
            (None, None, Some(vertex)) => expanded(vertex, Direction::In, label, context).await?,
            (None, None, None) => super::hop::all_edges(context).await?,
        };
    let properties = context.properties(&candidates.iter().collect::<Vec<_>>(), &Wanted::All).await?;
    let fits = |(element, properties): &(Value, Vec<Value>)| {
        let Value::Edge(edge) = element else { return false };
        let is_end =
            |direction, vertex: &Value| end(direction).is_none_or(|id| semantics::equal(&id, vertex));
        is_end(Direction::Out, &edge.out_vertex.id)
            && is_end(Direction::In, &edge.in_vertex.id)
            && fits(element, properties, search)
    };
    Ok(candidates.into_iter().zip(properties).filter(fits).map(|(element, _)| element).collect())
}

async fn expanded(
    vertex: ElementId,
    direction: Direction,
    label: Option<crate::plan::Label>,
    context: &Context<'_>,
) -> Result<Vec<Value>> {
    let labels = label.into_iter().collect();
    let edges = context
        .graph
        .expand(Expansion { vertices: vec![vertex], direction, labels, with_properties: true })
        .await?;
    Ok(edges.into_iter().flatten().map(Value::Edge).collect())
}
