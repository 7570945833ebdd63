//! Steps from element to element.

use super::{
    bulk::merged,
    chain::StepState,
    chain::Upstream,
    context::Context,
    reference,
    traverser::{Batch, Traverser},
    weight,
};
use crate::{
    error::{GremlinError, Result},
    graph::{Expansion, VertexSearch, WantedProperties, other_end},
    plan::{EdgeEnd, Hop, Kind, keys},
    value::{Direction, Edge, ElementId, Value, Vertex},
};
use std::{collections::HashMap, sync::Arc};

/// The number of traversers that a source returns in its first batch, and at most. Batches grow, so that a `limit` costs little and a
/// scan takes few calls.
const BATCH_FIRST: usize = 64;
const BATCH_MAX: usize = 4096;

/// The next batch of `V` or `E`. At the beginning of a traversal these return elements of the graph; in the middle, they return
/// them for each traverser.
pub(super) async fn scan(
    kind: &Kind,
    state: &mut StepState,
    upstream: &mut Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    if !upstream.is_beginning() {
        let Some(batch) = upstream.next(context).await? else { return Ok(None) };
        let elements = elements(kind, context).await?;
        context.work.room_for(batch.len().saturating_mul(elements.len()))?;
        let each = |traverser: &Traverser| {
            elements.iter().map(|element| traverser.to(element.clone())).collect::<Batch>()
        };
        return Ok(Some(batch.iter().flat_map(each).collect()));
    }
    let StepState::Scan { after, is_over } = state else { return Ok(None) };
    if *is_over {
        return Ok(None);
    }
    let found = match kind {
        Kind::SoughtVertices(sought) if after.is_none() => found(sought, context).await?,
        _ => None,
    };
    let elements = match (ids(kind), found) {
        ([], Some(found)) => {
            *is_over = true;
            found
        }
        ([], None) => {
            let limit = if after.is_none() { BATCH_FIRST } else { BATCH_MAX };
            let page = page(kind, after.clone(), limit, context).await?;
            *is_over = page.len() < limit;
            *after = page.last().and_then(element_id).or(after.take());
            page
        }
        _ => {
            *is_over = true;
            elements(kind, context).await?
        }
    };
    Ok(Some(elements.into_iter().map(|element| context.traverser(element)).collect()))
}

/// The vertices that an index of the graph returns; `None` if the graph has none for the question.
pub(super) async fn found(sought: &VertexSearch, context: &Context<'_>) -> Result<Option<Vec<Value>>> {
    if sought.properties.is_empty() {
        return Ok(None);
    }
    let Some(found) = context.graph.find_vertices(sought.clone()).await? else { return Ok(None) };
    context.work.count_elements(found.len())?;
    Ok(Some(found.iter().map(|vertex| Value::Vertex(reference(vertex))).collect()))
}

fn ids(kind: &Kind) -> &[ElementId] {
    match kind {
        Kind::Vertices { ids } | Kind::NamedVertices { ids } | Kind::Edges { ids } => ids,
        _ => &[],
    }
}

fn element_id(element: &Value) -> Option<ElementId> {
    match element {
        Value::Vertex(vertex) => Some(vertex.id.clone()),
        Value::Edge(edge) => Some(edge.id.clone()),
        _ => None,
    }
}

/// The elements that `V` or `E` means: those with its ids, or all.
async fn elements(kind: &Kind, context: &Context<'_>) -> Result<Vec<Value>> {
    let ids = ids(kind).to_vec();
    if !ids.is_empty() {
        let found: Vec<Value> = match kind {
            Kind::Vertices { .. } => {
                let found = context.graph.vertices(ids, WantedProperties::None).await?;
                found.into_iter().flatten().map(|vertex| Value::Vertex(reference(&vertex))).collect()
            }
            Kind::NamedVertices { .. } => {
                let named = ids.iter().filter_map(|id| context.graph.canonical(id));
                named.map(|id| Value::Vertex(Arc::new(Vertex::reference(id, keys::VERTEX)))).collect()
            }
            _ => context.graph.edges(ids).await?.into_iter().flatten().map(Value::Edge).collect(),
        };
        context.work.count_elements(found.len())?;
        return Ok(found);
    }
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = page(kind, after, BATCH_MAX, context).await?;
        let is_over = page.len() < BATCH_MAX;
        after = page.last().and_then(element_id);
        all.extend(page);
        if is_over {
            return Ok(all);
        }
    }
}

/// All vertices.
pub(super) async fn all_vertices(context: &Context<'_>) -> Result<Vec<Value>> {
    elements(&Kind::Vertices { ids: Vec::new() }, context).await
}

/// All edges.
pub(super) async fn all_edges(context: &Context<'_>) -> Result<Vec<Value>> {
    elements(&Kind::Edges { ids: Vec::new() }, context).await
}

async fn page(
    kind: &Kind,
    after: Option<ElementId>,
    limit: usize,
    context: &Context<'_>,
) -> Result<Vec<Value>> {
    let page: Vec<Value> = match kind {
        Kind::Vertices { .. } | Kind::SoughtVertices(_) => {
            let page = context.graph.scan_vertices(after, limit).await?;
            page.iter().map(|vertex| Value::Vertex(reference(vertex))).collect()
        }
        _ => context.graph.scan_edges(after, limit).await?.into_iter().map(Value::Edge).collect(),
    };
    context.work.count_elements(page.len())?;
    Ok(page)
}

/// `out`, `in`, `both`, `outE`, `inE` and `bothE`: one expansion for the whole batch.
pub(super) async fn hop(hop: &Hop, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let batch = merged(batch, context).await;
    let (expansion, indexes) = expansion(hop, &batch, context)?;
    let from = expansion.vertices.clone();
    let edges = context.graph.expand(expansion).await?;
    context.work.count_elements(edges.iter().map(Vec::len).sum())?;
    if hop.to_edges {
        context.work.count_bytes(edges.iter().flatten().map(|edge| weight::of_edge(edge)).sum())?;
    }
    let mut reached = Batch::new();
    for (traverser, at) in batch.iter().zip(indexes) {
        let (Some(edges), Some(from)) = (edges.get(at), from.get(at)) else { continue };
        context.work.room_for(edges.len())?;
        reached.extend(edges.iter().map(|edge| traverser.to(end(hop, edge, from))));
    }
    Ok(merged(reached, context).await)
}

/// The expansion of the vertices of traversers, each vertex once, and the place of each traverser's vertex in it.
pub(super) fn expansion(
    hop: &Hop,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<(Expansion, Vec<usize>)> {
    context.work.check_pass(hop.pass)?;
    let mut known: HashMap<&ElementId, usize> = HashMap::new();
    let (mut vertices, mut indexes) = (Vec::new(), Vec::with_capacity(batch.len()));
    for traverser in batch {
        let Value::Vertex(vertex) = &traverser.value else {
            let found = traverser.value.type_name();
            return Err(GremlinError::bad(format!(
                "a vertex is needed to follow edges, not a value of type {found}"
            )));
        };
        indexes.push(*known.entry(&vertex.id).or_insert_with(|| {
            vertices.push(vertex.id.clone());
            vertices.len() - 1
        }));
    }
    let (direction, labels, ranges) = (hop.direction, Arc::clone(&hop.labels), Arc::clone(&hop.ranges));
    Ok((Expansion { vertices, direction, labels, with_properties: hop.to_edges, ranges }, indexes))
}

fn end(hop: &Hop, edge: &Arc<Edge>, from: &ElementId) -> Value {
    match (hop.to_edges, hop.direction) {
        (true, _) => Value::Edge(Arc::clone(edge)),
        (false, Direction::Out) => Value::Vertex(Arc::clone(&edge.in_vertex)),
        (false, Direction::In) => Value::Vertex(Arc::clone(&edge.out_vertex)),
        (false, Direction::Both) => Value::Vertex(other_end(edge, from)),
    }
}

/// `outV`, `inV`, `bothV` and `otherV`.
pub(super) async fn edge_vertex(which: EdgeEnd, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let mut reached = Batch::with_capacity(batch.len());
    for traverser in &batch {
        let Value::Edge(edge) = &traverser.value else {
            let found = traverser.value.type_name();
            return Err(GremlinError::bad(format!(
                "an edge is needed to find its vertices, not a value of type {found}"
            )));
        };
        let mut push = |vertex: &Arc<_>| reached.push(traverser.to(Value::Vertex(Arc::clone(vertex))));
        match which {
            EdgeEnd::Out => push(&edge.out_vertex),
            EdgeEnd::In => push(&edge.in_vertex),
            EdgeEnd::Both => {
                push(&edge.out_vertex);
                push(&edge.in_vertex);
            }
            EdgeEnd::Other => push(&other_end(edge, &came_from(traverser, edge)?)),
        }
    }
    Ok(merged(reached, context).await)
}

/// The id of the end of the edge at which a traverser was last.
fn came_from(traverser: &Traverser, edge: &Edge) -> Result<ElementId> {
    let ends = [&edge.out_vertex.id, &edge.in_vertex.id];
    let before = traverser.nodes().skip(1).find_map(|node| match &node.value {
        Value::Vertex(vertex) if ends.contains(&&vertex.id) => Some(vertex.id.clone()),
        _ => None,
    });
    before.ok_or_else(|| GremlinError::bad("otherV() needs a traverser that came to the edge from a vertex"))
}
