//! Sends the writes that a traversal has put off: when a read has to show them, and at its end.

use super::{
    LiveGraph,
    ids::VertexName,
    queue::{QueuedChange, QueuedWrite},
    send::edge_exists,
};
use futures::future::join_all;
use kith_gremlin::{GremlinError, value::ElementId};
use kith_live::ObjectAnswer;
use kith_types::ErrorCode;
use std::collections::HashMap;

/// The number of writes that are sent at the same time.
const SENT_AT_ONCE: usize = 64;

/// Puts a write off.
pub(super) async fn put_off(graph: &LiveGraph<'_>, queued: QueuedWrite) -> Result<(), GremlinError> {
    if graph.queue.lock().is_full() {
        settled(graph).await?;
    }
    graph.queue.lock().push(queued);
    Ok(())
}

/// The new objects among those that are named and have not been sent, without their fields.
pub(super) fn queued_objects(
    graph: &LiveGraph<'_>,
    named: &[Option<VertexName>],
) -> HashMap<u64, ObjectAnswer> {
    let added = graph.added.lock();
    let numbers = named.iter().flatten().flat_map(|named| named.numbers(graph.reads.count));
    numbers.filter_map(|number| Some((number, added.get(&number)?.clone()))).collect()
}

/// Sends what was put off, if an answer about these vertices has to show it; `with_edges` if it is about their edges too.
pub(super) async fn showing(
    graph: &LiveGraph<'_>,
    ids: &[ElementId],
    with_edges: bool,
) -> Result<(), GremlinError> {
    if graph.queue.lock().is_empty() {
        return Ok(());
    }
    let is_concerned = {
        let queue = graph.queue.lock();
        let concerns = |number| queue.changes_vertex(number) || (with_edges && queue.adds_edge_at(number));
        let named = graph.reads.named(ids);
        named.iter().flatten().flat_map(|named| named.numbers(graph.reads.count)).any(concerns)
    };
    if is_concerned { settled(graph).await } else { Ok(()) }
}

/// Sends all writes that were put off, wave by wave.
///
/// # Errors
/// A write failed. All writes of its wave that were sent have an outcome; those of later waves are not sent.
pub(super) async fn settled(graph: &LiveGraph<'_>) -> Result<(), GremlinError> {
    let waves = graph.queue.lock().take();
    if waves.is_empty() {
        return Ok(());
    }
    let mut sent = Ok(());
    for writes in waves.iter().flat_map(|wave| wave.chunks(SENT_AT_ONCE)) {
        sent = first_error(join_all(writes.iter().map(|queued| send_queued(graph, queued))).await);
        if sent.is_err() {
            break;
        }
    }
    graph.added.lock().clear();
    graph.scan.forget().await;
    sent
}

async fn send_queued(graph: &LiveGraph<'_>, queued: &QueuedWrite) -> Result<(), GremlinError> {
    let sent = graph.writes.send(&graph.reads, &queued.write, &queued.what).await;
    match (&queued.change, sent) {
        (QueuedChange::Edge { name, .. }, Err(error)) if error.code == ErrorCode::ConditionFailed => {
            Err(graph.reads.fan_outs.error(edge_exists(format!("edge {name} exists already"))))
        }
        (QueuedChange::Property { .. }, Ok(done)) if !done.existed => {
            Err(GremlinError::bad("the element does not exist, so it cannot be changed"))
        }
        (QueuedChange::Vertex { number }, Ok(done)) if done.id != *number => {
            // Two ids with one hash were added at the same time. Kith chooses the number of the second one only when it
            // writes, so what depends on it cannot be written.
            let message = format!("another caller added a vertex while this traversal {}", queued.what);
            Err(GremlinError::new(ErrorCode::ConditionFailed, message))
        }
        (_, sent) => sent.map(drop),
    }
}

/// The error of writes that were sent at the same time: that of a write whose outcome is unknown, otherwise the first one.
pub(super) fn first_error<T>(sent: Vec<Result<T, GremlinError>>) -> Result<(), GremlinError> {
    let mut errors: Vec<GremlinError> = sent.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(|error| error.code != ErrorCode::OutcomeUnknown);
    errors.into_iter().next().map_or(Ok(()), Err)
}
