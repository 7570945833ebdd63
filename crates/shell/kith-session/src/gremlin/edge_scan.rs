//! A page of a scan of all edges: they are listed vertex by vertex, each at the vertex at which it begins.

use super::{
    id_pages::IdPage,
    ids::{number, number_id},
};
use kith_gremlin::value::{Direction, Edge};
use kith_traversal::graph::{EdgeList, EdgePlace, Expansion, ListPart, ScanPlace, ScannedEdges};

/// For this number of edges that are wanted, one vertex is read at a time.
const EDGES_OF_VERTEX: usize = 16;

/// A page that is being read: about `limit` edges after a place.
pub(super) struct EdgeScan {
    /// The least id of a vertex that has not been read; `None` at the end.
    from: Option<u64>,
    /// The place among the edges of the vertex with this id.
    position: Option<EdgePlace>,
    limit: usize,
    /// The vertices that are being read.
    reading: Vec<u64>,
    /// What follows them.
    next: Option<u64>,
    page: ScannedEdges,
}

impl EdgeScan {
    pub fn new(after: Option<ScanPlace>, limit: usize) -> Self {
        let from = after.as_ref().map_or(Some(0), |position| number(&position.vertex));
        let position = after.and_then(|position| position.edges);
        Self { from, position, limit, reading: Vec::new(), next: None, page: ScannedEdges::default() }
    }

    /// From which id on vertices are needed, and how many. `None` once the page is complete.
    pub fn wanted(&self) -> Option<(u64, usize)> {
        let is_complete = self.page.rest.is_some() || self.limit <= self.page.edges.len();
        self.from.filter(|_| !is_complete).map(|from| (from, (self.limit / EDGES_OF_VERTEX).max(1)))
    }

    /// What is read next: everything that leaves some of these vertices.
    pub fn expansion(&mut self, IdPage { ids, is_last }: &IdPage) -> Expansion {
        let (from, count) = self.wanted().unwrap_or_default();
        let rest = &ids[ids.partition_point(|id| *id < from)..];
        self.reading = rest[..rest.len().min(count)].to_vec();
        let is_over = *is_last && self.reading.len() == rest.len();
        self.next = self.reading.last().filter(|_| !is_over).and_then(|last| last.checked_add(1));
        // The vertex of the place is gone if it is not the first: live graphs change meanwhile.
        let position = self.position.take().filter(|_| self.reading.first() == Some(&from));
        Expansion {
            vertices: self.reading.iter().map(|id| number_id(*id)).collect(),
            direction: Direction::Out,
            labels: [].into(),
            with_properties: true,
            tests: [].into(),
            top: None,
            part: ListPart { after: position.into_iter().map(Some).collect(), limit: self.limit },
        }
    }

    /// Takes the edges of these vertices that are listed there.
    pub fn take(&mut self, lists: Vec<EdgeList>, is_listed: impl Fn(&Edge) -> bool) {
        for (id, EdgeList { edges, rest }) in self.reading.drain(..).zip(lists) {
            self.page.edges.extend(edges.into_iter().filter(|edge| is_listed(edge)));
            if rest.is_some() {
                // What has been read of later vertices is read again once this one is complete.
                self.page.rest = Some(ScanPlace { vertex: number_id(id), edges: rest });
                break;
            }
        }
        self.from = self.next;
    }

    /// The page.
    pub fn finish(self) -> ScannedEdges {
        let next = self.from.map(|id| ScanPlace { vertex: number_id(id), edges: None });
        ScannedEdges { rest: self.page.rest.or(next), edges: self.page.edges }
    }
}
