//! What a version holds: a graph component, or values by key.

use kith_ops::KindRole;
use kith_schema::{Column, KeyType, ValueType};
use serde::{Deserialize, Serialize};

/// The kind of content, with what is particular to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Lists, postings and members of an edge type or entity kind.
    Graph(GraphContent),
    /// Values by key.
    Values(ValuesContent),
}

impl Content {
    /// What it is called in messages.
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
    /// The graph that it is a part of, as the load named it.
    pub graph: String,
    /// What it joins.
    pub role: KindRole,
    /// The columns kept beside the ids of each list, in their order.
    pub columns: Vec<Column>,
    /// Totals over all partitions.
    pub counts: Counts,
}

/// Totals over all partitions of a graph component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Members, with or without edges.
    pub members: u64,
    /// Edges: an undirected one counts once, an arc once.
    pub edges: u64,
    /// Distinct entities; 0 unless the component is an entity kind.
    pub entities: u64,
}

/// A store of values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValuesContent {
    /// What keys are: it decides their partition.
    pub key: KeyType,
    /// What values are; their bytes mean nothing to the engine.
    pub value: ValueType,
    /// The schema of records as canonical JSON text; means nothing to the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// How values are compressed, if they are; the dictionary is a logical file of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// Totals over all partitions.
    pub counts: ValueCounts,
}

/// How values are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Compression {
    /// Each value is a zstd frame made with the version's dictionary, at this level.
    Zstd(i32),
}

/// Totals over all partitions of a store of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueCounts {
    /// Keys.
    pub records: u64,
    /// Bytes of all keys.
    pub key_bytes: u64,
    /// Bytes of all values, before compression.
    pub value_bytes: u64,
}

impl ValueCounts {
    /// Adds another's, which may be anything that a summary states.
    pub fn add(&mut self, other: &ValueCounts) {
        self.records = self.records.saturating_add(other.records);
        self.key_bytes = self.key_bytes.saturating_add(other.key_bytes);
        self.value_bytes = self.value_bytes.saturating_add(other.value_bytes);
    }
}
