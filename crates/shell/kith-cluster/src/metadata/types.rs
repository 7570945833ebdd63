//! The types of live graphs, each under a key of its own, which all those skip who read or watch everything.
//!
//! The types and the graph's document, which names them, are written by one commit, so no failed attempt leaves anything
//! behind. The types before the present ones stay, because a process may still have the document that names them.

use super::{MetadataError, MetadataStore, Write, keys};
use kith_wire::documents::TypesReference;
use std::sync::Arc;
use thiserror::Error;

/// The reason why the types of a graph cannot be read.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum TypesError {
    /// The metadata store cannot be read now.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The types are missing or damaged.
    #[error("the types of graph {graph:?} cannot be read: {detail}")]
    Damaged { graph: String, detail: String },
}

/// Returns the writes that belong to the commit of the graph's document with this reference.
pub fn writes(graph: &str, reference: &TypesReference, text: String) -> Vec<Write> {
    let key = |revision| keys::types(graph, &reference.identity, revision);
    let put = Write::put(key(reference.revision), text.into_bytes());
    let old = reference.revision.checked_sub(2).filter(|revision| 0 < *revision);
    std::iter::once(put).chain(old.map(|revision| Write::delete(key(revision)))).collect()
}

/// Returns the writes that remove all types of a graph.
///
/// # Errors
/// If the metadata store cannot be read.
pub async fn removal(metadata: &dyn MetadataStore, graph: &str) -> Result<Vec<Write>, MetadataError> {
    let snapshot = metadata.read(&keys::types_of(graph)).await?;
    Ok(snapshot.entries.into_iter().map(|entry| Write::delete(entry.key)).collect())
}

/// Reads the text of the types that a graph's document names.
///
/// # Errors
/// [`TypesError`]. Types that are missing may have been replaced since the graph's document was read.
pub async fn read(
    metadata: &dyn MetadataStore,
    graph: &str,
    reference: &TypesReference,
) -> Result<Arc<str>, TypesError> {
    let damaged = |detail: String| TypesError::Damaged { graph: graph.to_owned(), detail };
    let key = keys::types(graph, &reference.identity, reference.revision);
    let mut snapshot = metadata.read(&key).await?;
    let entry = snapshot.entries.iter().position(|entry| entry.key == key);
    let Some(entry) = entry else {
        return Err(damaged(format!("the metadata store has no document {key:?}")));
    };
    let text = String::from_utf8(snapshot.entries.swap_remove(entry).value);
    let text = text.map_err(|error| damaged(error.to_string()))?;
    reference.check(&text).map_err(damaged)?;
    Ok(text.into())
}
