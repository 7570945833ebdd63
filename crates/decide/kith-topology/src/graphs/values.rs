//! Stores of values in a topology.

use super::{
    error::BadTopology,
    pinned::{PinnedState, pinned},
};
use kith_routing::{QuotaRates, RoutingTable};
use kith_schema::{KeyType, SchemaId, ValueType};
use kith_wire::documents::{HoldsDocument, ServedDocument};
use std::sync::Arc;

/// One store of values at the version that reads pin.
#[derive(Debug)]
pub struct ValueStore {
    /// Its name and version.
    pub pinned: Arc<PinnedState>,
    /// The type of its keys.
    pub key: KeyType,
    /// The type of its values.
    pub value: ValueType,
    /// For records: the schema of this version.
    pub schema: Option<SchemaId>,
    /// The number of answers to a key that must agree; at least 1.
    pub required_reads: u32,
    /// The amounts of it that may be read per second, through all routers together.
    pub read_quota: QuotaRates,
}

/// Decodes a store of values; `None` for a graph.
pub(super) fn value_store(
    store: &ServedDocument,
    table: &RoutingTable,
) -> Result<Option<ValueStore>, BadTopology> {
    let HoldsDocument::Values { key, value, .. } = &store.definition.holds else { return Ok(None) };
    let kind = |source| BadTopology::Kind { store: store.name.clone(), source };
    let schema = store.components.iter().find_map(|component| component.schema.as_deref());
    let schema = schema.map(str::parse).transpose();
    Ok(Some(ValueStore {
        schema: schema.map_err(|source| BadTopology::Schema { store: store.name.clone(), source })?,
        pinned: pinned(store, "store", table),
        key: key.parse().map_err(kind)?,
        value: value.parse().map_err(kind)?,
        required_reads: store.definition.required_reads.max(1),
        read_quota: QuotaRates {
            keys: store.definition.read_quota_keys,
            bytes: store.definition.read_quota_bytes,
        },
    }))
}
