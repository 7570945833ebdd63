//! Loads whole neighbour lists into caches before anybody asks for them.

use crate::{Session, session::Run};
use kith_operators::{Operator, Value};
use kith_query::{ConnectionsQuery, FanOut, QueryError, Scope};
use kith_schema::EdgeSelector;
use kith_topology::PinnedState;
use kith_types::FanOutKind;

/// The number of lists that one request fetches ahead. The number is small so that other requests are not delayed.
const LISTS_AT_A_TIME: usize = 512;

/// Fetches every list of `edge` at one version of the graph through the session's caches, in small batches in the
/// background. Returns `false` if another version is served meanwhile. `O(members + edges)`.
///
/// # Errors
/// [`QueryError`] if a fetch fails; the caches keep the lists that were fetched before it.
pub async fn fetch_lists_ahead(
    session: &Session,
    graph: &PinnedState,
    edge: &EdgeSelector,
) -> Result<bool, QueryError> {
    let ask = |purpose, kind, scope, plan| FanOut { purpose, kind, scope, plan };
    let everyone = ask("members", FanOutKind::Broadcast, Scope::Partitions, Operator::ALL_MEMBERS);
    let Some(Value::Set(members)) = ask_at(session, graph, &everyone).await? else { return Ok(false) };
    let lists = Operator::Expand { input: Box::new(Operator::Keys), edge: edge.clone(), longest: u64::MAX };
    for keys in members.chunks(LISTS_AT_A_TIME) {
        let lists = ask("lists", FanOutKind::NonUnion, Scope::Keys(keys.to_vec()), lists.clone());
        if ask_at(session, graph, &lists).await?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs one fan-out in the background; `None` if the graph is at another version.
async fn ask_at(
    session: &Session,
    graph: &PinnedState,
    fan_out: &FanOut,
) -> Result<Option<Value>, QueryError> {
    let work = async |run: &mut Run<'_>| match run.pinned().pin == graph.pin {
        true => run.round(fan_out).await.map(Some),
        false => Ok(None),
    };
    session.in_background(&graph.name, ConnectionsQuery::NAME, work).await
}
