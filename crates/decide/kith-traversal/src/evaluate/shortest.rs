//! The search for a shortest path (`plan/repeats.rs`): hop by hop from both ends, each time from the end that has fewer
//! vertices to expand. It goes from the beginning only if the graph does not keep the opposite direction, if only tests say where
//! the path ends and no index finds it, or if edges are part of the path: followed backwards, they may look different.

use super::{
    chain::{Demand, Upstream},
    context::Context,
    hop::expansion,
    nested, scan,
    traverser::{Batch, Traverser},
};
use crate::{
    error::Result,
    plan::{Hop, PathEnd, ShortestPath, Traversal, keys},
    value::{Direction, Edge, ElementId, Value, Vertex},
};
use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

/// The most vertices from which paths are sought together.
const TOGETHER_MAX: usize = 64;

/// An edge of a path, if edges are part of it, and the vertex to which it leads.
type PathHop = (Option<Arc<Edge>>, Arc<Vertex>);

/// An edge that joins the sides: the vertex towards the beginning of the path, and the hop to the next one.
type Joint = (Arc<Vertex>, PathHop);

/// One end of the search.
struct Side {
    hop: Hop,
    with_edges: bool,
    /// The vertices that were reached, each with the vertex through which it was reached first, and the edge from there; `None`
    /// for those where this side began.
    reached: HashMap<ElementId, Option<PathHop>>,
    /// The vertices that cannot be part of the path.
    left_out: HashSet<ElementId>,
    /// The vertices that were reached last.
    frontier: Vec<Arc<Vertex>>,
    /// The number of times that the edges of a frontier were followed.
    passes: u32,
}

impl Side {
    fn new(hop: Hop, with_edges: bool, ends: Vec<Arc<Vertex>>) -> Self {
        let reached = ends.iter().map(|vertex| (vertex.id.clone(), None)).collect();
        let hop = Hop { to_edges: with_edges, ..hop };
        Self { hop, with_edges, reached, left_out: HashSet::new(), frontier: ends, passes: 0 }
    }

    /// Follows the edges of the frontier. Returns the first edge that leads to what `other` has reached.
    async fn advance(
        &mut self,
        other: &Self,
        wanted: &ShortestPath,
        context: &Context<'_>,
    ) -> Result<Option<Joint>> {
        let frontier = std::mem::take(&mut self.frontier);
        let batch = traversers(&frontier, context);
        context.work.check_pass(self.passes + other.passes)?;
        let (expansion, _) = expansion(&self.hop, &batch, context)?;
        self.passes += 1;
        let lists = context.graph.expand(expansion).await?;
        context.work.count_elements(lists.iter().map(|list| list.edges.len()).sum())?;
        let edges = lists.iter().flat_map(|list| &list.edges).filter(|_| wanted.edges.is_some());
        let edges = edges.map(|edge| context.traverser(Value::Edge(Arc::clone(edge)))).collect::<Batch>();
        // Without tests, there is nothing to take from here.
        let mut passes = passes(wanted.edges.as_ref(), &edges, context).await?.into_iter();
        for (from, list) in frontier.iter().zip(&lists) {
            for edge in &list.edges {
                let [own, to] = ends(self.hop.direction, edge, &from.id);
                if passes.next() == Some(false) || self.left_out.contains(&to.id) {
                    continue;
                }
                let edge = self.with_edges.then(|| Arc::clone(edge));
                if other.reached.contains_key(&to.id) {
                    return Ok(Some((own, (edge, to))));
                }
                if let Entry::Vacant(entry) = self.reached.entry(to.id.clone()) {
                    entry.insert(Some((edge, own)));
                    self.frontier.push(to);
                }
            }
        }
        self.leave_out(wanted.vertices.as_ref(), context).await?;
        Ok(None)
    }

    /// Leaves vertices out of the frontier that cannot be part of the path.
    async fn leave_out(&mut self, tests: Option<&Traversal>, context: &Context<'_>) -> Result<()> {
        let passes = passes(tests, &traversers(&self.frontier, context), context).await?;
        for (vertex, passes) in std::mem::take(&mut self.frontier).into_iter().zip(passes) {
            if passes {
                self.frontier.push(vertex);
            } else {
                self.reached.remove(&vertex.id);
                self.left_out.insert(vertex.id.clone());
            }
        }
        Ok(())
    }

    /// The hops from a reached vertex back to where this side began.
    fn back(&self, from: &Arc<Vertex>) -> Vec<PathHop> {
        let before = |vertex: &Arc<Vertex>| self.reached.get(&vertex.id).cloned().flatten();
        std::iter::successors(before(from), |(_, vertex)| before(vertex)).collect()
    }
}

fn traversers(vertices: &[Arc<Vertex>], context: &Context<'_>) -> Batch {
    vertices.iter().map(|vertex| context.traverser(Value::Vertex(Arc::clone(vertex)))).collect()
}

/// Whether each traverser passes the tests, if there are any.
async fn passes(tests: Option<&Traversal>, batch: &Batch, context: &Context<'_>) -> Result<Vec<bool>> {
    match tests {
        Some(tests) => nested::exists(tests, batch, context).await,
        None => Ok(vec![true; batch.len()]),
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

/// The traverser after a shortest path from one of the next traversers; none if there is no path from these. `None` at the end.
pub(super) async fn next(
    wanted: &ShortestPath,
    upstream: &mut Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    upstream.demand = Demand::of(TOGETHER_MAX);
    let Some(starts) = upstream.next(context).await? else { return Ok(None) };
    let able = passes(wanted.vertices.as_ref(), &starts, context).await?;
    let starts: Batch = starts.into_iter().zip(able).filter_map(|(it, able)| able.then_some(it)).collect();
    if starts.is_empty() {
        return Ok(Some(starts));
    }
    let target = Target::of(wanted, &starts, context).await?;
    // A simple path may end where another one begins.
    let is_apart = wanted.is_simple && target.ends.iter().any(|end| begins(&starts, end));
    let mut shortest: Option<(usize, Traverser)> = None;
    for starts in starts.chunks(if is_apart { 1 } else { starts.len() }) {
        let found = from(wanted, starts, &target, context).await?;
        shortest = shortest.into_iter().chain(found).min_by_key(|(hops, _)| *hops);
    }
    Ok(Some(shortest.into_iter().map(|(_, traverser)| traverser).collect()))
}

/// Where a path may end.
struct Target<'a> {
    /// The vertices where it may end; with tests, those among the beginnings.
    ends: Vec<Arc<Vertex>>,
    /// The tests that other ends pass.
    tests: Option<&'a Traversal>,
}

impl<'a> Target<'a> {
    async fn of(wanted: &'a ShortestPath, starts: &[Traverser], context: &Context<'_>) -> Result<Self> {
        let (tests, sought) = match &wanted.to {
            PathEnd::Named(named) => {
                let named = named.vertices(context.graph).await?.into_iter();
                let ends = named.map(|id| Arc::new(Vertex::reference(id, keys::VERTEX))).collect();
                return Ok(Self { ends, tests: None });
            }
            PathEnd::Tested { tests, sought } => (tests, sought),
        };
        let found = match sought {
            Some(sought) if !with_edges(wanted, context) => scan::found(sought, context).await?,
            _ => None,
        };
        let is_complete = found.is_some();
        let values = found.unwrap_or_else(|| starts.iter().map(|it| it.value.clone()).collect());
        let batch: Batch = values.into_iter().map(|value| context.traverser(value)).collect();
        let is_end = nested::exists(tests, &batch, context).await?;
        let ends = batch.into_iter().zip(is_end).filter_map(|(it, is_end)| match it.value {
            Value::Vertex(vertex) if is_end => Some(vertex),
            _ => None,
        });
        Ok(Self { ends: ends.collect(), tests: Some(tests).filter(|_| !is_complete) })
    }
}

fn begins(starts: &[Traverser], end: &Vertex) -> bool {
    starts.iter().any(|start| matches!(&start.value, Value::Vertex(vertex) if vertex.id == end.id))
}

fn with_edges(wanted: &ShortestPath, context: &Context<'_>) -> bool {
    wanted.hop.to_edges && context.with_paths
}

/// The number of hops of a shortest path, and the traverser after it.
async fn from(
    wanted: &ShortestPath,
    starts: &[Traverser],
    target: &Target<'_>,
    context: &Context<'_>,
) -> Result<Option<(usize, Traverser)>> {
    let with_edges = with_edges(wanted, context);
    let beginnings = starts.iter().filter_map(|start| match &start.value {
        Value::Vertex(vertex) => Some(Arc::clone(vertex)),
        _ => None,
    });
    let ends = target.ends.iter().filter(|end| !wanted.is_simple || !begins(starts, end)).cloned();
    let mut near = Side::new(wanted.hop.clone(), with_edges, beginnings.collect());
    let mut far = Side::new(wanted.hop.reversed(), with_edges, ends.collect());
    far.leave_out(wanted.vertices.as_ref(), context).await?;
    let Some((last, next)) = joined(&mut near, &mut far, wanted, target, context).await? else {
        return Ok(None);
    };
    // Each hop of the near side is known by the vertex where it begins.
    let mut path = vec![next.clone()];
    let mut to = last;
    for (edge, before) in near.back(&to) {
        path.push((edge, std::mem::replace(&mut to, before)));
    }
    path.reverse();
    path.extend(far.back(&next.1));
    let begins = |start: &&Traverser| matches!(&start.value, Value::Vertex(vertex) if vertex.id == to.id);
    let start = starts.iter().find(begins);
    let hop = |it: Traverser, (edge, vertex): PathHop| {
        let it = edge.map_or_else(|| it.clone(), |edge| it.to(Value::Edge(edge)));
        it.to(Value::Vertex(vertex))
    };
    let hops = path.len();
    Ok(start.map(|start| (hops, path.into_iter().fold(start.clone(), hop))))
}

/// Advances the sides until an edge joins them, or leads to a vertex that passes the tests. `None` if there is no such edge.
async fn joined(
    near: &mut Side,
    far: &mut Side,
    wanted: &ShortestPath,
    target: &Target<'_>,
    context: &Context<'_>,
) -> Result<Option<Joint>> {
    let is_known = target.tests.is_none();
    let has_far = is_known && !near.with_edges && context.graph.follows(far.hop.direction, &far.hop.labels);
    loop {
        if near.frontier.is_empty()
            || (is_known && far.reached.is_empty())
            || (has_far && far.frontier.is_empty())
        {
            return Ok(None);
        }
        let joint = if !has_far || near.frontier.len() <= far.frontier.len() {
            near.advance(far, wanted, context).await?
        } else {
            let joint = far.advance(near, wanted, context).await?;
            joint.map(|(next, (edge, last))| (last, (edge, next)))
        };
        if joint.is_some() {
            return Ok(joint);
        }
        if let Some(tests) = target.tests {
            let is_end = nested::exists(tests, &traversers(&near.frontier, context), context).await?;
            let end = near.frontier.iter().zip(is_end).find_map(|(it, is_end)| is_end.then_some(it));
            let before = end.and_then(|end| Some((end, near.reached.get(&end.id).cloned().flatten()?)));
            if let Some((end, (edge, before))) = before {
                return Ok(Some((before, (edge, Arc::clone(end)))));
            }
        }
    }
}
