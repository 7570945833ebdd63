//! The search for a shortest path (`plan/repeats.rs`): hop by hop from both ends, each time from the end that has fewer
//! vertices to expand. A graph that does not keep the opposite direction is searched from the beginning only.

use super::{
    context::Context,
    hop::expansion,
    traverser::{Batch, Traverser},
};
use crate::{
    error::Result,
    plan::{Hop, ShortestPath, keys},
    value::{Direction, Edge, ElementId, Value, Vertex},
};
use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

/// One end of the search.
struct Side {
    hop: Hop,
    /// The vertices that were reached, each with the vertex through which it was reached first; `None` for those where this
    /// side began.
    reached: HashMap<ElementId, Option<Arc<Vertex>>>,
    /// The vertices that were reached last.
    frontier: Vec<Arc<Vertex>>,
    /// The number of times that the edges of a frontier were followed.
    passes: u32,
}

impl Side {
    fn new(hop: Hop, ends: Vec<Arc<Vertex>>) -> Self {
        let reached = ends.iter().map(|vertex| (vertex.id.clone(), None)).collect();
        Self { hop, reached, frontier: ends, passes: 0 }
    }

    /// Follows the edges of the frontier. Returns the first edge, as its two ends, that leads to what `other` has reached.
    async fn advance(&mut self, other: &Self, context: &Context<'_>) -> Result<Option<[Arc<Vertex>; 2]>> {
        let frontier = std::mem::take(&mut self.frontier);
        let batch: Batch =
            frontier.iter().map(|vertex| context.traverser(Value::Vertex(Arc::clone(vertex)))).collect();
        context.work.check_pass(self.passes + other.passes)?;
        let (expansion, _) = expansion(&self.hop, &batch, context)?;
        self.passes += 1;
        let lists = context.graph.expand(expansion).await?;
        context.work.count_elements(lists.iter().map(|list| list.edges.len()).sum())?;
        for (from, list) in frontier.iter().zip(&lists) {
            for edge in &list.edges {
                let [own, to] = ends(self.hop.direction, edge, &from.id);
                if other.reached.contains_key(&to.id) {
                    return Ok(Some([own, to]));
                }
                if let Entry::Vacant(entry) = self.reached.entry(to.id.clone()) {
                    entry.insert(Some(own));
                    self.frontier.push(to);
                }
            }
        }
        Ok(None)
    }

    /// The path from a reached vertex back to where this side began, without the reached vertex itself.
    fn back(&self, from: &Arc<Vertex>) -> Vec<Arc<Vertex>> {
        let before = |vertex: &Arc<Vertex>| self.reached.get(&vertex.id).cloned().flatten();
        std::iter::successors(before(from), before).collect()
    }
}

/// Both ends of an edge, first the one from which it is followed. Unlike a vertex that is only named by its id, these have their
/// labels.
fn ends(direction: Direction, edge: &Edge, from: &ElementId) -> [Arc<Vertex>; 2] {
    let is_forward = match direction {
        Direction::Out => true,
        Direction::In => false,
        Direction::Both => edge.out_vertex.id == *from,
    };
    let (out_vertex, in_vertex) = (Arc::clone(&edge.out_vertex), Arc::clone(&edge.in_vertex));
    if is_forward { [out_vertex, in_vertex] } else { [in_vertex, out_vertex] }
}

/// The traverser after a shortest path from its vertex to one of the named ones; none if there is no path.
pub(super) async fn path(wanted: &ShortestPath, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let mut found = Batch::new();
    for traverser in batch {
        found.extend(from(wanted, &traverser, context).await?);
    }
    Ok(found)
}

async fn from(wanted: &ShortestPath, from: &Traverser, context: &Context<'_>) -> Result<Option<Traverser>> {
    let Value::Vertex(start) = &from.value else { return Ok(None) };
    let mut named: HashSet<ElementId> = wanted.to.vertices(context.graph).await?;
    if wanted.is_simple {
        named.remove(&start.id);
    }
    let ids: Vec<ElementId> = named.into_iter().collect();
    let ends: Vec<Arc<Vertex>> =
        ids.into_iter().map(|id| Arc::new(Vertex::reference(id, keys::VERTEX))).collect();
    let mut near = Side::new(wanted.hop.clone(), vec![Arc::clone(start)]);
    let mut far = Side::new(wanted.hop.reversed(), ends);
    let Some([last, next]) = joined(&mut near, &mut far, context).await? else { return Ok(None) };
    let mut path = near.back(&last);
    path.reverse();
    path.extend([Arc::clone(&last), Arc::clone(&next)]);
    path.extend(far.back(&next));
    // The traverser is at the first vertex already.
    Ok(Some(path.into_iter().skip(1).fold(from.clone(), |it, vertex| it.to(Value::Vertex(vertex)))))
}

/// Advances the sides until an edge joins them. Returns its ends, the one towards the beginning of the path first; `None` if the
/// sides cannot meet.
async fn joined(near: &mut Side, far: &mut Side, context: &Context<'_>) -> Result<Option<[Arc<Vertex>; 2]>> {
    let has_far = context.graph.follows(far.hop.direction, &far.hop.labels);
    loop {
        if near.frontier.is_empty() || far.reached.is_empty() || (has_far && far.frontier.is_empty()) {
            return Ok(None);
        }
        let edge = if !has_far || near.frontier.len() <= far.frontier.len() {
            near.advance(far, context).await?
        } else {
            far.advance(near, context).await?.map(|[next, last]| [last, next])
        };
        if edge.is_some() {
            return Ok(edge);
        }
    }
}
