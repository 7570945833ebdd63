//! Hops of which only the set of vertices that they reach is wanted. Nodes answer from the lists that they keep for graph
//! queries, merge them, and send each id once.

use super::{labels, reads::LiveReads};
use crate::gremlin::{fan_outs::union_of_keys, rows::unexpected};
use kith_gremlin::GremlinError;
use kith_operators::{Operator, Value as Evaluated};
use kith_schema::EdgeSelector;
use kith_traversal::graph::Expansion;
use kith_types::Direction;
use std::collections::BTreeSet;

impl LiveReads<'_> {
    /// The ids at the other ends of all edges, in one fan-out for all labels and directions. `None` if nodes do not keep all of
    /// these lists for graph queries: types may be declared without adjacency.
    pub(super) async fn reached(&self, expansion: &Expansion) -> Result<Option<Vec<u64>>, GremlinError> {
        let types = self.types_with(&expansion.labels);
        let lists = labels::lists(&types, expansion.direction, &expansion.labels);
        let lists = lists.map_err(|error| self.fan_outs.error(error))?;
        if Operator::LISTS_MAX < lists.len() || lists.iter().any(|list| !list.kind.adjacency) {
            return Ok(None);
        }
        let ids: BTreeSet<u64> = self.numbers(&expansion.vertices).await?.into_iter().flatten().collect();
        if lists.is_empty() || ids.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let selectors = lists.iter().map(|list| EdgeSelector {
            kind: list.kind.name.clone(),
            direction: Direction::Out,
            filter: None,
        });
        let plan = Operator::Reach(selectors.collect());
        let ids: Vec<u64> = ids.into_iter().collect();
        match self.fan_outs.ask(union_of_keys("reached vertices", &ids, plan)).await? {
            Evaluated::Set(reached) => Ok(Some(reached)),
            other => Err(unexpected(&other)),
        }
    }
}
