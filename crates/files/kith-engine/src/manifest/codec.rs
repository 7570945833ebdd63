//! The manifest as JSON. Each content has exactly one spelling. A file is accepted only if encoding its content again gives
//! the same bytes, so that a changed, missing or extra byte cannot hide in whitespace or a repeated field.

use super::content::{Content, Counts, GraphContent, ValuesContent};
use super::{FileEntry, MANIFEST_FORMAT, Manifest, PackEntry};
use crate::document::{json_text, seal_of};
use crate::errors::{Damage, Fault, OpenError};
use crate::files::{FileKind, MANIFEST_NAME};
use kith_schema::{Column, KindRole};
use kith_types::{PartitionCount, StoreVersion};
use serde::{Deserialize, Serialize};

/// The beginning of a manifest of any format version.
#[derive(Deserialize)]
struct Preamble {
    kith_manifest: u32,
}

/// The document. The order of the fields is part of the format.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// The format version.
    kith_manifest: u32,
    component: String,
    version: u64,
    partition_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    graph: Option<GraphDocument>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<ValuesContent>,
    packs: Vec<PackEntry>,
    files: Vec<FileEntry>,
    /// BLAKE3 of the document with this field empty.
    seal: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphDocument {
    name: String,
    role: String,
    columns: Vec<Column>,
    counts: Counts,
}

const ROLES: [(KindRole, &str); 4] = [
    (KindRole::Undirected, "undirected"),
    (KindRole::Directed, "directed"),
    (KindRole::Entity, "entity"),
    (KindRole::MembersOnly, "members-only"),
];

pub(super) fn encode(manifest: &Manifest) -> Vec<u8> {
    let graph = manifest.graph().map(|graph| GraphDocument {
        name: graph.graph.clone(),
        role: ROLES.iter().find(|(role, _)| *role == graph.role).expect("every role has a name").1.to_owned(),
        columns: graph.columns.clone(),
        counts: graph.counts,
    });
    let mut document = Document {
        kith_manifest: MANIFEST_FORMAT,
        component: manifest.component.clone(),
        version: manifest.version.0,
        partition_count: manifest.partition_count.get(),
        graph,
        values: manifest.values().cloned(),
        packs: manifest.packs(),
        files: manifest.files.clone(),
        seal: String::new(),
    };
    document.seal = seal_of(&document);
    json_text(&document)
}

pub(super) fn decode(bytes: &[u8]) -> Result<Manifest, OpenError> {
    let damaged = |fault| OpenError::from(Damage { file: MANIFEST_NAME.to_owned(), fault });
    if let Ok(Preamble { kith_manifest: got }) = serde_json::from_slice(bytes)
        && got != MANIFEST_FORMAT
    {
        let file = MANIFEST_NAME.to_owned();
        return Err(OpenError::OtherFormat { file, got, supported: MANIFEST_FORMAT });
    }
    let document: Document = serde_json::from_slice(bytes)
        .map_err(|error| damaged(Fault::Content { what: "JSON line", offset: error.line() as u64 }))?;
    let manifest = content(document).map_err(|what| damaged(Fault::Content { what, offset: 0 }))?;
    if encode(&manifest) != bytes {
        return Err(damaged(Fault::Checksum { what: "manifest", offset: 0 }));
    }
    Ok(manifest)
}

/// Validates the document, or names the invalid field.
fn content(document: Document) -> Result<Manifest, &'static str> {
    let content = match (document.graph, document.values) {
        (Some(graph), None) => {
            let role = ROLES.iter().find(|(_, name)| *name == graph.role).ok_or("role")?.0;
            let GraphDocument { name, columns, counts, .. } = graph;
            Content::Graph(GraphContent { graph: name, role, columns, counts })
        }
        (None, Some(values)) => Content::Values(values),
        _ => return Err("content"),
    };
    let partition_count = PartitionCount::new(document.partition_count).ok_or("partition_count")?;
    if !document.files.is_sorted_by(|a, b| a.name < b.name) {
        return Err("order of files");
    }
    let compressed = matches!(&content, Content::Values(values) if values.compression.is_some());
    let mut dictionaries = 0;
    for entry in &document.files {
        let id = entry.check()?;
        dictionaries += usize::from(id.kind == FileKind::Dictionary);
        if id.kind != FileKind::Dictionary && id.partition.0 >= partition_count.get() {
            return Err("partition of a file");
        }
    }
    if dictionaries != usize::from(compressed) {
        return Err("dictionary");
    }
    let version = StoreVersion(document.version);
    let stated: Vec<(u32, u64)> = document.files.iter().map(|entry| (entry.pack, entry.offset)).collect();
    let manifest = Manifest::new(document.component, version, partition_count, content, document.files);
    // Places follow from sizes, so a manifest cannot state files that overlap or lie outside of their pack.
    if !manifest.files.iter().map(|entry| (entry.pack, entry.offset)).eq(stated) {
        return Err("place of a file");
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests;
