//! Hops of which only the number of edges, or the set of vertices that they reach, is wanted (`plan/rules.rs`).

use super::{
    bulk::merged,
    context::Context,
    hop::expansion,
    reduce::single,
    traverser::{Batch, Traverser},
};
use crate::{error::Result, plan::Hop, value::Value};

/// Multiplies the bulk of each vertex by the number of its edges.
pub(super) async fn degree(hop: &Hop, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let batch = merged(batch);
    let (expansion, places) = expansion(hop, &batch)?;
    let degrees = context.graph.degrees(expansion).await?;
    context.count_elements(degrees.len())?;
    let counted = batch.into_iter().zip(places).filter_map(|(traverser, at)| {
        let degree = i64::try_from(*degrees.get(at)?).unwrap_or(i64::MAX);
        let bulk = traverser.bulk.saturating_mul(degree);
        (degree != 0).then_some(Traverser { bulk, ..traverser })
    });
    Ok(counted.collect())
}

/// The vertices that a hop reaches from any of the vertices, each once.
pub(super) async fn reach(hop: &Hop, all: Batch, context: &Context<'_>) -> Result<Batch> {
    let (expansion, _) = expansion(hop, &all)?;
    let reached = context.graph.reach(expansion).await?;
    context.count_elements(reached.len())?;
    Ok(reached.into_iter().map(|vertex| context.traverser(Value::Vertex(vertex))).collect())
}

/// The number of vertices that [`reach`] would return.
pub(super) async fn count(hop: &Hop, all: Batch, context: &Context<'_>) -> Result<Batch> {
    let (expansion, _) = expansion(hop, &all)?;
    let reached = context.graph.count_reached(expansion).await?;
    context.count_elements(usize::try_from(reached).unwrap_or(usize::MAX))?;
    Ok(vec![single(Value::Long(i64::try_from(reached).unwrap_or(i64::MAX)), 0, context)])
}
