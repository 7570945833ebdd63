//! The one conditional write that changes who leads a live graph's partitions. Routers and nodes make it.

use kith_api::topology::{leaders_document, leaders_of};
use kith_metadata::{Committed, Condition, MetadataError, MetadataStore, Write, keys};
use kith_routing::Leaders;
use kith_wire::documents::{Document, LeadersDocument};
use std::time::Duration;

/// A change that others make in between is taken into account so many times. All nodes and routers of a cluster change the leaders of
/// a graph when they start, each more than once.
const ATTEMPTS_MAX: u32 = 50;
/// The longest pause after a change that came too late. Pauses are random, so that those who compete do not meet again.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Changes the leaders of a graph to what `decide` makes of the current ones; `None` leaves them. Returns whether they changed.
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
        let (current, revision) = match entry {
            Some(entry) => {
                let document = LeadersDocument::decode(&entry.value).map_err(|error| {
                    MetadataError::Refused { reason: format!("the leaders of graph {graph:?}: {error}") }
                })?;
                (leaders_of(&document), entry.revision)
            }
            None => (Leaders::default(), 0),
        };
        let Some(next) = decide(&current) else { return Ok(false) };
        let condition = Condition { key: key.clone(), revision };
        let write = Write::put(key.clone(), leaders_document(graph, &next).encode());
        if let Committed::At(_) = metadata.commit(vec![condition], vec![write]).await? {
            return Ok(true);
        }
        tokio::time::sleep(PAUSE_MAX.mul_f64(rand::random())).await;
    }
    Err(MetadataError::Unavailable {
        reason: format!(
            "the leaders of graph {graph:?} changed {ATTEMPTS_MAX} times in a row before a change of them was written"
        ),
    })
}
