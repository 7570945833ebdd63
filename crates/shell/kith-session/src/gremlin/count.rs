//! Numbers of all vertices and edges of a loaded graph, which nodes know without reading them.

use super::{
    fan_outs::FanOuts,
    ids::MEMBER,
    rows::{selector, unexpected},
};
use kith_gremlin::GremlinError;
use kith_operators::{Operator, Value as Evaluated};
use kith_schema::{GraphSchema, KindRole, KindSchema};
use kith_traversal::graph::CountedLabels;
use kith_types::Direction as Side;

/// Asks all partitions for a number, and adds the answers.
pub(super) async fn sum(
    fan_outs: &FanOuts<'_>,
    purpose: &'static str,
    plan: Operator,
) -> Result<u64, GremlinError> {
    match fan_outs.ask_everyone(purpose, plan).await? {
        Evaluated::Count(count) => Ok(count),
        other => Err(unexpected(&other)),
    }
}

/// The number of members, which alone `V()` returns.
pub(super) async fn vertices(fan_outs: &FanOuts<'_>, labels: &CountedLabels) -> Result<u64, GremlinError> {
    if !labels.contain(MEMBER) {
        return Ok(0);
    }
    let plan = Operator::Count(Box::new(Operator::ALL_MEMBERS));
    sum(fan_outs, "the number of vertices", plan).await
}

/// The number of edges that begin at members. The files of a partition have the lengths of its lists; an edge without a
/// direction is in the lists of both ends.
pub(super) async fn edges(
    fan_outs: &FanOuts<'_>,
    schema: &GraphSchema,
    labels: &CountedLabels,
) -> Result<u64, GremlinError> {
    let is_counted = |kind: &&KindSchema| labels.contain(&kind.name);
    let (mut directed, mut undirected) = (Vec::new(), Vec::new());
    for kind in schema.kinds.iter().filter(is_counted) {
        match kind.role {
            KindRole::Directed | KindRole::Entity => directed.push(selector(&kind.name, Side::Out)),
            KindRole::Undirected => undirected.push(selector(&kind.name, Side::Both)),
            KindRole::MembersOnly => {}
        }
    }
    let mut count = 0_u64;
    for (lists, ends) in [(directed, 1), (undirected, 2)] {
        if !lists.is_empty() {
            let plan = Operator::Total(lists);
            count += sum(fan_outs, "the number of edges", plan).await? / ends;
        }
    }
    Ok(count)
}
