//! `mergeV` and `mergeE`: find elements, or add one.

use super::{
    change::{set_all, setting, written},
    context::Context,
    nested,
    new::{New, id_of, result},
    search,
    traverser::{Batch, Traverser},
};
use crate::{
    error::{GremlinError, Result},
    graph::WantedProperties,
    plan::{Label, MergeMaps, StepArgument, keys, merge_maps},
    value::{Direction, ElementId, Map, Merge, Symbol, Token, Value},
};
use kith_types::ErrorCode;
use std::sync::Arc;

/// The number of times that `mergeV` and `mergeE` try to add an element while others add and remove one in its place.
const ATTEMPTS_MAX: u32 = 8;

/// The map that an argument is for a traverser. Null is an empty map.
async fn map(given: &StepArgument, traverser: &Traverser, context: &Context<'_>) -> Result<Map> {
    let found = nested::given(given, std::slice::from_ref(traverser), context).await?;
    match result(found.into_iter().next().flatten(), "a map of mergeV() or mergeE()")? {
        Value::Map(map) => Ok(Arc::unwrap_or_clone(map)),
        Value::Null => Ok(Map::new()),
        other => {
            let found = other.type_name();
            Err(GremlinError::bad(format!("mergeV() and mergeE() need maps, not a value of type {found}")))
        }
    }
}

/// `mergeV`.
pub(super) async fn vertex(merge: &MergeMaps, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let mut reached = Batch::new();
    for traverser in batch {
        let wanted = map(&merge.search, &traverser, context).await?;
        merge_maps::check(&wanted, false)?;
        let mut found = search::vertices(&wanted, context).await?;
        if found.is_empty() {
            let all = with_on_create((merge, false), &wanted, &wanted, &traverser, context).await?;
            let (is_new, vertices) = added_or_found(&wanted, new(all)?, context).await?;
            found = vertices;
            if is_new {
                reached.extend(found.into_iter().map(|vertex| traverser.to(vertex)));
                continue;
            }
        }
        matched(merge, &found, &traverser, context).await?;
        reached.extend(found.into_iter().map(|vertex| traverser.to(vertex)));
    }
    Ok(reached)
}

/// Adds a vertex that was not found, or finds it after all if another traversal adds it at the same time. Returns whether it
/// is new.
async fn added_or_found(wanted: &Map, new: New, context: &Context<'_>) -> Result<(bool, Vec<Value>)> {
    context.graph.settle().await?;
    let mut attempts = 1;
    loop {
        let error = match written(new.clone().vertex(), context).await {
            Ok(vertex) => return Ok((true, vec![vertex])),
            Err(error) => error,
        };
        if !matches!(error.code, ErrorCode::ObjectExists | ErrorCode::UniqueTaken) {
            return Err(error);
        }
        context.graph.read_latest().await;
        let found = search::vertices(wanted, context).await?;
        if !found.is_empty() {
            return Ok((false, found));
        }
        // The other vertex may have been removed again, or does not have all that is wanted.
        if attempts == ATTEMPTS_MAX {
            return Err(error);
        }
        attempts += 1;
    }
}

/// `mergeE`.
pub(super) async fn edge(merge: &MergeMaps, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let mut reached = Batch::new();
    for traverser in batch {
        let given = map(&merge.search, &traverser, context).await?;
        merge_maps::check(&given, true)?;
        let wanted = resolved(merge, given.clone(), &traverser, context).await?;
        let mut found = search::edges(&wanted, context).await?;
        if found.is_empty() {
            let all = with_on_create((merge, true), &given, &wanted, &traverser, context).await?;
            let all = resolved(merge, all, &traverser, context).await?;
            let (is_new, edges) = created(&wanted, all, context).await?;
            found = edges;
            if is_new {
                reached.extend(found.into_iter().map(|edge| traverser.to(edge)));
                continue;
            }
        }
        matched(merge, &found, &traverser, context).await?;
        reached.extend(found.into_iter().map(|edge| traverser.to(edge)));
    }
    Ok(reached)
}

/// The properties that `option(onMatch)` sets of elements that were found. The option sees the element, or the map that came to the step.
async fn matched(merge: &MergeMaps, found: &[Value], from: &Traverser, context: &Context<'_>) -> Result<()> {
    let Some((given, default)) = &merge.on_match else { return Ok(()) };
    let mut settings = Vec::new();
    for element in found {
        let on_match = match &from.value {
            Value::Map(_) => map(given, from, context).await?,
            _ => map(given, &from.to(element.clone()), context).await?,
        };
        merge_maps::check_on_match(&on_match)?;
        for (key, value) in &on_match {
            let (cardinality, value) = merge_maps::with_cardinality(value, *default);
            settings.extend(setting(element, cardinality, key, value.clone())?);
        }
    }
    set_all(settings, context).await
}

/// The properties of a new element: those searched for, which are `given` with the ends of edges as they were named, and what
/// `option(onCreate)` adds to it.
async fn with_on_create(
    (merge, is_edge): (&MergeMaps, bool),
    given: &Map,
    wanted: &Map,
    traverser: &Traverser,
    context: &Context<'_>,
) -> Result<Map> {
    let Some(on_create) = &merge.on_create else { return Ok(wanted.clone()) };
    let mut all = map(on_create, traverser, context).await?;
    merge_maps::check(&all, is_edge)?;
    merge_maps::check_overrides(given, &all)?;
    all.extend(wanted.iter().map(|(key, value)| (key.clone(), value.clone())));
    Ok(all)
}

/// A new element with the entries of a map, apart from the ends of an edge.
fn new(all: Map) -> Result<New> {
    let mut new = New::default();
    for (key, value) in &all {
        if !matches!(key, Value::Symbol(Symbol::Direction(_))) {
            new.put(key, merge_maps::with_cardinality(value, None).1.clone())?;
        }
    }
    Ok(new)
}

/// The map with ids as the ends. `Merge.outV` and `Merge.inV` stand for the vertices that their options name.
async fn resolved(
    merge: &MergeMaps,
    mut map: Map,
    traverser: &Traverser,
    context: &Context<'_>,
) -> Result<Map> {
    for (direction, own, given) in
        [(Direction::Out, Merge::OutV, &merge.out_vertex), (Direction::In, Merge::InV, &merge.in_vertex)]
    {
        let Some(end) = map.get_mut(&Value::from(direction)) else { continue };
        let id = match &*end {
            Value::Symbol(Symbol::Merge(found)) if *found == own => {
                let given = given.as_ref().ok_or_else(|| {
                    GremlinError::bad(format!(
                        "option({own}) must be specified if it is used for {direction}"
                    ))
                })?;
                option(given, own, traverser, context).await?
            }
            named => id_of(named),
        };
        let named = context.graph.named(vec![id.clone()]).await?;
        // An id that no vertex has stays, and is found to be none later.
        *end = named.into_iter().next().flatten().unwrap_or(id);
    }
    Ok(map)
}

/// The id of the vertex that `option(outV)` or `option(inV)` names: itself, or by a map that only it has.
async fn option(given: &StepArgument, own: Merge, from: &Traverser, context: &Context<'_>) -> Result<Value> {
    let value = nested::given(given, std::slice::from_ref(from), context).await?.into_iter().next().flatten();
    let vertex = match value {
        Some(Value::Map(map)) => search::vertices(&map, context).await?.into_iter().next(),
        Some(vertex @ Value::Vertex(_)) => Some(vertex),
        _ => None,
    };
    vertex.map(|vertex| id_of(&vertex)).ok_or_else(|| {
        GremlinError::bad(format!("Vertex could not be resolved from mergeE: option({own}) names none"))
    })
}

/// Adds the edge that was not found, or finds it after all if another traversal adds it at the same time, or has added it
/// where the search did not see it yet. Returns whether it is new.
async fn created(wanted: &Map, all: Map, context: &Context<'_>) -> Result<(bool, Vec<Value>)> {
    let [out_vertex, in_vertex] = [end(&all, Direction::Out, "Out")?, end(&all, Direction::In, "In")?];
    let ids = vec![out_vertex.clone(), in_vertex.clone()];
    let found = context.graph.vertices(ids.clone(), WantedProperties::None).await?;
    if let Some((id, _)) = ids.iter().zip(&found).find(|(_, vertex)| vertex.is_none()) {
        return Err(GremlinError::bad(format!("Vertex id could not be resolved from mergeE: {id}")));
    }
    let new = new(all)?;
    // Without these, an edge that is there already would have been found.
    let is_narrow =
        |key: &Value| !matches!(key, Value::Symbol(Symbol::Direction(_) | Symbol::Token(Token::Label)));
    let is_narrow = wanted.keys().any(is_narrow);
    let label = new.label.clone().unwrap_or_else(|| keys::EDGE.into());
    context.graph.settle().await?;
    let mut attempts = 1;
    loop {
        if is_narrow {
            check_parallel(label.clone(), &out_vertex, &in_vertex, context).await?;
        }
        let edge = new.clone().edge(out_vertex.clone(), in_vertex.clone(), false);
        let error = match written(edge, context).await {
            Ok(edge) => return Ok((true, vec![edge])),
            Err(error) => error,
        };
        if error.code != ErrorCode::ObjectExists {
            return Err(error);
        }
        context.graph.read_latest().await;
        let found = search::edges(wanted, context).await?;
        if !found.is_empty() {
            return Ok((false, found));
        }
        // The other edge may have been removed again, or does not have all that is wanted.
        if attempts == ATTEMPTS_MAX {
            return Err(error);
        }
        attempts += 1;
    }
}

fn end(all: &Map, direction: Direction, name: &str) -> Result<ElementId> {
    all.get(&Value::from(direction)).map(id_of).ok_or_else(|| {
        GremlinError::bad(format!("{name} Vertex not specified in onCreate - edge cannot be created"))
    })
}

/// Refuses to add an edge if there is one with its label from the same vertex to the same vertex.
async fn check_parallel(
    label: Label,
    out_vertex: &ElementId,
    in_vertex: &ElementId,
    context: &Context<'_>,
) -> Result<()> {
    let edges = search::expanded(out_vertex.clone(), Direction::Out, Some(label), context).await?;
    let is_parallel =
        |edge: &Value| matches!(edge, Value::Edge(edge) if search::is_id(&edge.in_vertex.id, in_vertex));
    match edges.iter().find(|edge| is_parallel(edge)) {
        None => Ok(()),
        Some(edge) => {
            let what = format!("a second edge with the same label between the same vertices, beside {edge},");
            Err(GremlinError::unsupported(what))
        }
    }
}
