//! A page of a scan of all edges: they are listed vertex by vertex, each at the vertex at which it begins.

use super::ids::number_id;
use kith_gremlin::value::{Direction, Edge, ElementId};
use kith_traversal::graph::Expansion;
use std::sync::Arc;

/// The page that follows an edge.
pub(super) struct EdgePage {
    after: Option<ElementId>,
    limit: usize,
    edges: Vec<Arc<Edge>>,
}

impl EdgePage {
    /// The first edges, at most `limit`, after the one with the id `after`. The vertex at which that edge begins must be among
    /// the first that are expanded.
    pub fn new(after: Option<ElementId>, limit: usize) -> Self {
        Self { after, limit, edges: Vec::new() }
    }

    /// The expansion of these vertices: everything that leaves them.
    pub fn expansion(ids: &[u64]) -> Expansion {
        Expansion {
            vertices: ids.iter().map(|id| number_id(*id)).collect(),
            direction: Direction::Out,
            labels: [].into(),
            with_properties: true,
            ranges: [].into(),
        }
    }

    /// Takes the edges of the next vertices. Returns whether the page is full.
    pub fn take(&mut self, mut edges: Vec<Arc<Edge>>) -> bool {
        if let Some(after) = self.after.take()
            && let Some(at) = edges.iter().position(|edge| edge.id == after)
        {
            edges.drain(..=at);
        }
        self.edges.extend(edges);
        self.limit <= self.edges.len()
    }

    /// The edges of the page.
    pub fn finish(mut self) -> Vec<Arc<Edge>> {
        self.edges.truncate(self.limit);
        self.edges
    }
}
