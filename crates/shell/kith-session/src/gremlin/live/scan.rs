//! Scans of live graphs: all vertices, and all edges.

use super::reads::LiveReads;
use crate::gremlin::{
    edge_scan::EdgeScan,
    id_pages::{IdPage, IdPages},
    ids::{number, number_id},
};
use kith_gremlin::{
    GremlinError,
    value::{Edge, ElementId, Vertex},
};
use kith_live::{GraphTypes, Inverse};
use kith_traversal::graph::{ScanPlace, ScannedEdges, WantedProperties};
use std::sync::Arc;

/// The number of ids that a scan looks up at a time.
pub(super) const LOOKED_UP_AT_ONCE: usize = 4_096;

/// The scans of one traversal, over all ids in the graph: those of objects, and those that associations leave.
#[derive(Default)]
pub(super) struct Scan {
    ids: IdPages,
}

impl Scan {
    /// Forgets the ids, after a vertex is added or removed.
    pub async fn forget(&self) {
        self.ids.forget().await;
    }

    /// A page of vertices, in ascending order of their ids.
    pub async fn vertices(
        &self,
        reads: &LiveReads<'_>,
        after: Option<ElementId>,
        limit: usize,
    ) -> Result<Vec<Arc<Vertex>>, GremlinError> {
        let after = after.as_ref().and_then(number);
        let mut next = after.map_or(Some(0), |after| after.checked_add(1));
        let mut found = Vec::new();
        while let Some(from) = next
            && found.len() < limit
        {
            let count = LOOKED_UP_AT_ONCE.min(limit);
            let IdPage { ids, is_last } = self.ids.from(from, count, &reads.fan_outs).await?;
            let rest = &ids[ids.partition_point(|id| *id < from)..];
            let some = &rest[..rest.len().min(count)];
            let page: Vec<ElementId> = some.iter().map(|id| number_id(*id)).collect();
            found.extend(reads.found_vertices(&page, &WantedProperties::None).await?.into_iter().flatten());
            let is_over = is_last && some.len() == rest.len();
            next = some.last().filter(|_| !is_over).and_then(|last| last.checked_add(1));
        }
        found.truncate(limit);
        Ok(found)
    }

    /// A page of edges, in ascending order of the vertices where they begin.
    pub async fn edges(
        &self,
        reads: &LiveReads<'_>,
        after: Option<ScanPlace>,
        limit: usize,
    ) -> Result<ScannedEdges, GremlinError> {
        let types = reads.types();
        let mut scan = EdgeScan::new(after, limit);
        while let Some((from, count)) = scan.wanted() {
            let expansion = scan.expansion(&self.ids.from(from, count, &reads.fan_outs).await?);
            scan.take(reads.expanded(&expansion).await?, |edge| is_listed_here(&types, edge));
        }
        Ok(scan.finish())
    }
}

/// Whether a scan returns an edge at its `out_vertex`: one of a symmetric type is in the lists of both ends, and is returned
/// at the smaller id.
fn is_listed_here(types: &GraphTypes, edge: &Edge) -> bool {
    let kind = types.association(&edge.label);
    let is_symmetric = kind.is_some_and(|(_, kind)| kind.inverse == Inverse::Symmetric);
    !is_symmetric || number(&edge.out_vertex.id) <= number(&edge.in_vertex.id)
}
