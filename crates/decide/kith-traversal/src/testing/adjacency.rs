//! The edges that begin and end at each vertex.

use crate::value::{Direction, ElementId};
use indexmap::IndexSet;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// The ids of edges at their vertices, by direction and label.
#[derive(Debug, Default)]
pub(super) struct Adjacency {
    outgoing: HashMap<ElementId, ByLabel>,
    incoming: HashMap<ElementId, ByLabel>,
}

type ByLabel = BTreeMap<Arc<str>, IndexSet<ElementId>>;

impl Adjacency {
    pub fn insert(&mut self, edge: &ElementId, label: &Arc<str>, from: &ElementId, to: &ElementId) {
        for (side, vertex) in [(&mut self.outgoing, from), (&mut self.incoming, to)] {
            let by_label = side.entry(vertex.clone()).or_default();
            by_label.entry(label.clone()).or_default().insert(edge.clone());
        }
    }

    pub fn remove(&mut self, edge: &ElementId, label: &str, from: &ElementId, to: &ElementId) {
        for (side, vertex) in [(&mut self.outgoing, from), (&mut self.incoming, to)] {
            if let Some(ids) = side.get_mut(vertex).and_then(|by_label| by_label.get_mut(label)) {
                ids.shift_remove(edge);
            }
        }
    }

    /// The edges of a vertex with one of these labels; with any, if there are none. First those that leave it.
    pub fn edges<'a>(
        &'a self,
        vertex: &ElementId,
        direction: Direction,
        labels: &'a [Arc<str>],
    ) -> impl Iterator<Item = &'a ElementId> {
        let outgoing = self.outgoing.get(vertex).filter(|_| direction != Direction::In);
        let incoming = self.incoming.get(vertex).filter(|_| direction != Direction::Out);
        let is_wanted = |label: &Arc<str>| labels.is_empty() || labels.contains(label);
        let all = outgoing.into_iter().chain(incoming).flatten();
        all.filter(move |(label, _)| is_wanted(label)).flat_map(|(_, ids)| ids)
    }
}
