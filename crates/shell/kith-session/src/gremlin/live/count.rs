//! Numbers of all vertices and edges of a live graph, which nodes have the database count without reading them.

use super::{labels, reads::LiveReads};
use crate::gremlin::count::sum;
use kith_gremlin::{GremlinError, value::Direction};
use kith_live::CountedElements;
use kith_operators::Operator;
use kith_traversal::graph::CountedLabels;
use std::sync::Arc;

/// The number of objects.
pub(super) async fn vertices(reads: &LiveReads<'_>, labels: &CountedLabels) -> Result<u64, GremlinError> {
    let types = reads.types();
    let kinds = match labels.named() {
        None => Vec::new(),
        Some(named) => {
            // In an open graph, nodes may know a type that this process has not heard of.
            let is_possible = |label: &&Arc<str>| types.open || types.object(label).is_some();
            let kinds: Vec<String> = named.iter().filter(is_possible).map(|it| it.to_string()).collect();
            if kinds.is_empty() {
                return Ok(0);
            }
            kinds
        }
    };
    let plan = Operator::CountElements(CountedElements::Objects(kinds));
    sum(&reads.fan_outs, "the number of vertices", plan).await
}

/// The number of associations, each of which is counted where a scan of all edges returns it. The name of an inverse type is
/// the label of no edge.
pub(super) async fn edges(reads: &LiveReads<'_>, labels: &CountedLabels) -> Result<u64, GremlinError> {
    let named = labels.named().unwrap_or_default();
    let types = reads.types_with(named);
    let known = named.iter().filter(|label| labels::labelled(&types, label).is_ok());
    let known: Vec<Arc<str>> = known.cloned().collect();
    if labels.named().is_some() && known.is_empty() {
        return Ok(0);
    }
    let lists = labels::lists(&types, Direction::Out, &known);
    let lists = lists.map_err(|error| reads.fan_outs.error(error))?;
    if lists.is_empty() {
        return Ok(0);
    }
    let kinds = lists.iter().map(|list| list.kind.name.clone()).collect();
    let plan = Operator::CountElements(CountedElements::Associations(kinds));
    sum(&reads.fan_outs, "the number of edges", plan).await
}
