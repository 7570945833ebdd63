//! Steps that begin with elements of the graph: `V` and `E`.

use super::{
    chain::{ScanProgress, Upstream},
    context::Context,
    reduce::added,
    reference,
    traverser::{Batch, Traverser},
};
use crate::{
    error::Result,
    graph::{CountedLabels, ScannedEdges, VertexSearch, WantedProperties},
    plan::{Kind, keys},
    value::{ElementId, Value, Vertex},
};
use std::sync::Arc;

/// The fewest elements that a page of a scan is asked for, and the most. Pages grow, so that a `limit` costs little and a whole
/// scan takes few calls.
const PAGE_MIN: usize = 16;
const PAGE_MAX: usize = 4096;

/// The next batch of `V` or `E`. At the beginning of a traversal these return elements of the graph; in the middle, they return
/// them for each traverser.
pub(super) async fn scan(
    kind: &Kind,
    progress: &mut ScanProgress,
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
    if progress.is_over {
        return Ok(None);
    }
    let found = match kind {
        Kind::SoughtVertices(sought) if progress.asked == 0 => found(sought, context).await?,
        _ => None,
    };
    let elements = match (ids(kind), found) {
        ([], Some(found)) => {
            progress.is_over = true;
            found
        }
        ([], None) => {
            progress.asked = upstream.demand.least(PAGE_MIN.max(2 * progress.asked)).min(PAGE_MAX);
            page(kind, progress, context).await?
        }
        _ => {
            progress.is_over = true;
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

/// The number of all vertices or edges with these labels, once.
pub(super) async fn count(
    of_edges: bool,
    labels: &CountedLabels,
    is_over: &mut bool,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    if std::mem::replace(is_over, true) {
        return Ok(None);
    }
    let graph = context.graph;
    let counted = match of_edges {
        false => graph.count_vertices(labels.clone()).await?,
        true => graph.count_edges(labels.clone()).await?,
    };
    let count = match counted {
        Some(count) => {
            context.work.count_elements(1)?;
            count
        }
        None => scanned_count(of_edges, labels, context).await?,
    };
    let count = added(0, i64::try_from(count).unwrap_or(i64::MAX))?;
    Ok(Some(vec![context.traverser(Value::Long(count))]))
}

/// Counts elements page by page.
async fn scanned_count(of_edges: bool, labels: &CountedLabels, context: &Context<'_>) -> Result<u64> {
    let kind = if of_edges { Kind::Edges { ids: Vec::new() } } else { Kind::Vertices { ids: Vec::new() } };
    let mut progress = ScanProgress { asked: PAGE_MAX, ..ScanProgress::default() };
    let mut count = 0;
    while !progress.is_over {
        let is_counted = |element: &&Value| match element {
            Value::Vertex(vertex) => labels.contain(&vertex.label),
            Value::Edge(edge) => labels.contain(&edge.label),
            _ => false,
        };
        count += page(&kind, &mut progress, context).await?.iter().filter(is_counted).count() as u64;
    }
    Ok(count)
}

fn ids(kind: &Kind) -> &[ElementId] {
    match kind {
        Kind::Vertices { ids } | Kind::NamedVertices { ids } | Kind::Edges { ids } => ids,
        _ => &[],
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
                let named = context.graph.named(ids).await?.into_iter().flatten();
                named.map(|id| Value::Vertex(Arc::new(Vertex::reference(id, keys::VERTEX)))).collect()
            }
            _ => context.graph.edges(ids).await?.into_iter().flatten().map(Value::Edge).collect(),
        };
        context.work.count_elements(found.len())?;
        return Ok(found);
    }
    let (mut all, mut progress) = (Vec::new(), ScanProgress { asked: PAGE_MAX, ..ScanProgress::default() });
    while !progress.is_over {
        all.extend(page(kind, &mut progress, context).await?);
    }
    Ok(all)
}

/// All vertices.
pub(super) async fn all_vertices(context: &Context<'_>) -> Result<Vec<Value>> {
    elements(&Kind::Vertices { ids: Vec::new() }, context).await
}

/// All edges.
pub(super) async fn all_edges(context: &Context<'_>) -> Result<Vec<Value>> {
    elements(&Kind::Edges { ids: Vec::new() }, context).await
}

/// The next page of a scan, with as many elements as are asked for at most.
async fn page(kind: &Kind, progress: &mut ScanProgress, context: &Context<'_>) -> Result<Vec<Value>> {
    let (graph, limit) = (context.graph, progress.asked);
    let page: Vec<Value> = match kind {
        Kind::Vertices { .. } | Kind::SoughtVertices(_) => {
            let page = graph.scan_vertices(progress.vertex.take(), limit).await?;
            progress.is_over = page.len() < limit;
            progress.vertex = page.last().map(|vertex| vertex.id.clone());
            page.iter().map(|vertex| Value::Vertex(reference(vertex))).collect()
        }
        _ => {
            let ScannedEdges { edges, rest } = graph.scan_edges(progress.edge.take(), limit).await?;
            progress.is_over = rest.is_none();
            progress.edge = rest;
            edges.into_iter().map(Value::Edge).collect()
        }
    };
    context.work.count_elements(page.len())?;
    Ok(page)
}
