//! The conditional write that changes the leaders of a live graph's partitions. Routers and nodes use it.

use crate::metadata::{CommitOutcome, Condition, MetadataError, MetadataStore, Write, keys};
use kith_routing::Leaders;
use kith_topology::{leaders_document, leaders_of};
use kith_types::Term;
use kith_wire::documents::{Document, LeadersDocument, LiveGraphDocument};
use std::time::Duration;

/// The maximum number of attempts to make a change if other processes change the leaders at the same time. All nodes
/// and routers of a cluster change the leaders of a graph when they start, each more than once.
const ATTEMPTS_MAX: u32 = 50;
/// The longest pause after a conflict. Pauses are random, so that competing processes do not meet again.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Changes the leaders of a graph to what `decide` returns for the current ones; `None` leaves them unchanged. Returns
/// whether they changed.
///
/// # Errors
/// If the metadata store cannot be read or written, or if others kept changing the leaders in between.
pub async fn change_leaders(
    metadata: &dyn MetadataStore,
    graph: &str,
    decide: impl Fn(&Leaders) -> Option<Leaders>,
) -> Result<bool, MetadataError> {
    let key = keys::leaders(graph);
    for _ in 0..ATTEMPTS_MAX {
        let snapshot = metadata.read(&key).await?;
        let entry = snapshot.get(&key);
        let (mut current, revision) = match entry {
            Some(entry) => {
                let document = LeadersDocument::decode(&entry.value).map_err(|error| {
                    MetadataError::Refused { reason: format!("the leaders of graph {graph:?}: {error}") }
                })?;
                (leaders_of(&document), entry.revision)
            }
            None => (Leaders::default(), 0),
        };
        let mut conditions = vec![Condition { key: key.clone(), revision }];
        if entry.is_none() {
            let Some((graph, term_last)) = new_graph(metadata, graph).await? else { return Ok(false) };
            conditions.push(graph);
            current.term_last = term_last;
        }
        let Some(next) = decide(&current) else { return Ok(false) };
        let write = Write::put(key.clone(), leaders_document(graph, &next).encode());
        if let CommitOutcome::At(_) = metadata.commit(conditions, vec![write]).await? {
            return Ok(true);
        }
        tokio::time::sleep(PAUSE_MAX.mul_f64(rand::random())).await;
    }
    Err(MetadataError::Unavailable {
        reason: format!(
            "other processes changed the leaders of graph {graph:?} {ATTEMPTS_MAX} times in a row before this one could"
        ),
    })
}

/// Prepares the first leaders of a graph: returns the condition that the graph exists, and a term that is above all terms
/// of earlier graphs with the same name, which may not be used again. That term is the revision of the graph: each change
/// of leaders raises both the terms, by one, and the revision of the metadata. `None` if there is no such graph, or if it
/// is being dropped.
async fn new_graph(
    metadata: &dyn MetadataStore,
    graph: &str,
) -> Result<Option<(Condition, Term)>, MetadataError> {
    let key = keys::live_graph(graph);
    let snapshot = metadata.read(&key).await?;
    let Some(entry) = snapshot.get(&key) else { return Ok(None) };
    let document = LiveGraphDocument::decode(&entry.value)
        .map_err(|error| MetadataError::Refused { reason: format!("the live graph {graph:?}: {error}") })?;
    let revision = entry.revision;
    Ok((!document.dropping).then_some((Condition { key, revision }, Term(revision))))
}
