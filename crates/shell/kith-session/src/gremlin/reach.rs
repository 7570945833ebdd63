//! Hops over a loaded graph of which only the number of edges, or the set of vertices that they reach, is wanted. Nodes merge
//! their lists before they answer, and no edge is built.

use super::{
    fan_outs::union_of_keys,
    ids::{Sorts, VertexKey, distinct, sorts, vertex_key},
    loaded::LoadedGraph,
    rows::{expand, lists, selector, unexpected},
};
use kith_gremlin::{GremlinError, value::ElementId};
use kith_operators::{ListEntry, Operator, Value as Evaluated};
use kith_schema::KindRole;
use kith_traversal::graph::Expansion;
use std::collections::HashMap;

impl LoadedGraph<'_> {
    fn keys(&self, ids: &[ElementId]) -> Vec<Option<VertexKey>> {
        ids.iter().map(|id| VertexKey::parse(id, self.schema())).collect()
    }

    /// The number of edges of each vertex. Nodes answer with the lengths of their lists.
    pub(super) async fn counted(&self, expansion: &Expansion) -> Result<Vec<u64>, GremlinError> {
        let keys = self.keys(&expansion.vertices);
        let mut degrees: HashMap<VertexKey, u64> = HashMap::new();
        for (entity_kind, ids) in sorts(keys.iter().flatten()) {
            for (kind, side, _) in self.lists_of(entity_kind.as_deref(), expansion) {
                let counts = Operator::Count(Box::new(expand(selector(&kind.name, side), 0)));
                let entries = lists(self.fan_outs.ask_keys("degrees", &ids, counts).await?, ids.len())?;
                for (id, entry) in ids.iter().zip(entries) {
                    let length = match entry {
                        ListEntry::Longer(length) => length,
                        ListEntry::Ids(ids) => ids.len() as u64,
                        ListEntry::NotInGraph | ListEntry::Unanswered => 0,
                    };
                    *degrees.entry(vertex_key(entity_kind.as_deref(), *id)).or_default() += length;
                }
            }
        }
        let degree = |key: Option<VertexKey>| key.and_then(|key| degrees.get(&key).copied()).unwrap_or(0);
        Ok(keys.into_iter().map(degree).collect())
    }

    /// The vertices at the other ends of all edges.
    pub(super) async fn reached(&self, expansion: &Expansion) -> Result<Sorts, GremlinError> {
        let mut reached = Sorts::new();
        for (entity_kind, ids) in sorts(self.keys(&expansion.vertices).iter().flatten()) {
            for (kind, side, _) in self.lists_of(entity_kind.as_deref(), expansion) {
                let plan = Operator::Union(Box::new(expand(selector(&kind.name, side), u64::MAX)));
                let fan_out = union_of_keys("reached vertices", &ids, plan);
                let found = match self.fan_outs.ask(fan_out).await? {
                    Evaluated::Set(found) => found,
                    other => return Err(unexpected(&other)),
                };
                let is_entity = kind.role == KindRole::Entity && entity_kind.is_none();
                let known = reached.entry(is_entity.then(|| kind.name.clone())).or_default();
                if known.is_empty() {
                    *known = found;
                } else {
                    known.extend(found);
                    distinct(known);
                }
            }
        }
        Ok(reached)
    }
}
