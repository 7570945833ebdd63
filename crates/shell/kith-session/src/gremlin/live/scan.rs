//! Scans of live graphs: all vertices, and all edges.

use super::reads::LiveReads;
use crate::gremlin::{
    edge_page::EdgePage,
    ids::{number, number_id, split_edge},
    rows::unexpected,
};
use kith_gremlin::{
    GremlinError,
    value::{Edge, ElementId, Vertex},
};
use kith_live::{GraphTypes, Inverse};
use kith_operators::{Operator, Value as Evaluated};
use kith_traversal::graph::WantedProperties;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::Mutex;

/// The number of ids that a scan looks up at a time.
pub(super) const LOOKED_UP_AT_ONCE: usize = 4_096;
/// The number of vertices that a scan of edges expands at a time.
pub(super) const EXPANDED_AT_ONCE: usize = 256;

/// The scans of one traversal.
#[derive(Default)]
pub(super) struct Scan {
    /// All ids in ascending order, once a scan has asked for them.
    ids: Mutex<Option<Arc<[u64]>>>,
    /// How many bytes are charged for them.
    charged_bytes: AtomicU64,
}

impl Scan {
    /// Forgets the ids, after a vertex is added or removed.
    pub async fn forget(&self) {
        *self.ids.lock().await = None;
    }

    /// All ids in the graph, in ascending order: those of objects, and those that associations leave.
    async fn all_ids(&self, reads: &LiveReads<'_>) -> Result<Arc<[u64]>, GremlinError> {
        let mut known = self.ids.lock().await;
        if let Some(ids) = &*known {
            return Ok(Arc::clone(ids));
        }
        match reads.fan_outs.ask_everyone("ids", Operator::Members).await? {
            Evaluated::Set(ids) => {
                // They are kept until the end, or until others take their place after a write.
                let bytes = size_of_val(&ids[..]) as u64;
                let before = self.charged_bytes.fetch_max(bytes, Ordering::Relaxed);
                reads.meter.charge(bytes.saturating_sub(before))?;
                Ok(Arc::clone(known.insert(ids.into())))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// A page of vertices, in ascending order of their ids.
    pub async fn vertices(
        &self,
        reads: &LiveReads<'_>,
        after: Option<ElementId>,
        limit: usize,
    ) -> Result<Vec<Arc<Vertex>>, GremlinError> {
        let ids = self.all_ids(reads).await?;
        let after = after.as_ref().and_then(number);
        let mut from = after.map_or(0, |after| ids.partition_point(|id| *id <= after));
        let mut found = Vec::new();
        while from < ids.len() && found.len() < limit {
            let upto = ids.len().min(from + LOOKED_UP_AT_ONCE.min(limit));
            let page: Vec<ElementId> = ids[from..upto].iter().map(|id| number_id(*id)).collect();
            found.extend(reads.found_vertices(&page, &WantedProperties::None).await?.into_iter().flatten());
            from = upto;
        }
        found.truncate(limit);
        Ok(found)
    }

    /// A page of edges, in ascending order of the vertices where they begin.
    pub async fn edges(
        &self,
        reads: &LiveReads<'_>,
        after: Option<ElementId>,
        limit: usize,
    ) -> Result<Vec<Arc<Edge>>, GremlinError> {
        let ids = self.all_ids(reads).await?;
        let last = after.as_ref().and_then(split_edge).and_then(|(from, _, _)| from.parse::<u64>().ok());
        let from = last.map_or(0, |last| ids.partition_point(|id| *id < last));
        let mut page = EdgePage::new(after, limit);
        let types = reads.types();
        for chunk in ids[from..].chunks(EXPANDED_AT_ONCE) {
            let edges = reads.expanded(&EdgePage::expansion(chunk)).await?.into_iter().flatten();
            if page.take(edges.filter(|edge| is_listed_here(&types, edge)).collect()) {
                break;
            }
        }
        Ok(page.finish())
    }
}

/// Whether a scan returns an edge at its `out_vertex`: one of a symmetric type is in the lists of both ends, and is returned
/// at the smaller id.
fn is_listed_here(types: &GraphTypes, edge: &Edge) -> bool {
    let kind = types.association(&edge.label);
    let is_symmetric = kind.is_some_and(|(_, kind)| kind.inverse == Inverse::Symmetric);
    !is_symmetric || number(&edge.out_vertex.id) <= number(&edge.in_vertex.id)
}
