//! The content of a version: a graph component, or values by key.

use kith_schema::{Column, KeyType, KindRole, ValueType};
use serde::{Deserialize, Serialize};

/// The kind of content, with its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The lists, postings and members of an edge type or entity kind.
    Graph(GraphContent),
    /// Values by key.
    Values(ValuesContent),
}

impl Content {
    /// The name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Content::Graph(_) => "a graph component",
            Content::Values(_) => "values",
        }
    }
}

/// A graph component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphContent {
    /// The graph that it belongs to, as the load named it.
    pub graph: String,
    /// The vertices that it joins, and how it joins them.
    pub role: KindRole,
    /// The columns that are kept beside the ids of each list, in their order.
    pub columns: Vec<Column>,
    /// Totals over all partitions.
    pub counts: Counts,
}

/// Totals over all partitions of a graph component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// The number of members, with or without edges.
    pub members: u64,
    /// The number of edges. An undirected edge counts once, and so does a directed one.
    pub edges: u64,
    /// The number of distinct entities; 0 unless the component is an entity kind.
    pub entities: u64,
}

/// A store of values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValuesContent {
    /// The type of keys, which determines their partition.
    pub key: KeyType,
    /// The type of values. The engine does not interpret their bytes.
    pub value: ValueType,
    /// The schema of records as canonical JSON text. The engine does not interpret it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The compression of values; `None` for no compression. The dictionary is a logical file of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// Totals over all partitions.
    pub counts: ValueCounts,
}

/// The compression of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Compression {
    /// Each value is a zstd frame at this level, compressed with the version's dictionary.
    Zstd(i32),
}

/// Totals over all partitions of a store of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueCounts {
    /// The number of keys.
    pub records: u64,
    /// The total size of all keys in bytes.
    pub key_bytes: u64,
    /// The total size of all values in bytes, before compression.
    pub value_bytes: u64,
}

impl ValueCounts {
    /// Adds another's counts. They saturate, because a summary may state any numbers.
    pub fn add(&mut self, other: &ValueCounts) {
        self.records = self.records.saturating_add(other.records);
        self.key_bytes = self.key_bytes.saturating_add(other.key_bytes);
        self.value_bytes = self.value_bytes.saturating_add(other.value_bytes);
    }
}
