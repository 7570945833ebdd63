//! How many edges of how many vertices a hop reads next.

use super::vertex_id;
use crate::{
    error::Result,
    evaluate::{
        chain::Demand,
        traverser::{Batch, Traverser},
    },
    graph::EdgePlace,
    value::ElementId,
};
use std::collections::{HashMap, VecDeque};

/// The fewest and the most edges that are asked for at a time, where few results are wanted. The vertices of which they are asked
/// may have more.
const EDGES_MIN: usize = 16;
const EDGES_MAX: usize = 64 << 10;
/// The number of edges that a vertex is expected to have until others have been read.
const EXPECTED_FIRST: usize = 16;
/// The fewest edges that are asked for of each vertex if all are wanted in the end: most vertices have fewer, so that few are
/// asked twice.
const ALL_OF_VERTEX_MIN: usize = 1024;
/// The number of edges of each vertex that are asked for first if one result of each of many traversers is wanted, and by how
/// much it grows.
const OF_EACH_FIRST: usize = 4;
const OF_EACH_GROWTH: usize = 4;
/// The part of the wanted results for which vertices are asked for first.
const RESULTS_OF_VERTEX: usize = 16;

/// The traversers whose edges a hop is following.
#[derive(Debug, Default)]
pub(in crate::evaluate) struct HopProgress {
    /// In the order in which they have entered.
    open: VecDeque<Open>,
    vertices_asked: usize,
    edges_asked: usize,
    /// The vertices that have been read, and the edges that they had.
    vertices_read: usize,
    edges_read: usize,
}

/// A traverser whose edges are not all returned.
#[derive(Debug)]
struct Open {
    traverser: Traverser,
    /// Results that have not been returned.
    ready: VecDeque<Traverser>,
    unread: Unread,
}

/// The edges of a vertex that have not been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Unread {
    All,
    After(EdgePlace),
    None,
}

/// Edges that are to be read next.
#[derive(Debug)]
pub(in crate::evaluate) struct EdgesRead {
    /// The vertices, and after which of their edges.
    pub vertices: Vec<ElementId>,
    pub after: Vec<Option<EdgePlace>>,
    /// The most edges of each.
    pub limit: usize,
    /// The places among the vertices of the open traversers that have asked.
    pub readers: Vec<(usize, usize)>,
}

impl HopProgress {
    /// Takes traversers in, behind those that are open.
    ///
    /// # Errors
    /// A traverser is not at a vertex.
    pub fn enter(&mut self, batch: Batch) -> Result<()> {
        for traverser in batch {
            vertex_id(&traverser)?;
            self.open.push_back(Open { traverser, ready: VecDeque::new(), unread: Unread::All });
        }
        Ok(())
    }

    /// Whether the edges of a traverser have not all been read and returned.
    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Leaves out the traversers whose origins want no more.
    pub fn leave_out(&mut self, wanted: &Demand) {
        if wanted.has_finished() {
            self.open.retain(|open| wanted.is_of(open.traverser.origin));
        }
    }

    /// Takes the first results, as many as are wanted and as have been read. Results of a later traverser wait until all of an
    /// earlier one have been taken.
    pub fn take(&mut self, wanted: &Demand) -> Batch {
        let mut taken = Batch::new();
        while let Some(first) = self.open.front_mut() {
            let count = wanted.rest(taken.len()).min(first.ready.len());
            taken.extend(first.ready.drain(..count));
            if !first.ready.is_empty() || first.unread != Unread::None {
                break;
            }
            self.open.pop_front();
        }
        taken
    }

    /// How many vertices are to be asked for next.
    pub fn vertices_wanted(&mut self, wanted: &Demand, origins: usize) -> Demand {
        let first = if 1 < origins { origins } else { wanted.least(1) / RESULTS_OF_VERTEX };
        self.vertices_asked = self.vertices_asked.saturating_mul(2).max(first);
        wanted.limited(self.vertices_asked)
    }

    /// What is to be read next: of the open traversers in their order.
    pub fn reading(&mut self, wanted: &Demand, origins: usize) -> EdgesRead {
        let unread: Vec<usize> =
            (0..self.open.len()).filter(|at| self.open[*at].unread != Unread::None).collect();
        let growth = if 1 < origins { OF_EACH_GROWTH } else { 2 };
        let edges = self.edges_asked.saturating_mul(growth).max(wanted.least(EDGES_MIN)).min(EDGES_MAX);
        let expected = self.edges_read.checked_div(self.vertices_read).unwrap_or(EXPECTED_FIRST).max(1);
        let (vertices, least) = match (wanted.is_all(), 1 < origins) {
            (true, _) => (edges / expected, ALL_OF_VERTEX_MIN),
            (false, true) => (unread.len(), OF_EACH_FIRST),
            (false, false) => (edges / expected, edges.min(EXPECTED_FIRST.saturating_mul(expected))),
        };
        let asked = &unread[..vertices.clamp(1, unread.len().max(1)).min(unread.len())];
        let limit = edges.div_ceil(asked.len().max(1)).max(least);
        self.edges_asked = limit.saturating_mul(asked.len()).min(EDGES_MAX);
        let (mut vertices, mut after, mut readers) =
            (Vec::new(), Vec::new(), Vec::with_capacity(asked.len()));
        let mut known: HashMap<(&ElementId, Unread), usize> = HashMap::new();
        for at in asked {
            let Open { traverser, unread, .. } = &self.open[*at];
            let Ok(id) = vertex_id(traverser) else { continue };
            let index = *known.entry((id, *unread)).or_insert_with(|| {
                vertices.push(id.clone());
                after.push(if let Unread::After(position) = unread { Some(*position) } else { None });
                vertices.len() - 1
            });
            readers.push((index, *at));
        }
        EdgesRead { vertices, after, limit, readers }
    }

    /// Counts vertices that have been read, and their edges.
    pub fn note(&mut self, vertices: usize, edges: usize) {
        self.vertices_read += vertices;
        self.edges_read += edges;
    }

    /// Adds results of an open traverser, and where the rest of its edges begins.
    pub fn read(
        &mut self,
        reader: usize,
        rest: Option<EdgePlace>,
        results: impl FnOnce(&Traverser) -> Batch,
    ) {
        if let Some(open) = self.open.get_mut(reader) {
            open.ready.extend(results(&open.traverser));
            open.unread = rest.map_or(Unread::None, Unread::After);
        }
    }
}
