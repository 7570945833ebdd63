//! Hops of which only the number of edges, or the set of vertices that they reach, is wanted (`plan/rules.rs`).

use super::{
    bulk::merged,
    context::Context,
    hop::expansion,
    nested,
    reduce::single,
    traverser::{Batch, Traverser},
};
use crate::{
    error::Result,
    graph::{Expansion, ListPart},
    plan::{Hop, LeadsTo},
    value::{ElementId, Value},
};
use std::{collections::HashSet, sync::Arc};

/// Up to this number of edges, both directions are cheap, so the edges of the batch are not counted to compare them.
const FEW_EDGES: u64 = 4096;

/// Multiplies the bulk of each vertex by the number of its edges.
pub(super) async fn degree(hop: &Hop, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let batch = merged(batch, context).await;
    let (expansion, indexes) = expansion(hop, &batch, context)?;
    let degrees = context.graph.degrees(expansion).await?;
    context.work.count_elements(degrees.len())?;
    let counted = batch.into_iter().zip(indexes).filter_map(|(traverser, at)| {
        let degree = i64::try_from(*degrees.get(at)?).unwrap_or(i64::MAX);
        let bulk = traverser.bulk.saturating_mul(degree);
        (degree != 0).then_some(Traverser { bulk, ..traverser })
    });
    Ok(counted.collect())
}

/// The vertices that a hop reaches from any of the vertices, each once.
pub(super) async fn reach(hop: &Hop, all: Batch, context: &Context<'_>) -> Result<Batch> {
    let (expansion, _) = expansion(hop, &all, context)?;
    let reached = context.graph.reach(expansion).await?;
    context.work.count_elements(reached.len())?;
    Ok(reached.into_iter().map(|vertex| context.traverser(Value::Vertex(vertex))).collect())
}

/// Whether an edge leads from each vertex to one of the named vertices. The edges are followed from the named vertices if the
/// batch has more vertices than are named, and [`is_shorter_back`] says that this is cheaper.
pub(super) async fn leads_to(
    wanted: &LeadsTo,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<bool>> {
    let (back, graph) = (&wanted.back, context.graph);
    let own = |traverser: &Traverser| match &traverser.value {
        Value::Vertex(vertex) => graph.canonical(&vertex.id),
        _ => None,
    };
    let own: Option<Vec<ElementId>> = batch.iter().map(own).collect();
    let is_possible = wanted.to.ids.len() < batch.len() && graph.follows(back.direction, &back.labels);
    let Some(own) = own.filter(|_| is_possible) else {
        return nested::exists(&wanted.traversal, batch, context).await;
    };
    let vertices: Vec<ElementId> = wanted.to.vertices(graph).await?.into_iter().collect();
    if vertices.is_empty() {
        return Ok(vec![false; batch.len()]);
    }
    let labels = Arc::clone(&back.labels);
    let (direction, part) = (back.direction, ListPart::WHOLE);
    let (tests, top) = ([].into(), None);
    let expansion = Expansion { vertices, direction, labels, with_properties: false, tests, top, part };
    if !is_shorter_back(&expansion, back, batch, context).await? {
        return nested::exists(&wanted.traversal, batch, context).await;
    }
    let reached = graph.reach(expansion).await?;
    context.work.count_elements(reached.len())?;
    let reached: HashSet<&ElementId> = reached.iter().map(|vertex| &vertex.id).collect();
    Ok(own.iter().map(|id| reached.contains(id)).collect())
}

/// Whether it is cheaper to follow the edges back from the named vertices than forward from the batch: if at most [`FEW_EDGES`]
/// lead back, or no more than lead forward. The edges of the batch are counted only if more than [`FEW_EDGES`] lead back.
async fn is_shorter_back(
    named: &Expansion,
    back: &Hop,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<bool> {
    let sum = |degrees: Vec<u64>| degrees.into_iter().fold(0, u64::saturating_add);
    let behind = sum(context.graph.degrees(named.clone()).await?);
    if behind <= FEW_EDGES {
        return Ok(true);
    }
    let (forward, _) = expansion(&back.reversed(), batch, context)?;
    Ok(behind <= sum(context.graph.degrees(forward).await?))
}

/// The number of vertices that [`reach`] would return.
pub(super) async fn count(hop: &Hop, all: Batch, context: &Context<'_>) -> Result<Batch> {
    let (expansion, _) = expansion(hop, &all, context)?;
    let reached = context.graph.count_reached(expansion).await?;
    context.work.count_elements(usize::try_from(reached).unwrap_or(usize::MAX))?;
    Ok(vec![single(Value::Long(i64::try_from(reached).unwrap_or(i64::MAX)), 0, context)])
}
