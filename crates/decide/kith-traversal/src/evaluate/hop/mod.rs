//! Steps that follow edges.

mod progress;

pub(super) use progress::HopProgress;

use super::{
    bulk::merged,
    chain::Upstream,
    context::Context,
    traverser::{Batch, Traverser},
};
use crate::{
    error::{GremlinError, Result},
    graph::{EdgeList, Expansion, ListPart, other_end},
    plan::{EdgeEnd, Hop},
    value::{Direction, Edge, ElementId, Value},
};
use progress::EdgesRead;
use std::{collections::HashMap, sync::Arc};

/// The next batch of `out`, `in`, `both`, `outE`, `inE` or `bothE`.
///
/// If everything is wanted, the edges of a batch of vertices are read together. If few traversers are wanted, few edges are read
/// of few vertices, and more of both each time, until there is a result; the rest of the edges is read when more is wanted. The
/// results are in the order of the traversers that enter.
pub(super) async fn next(
    hop: &Hop,
    progress: &mut HopProgress,
    upstream: &mut Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    context.work.check_pass(hop.pass)?;
    let (wanted, origins) = (upstream.demand.clone(), upstream.origins().len());
    let is_all = wanted.is_all();
    if let Some(profile) = context.profile.as_ref().filter(|_| !is_all) {
        profile.wanted(wanted.rest(0));
    }
    let mut collected = Batch::new();
    let mut merge_at = MERGED_FIRST;
    loop {
        progress.leave_out(&wanted);
        let ready = progress.take(&wanted);
        // The ends of many edges are few vertices, which take less memory once they are merged.
        let is_collected = is_all && !hop.to_edges && ready.iter().all(Traverser::is_mergeable);
        if is_collected && progress.has_open() {
            collected.extend(ready);
            if merge_at <= collected.len() {
                collected = merged(collected, context).await;
                merge_at = MERGED_FIRST.max(2 * collected.len());
            }
        } else if !ready.is_empty() || !collected.is_empty() {
            collected.extend(ready);
            return Ok(Some(merged(collected, context).await));
        }
        if progress.has_open() {
            let reading = progress.reading(&wanted, origins);
            read(hop, progress, reading, context).await?;
            continue;
        }
        upstream.demand = progress.vertices_wanted(&wanted, origins);
        let Some(batch) = upstream.next(context).await? else { return Ok(None) };
        progress.enter(merged(batch, context).await)?;
    }
}

/// The number of traversers that are collected before they are merged for the first time.
const MERGED_FIRST: usize = 64 << 10;

/// Reads edges, and makes traversers of them.
async fn read(
    hop: &Hop,
    progress: &mut HopProgress,
    reading: EdgesRead,
    context: &Context<'_>,
) -> Result<()> {
    let EdgesRead { vertices, after, limit, readers } = reading;
    let limit = hop.top.as_ref().map_or(limit, |(_, count)| *count);
    let part = ListPart { after, limit };
    let expansion = Expansion { part, ..expansion_of(hop, vertices.clone()) };
    let lent = context.work.meter.lent();
    let lists = context.graph.expand(expansion).await?;
    let count = lists.iter().map(|list| list.edges.len()).sum();
    context.work.count_elements(count)?;
    progress.note(lists.len(), count);
    let in_part = lists.iter().filter(|list| list.rest.is_some()).count();
    if let Some(profile) = context.profile.as_ref().filter(|_| 0 < in_part) {
        profile.count("listsInPart", in_part);
    }
    for (at, reader) in readers {
        let (Some(EdgeList { edges, rest }), Some(from)) = (lists.get(at), vertices.get(at)) else {
            continue;
        };
        context.work.room_for(edges.len())?;
        progress.read(reader, *rest, |traverser| {
            edges.iter().map(|edge| traverser.to(end(hop, edge, from))).collect()
        });
        context.work.note_effort(edges.len() as u64);
        context.work.pause().await;
    }
    context.work.meter.take_back(lent);
    context.work.meter.check()
}

/// The expansion of vertices along a hop.
fn expansion_of(hop: &Hop, vertices: Vec<ElementId>) -> Expansion {
    Expansion {
        vertices,
        direction: hop.direction,
        labels: Arc::clone(&hop.labels),
        with_properties: hop.to_edges,
        tests: Arc::clone(&hop.tests),
        top: hop.top.as_ref().map(|(order, _)| order.clone()),
        part: ListPart::WHOLE,
    }
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
        let id = vertex_id(traverser)?;
        indexes.push(*known.entry(id).or_insert_with(|| {
            vertices.push(id.clone());
            vertices.len() - 1
        }));
    }
    Ok((expansion_of(hop, vertices), indexes))
}

/// The id of the vertex at which a traverser is.
fn vertex_id(traverser: &Traverser) -> Result<&ElementId> {
    match &traverser.value {
        Value::Vertex(vertex) => Ok(&vertex.id),
        other => Err(GremlinError::bad(format!(
            "a vertex is needed to follow edges, not a value of type {}",
            other.type_name()
        ))),
    }
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
