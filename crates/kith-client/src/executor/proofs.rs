//! Values that nodes send with what proves them, and what a node is told whose value does not hold.

use super::{Executor, round::Round};
use crate::service::note_mismatches;
use kith_api::Proofs;
use kith_ops::{Scope, Value};
use kith_types::{KeyRef, NodeId, Timestamp};
use kith_wire::v1;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// Keys that a node is told of at once: one record that it finds damaged has it look at the whole store.
const TOLD_KEYS_MAX: usize = 16;
/// A node is told no more often than that, however many values of its do not hold.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// How long the node may take for it; nobody waits.
const TOLD_PATIENCE: Duration = Duration::from_secs(5);

/// When each node was told last.
#[derive(Debug, Default)]
pub(super) struct LastReports(BTreeMap<NodeId, Timestamp>);

impl LastReports {
    /// Whether a node may be told now; it counts as told then.
    fn may_tell(&mut self, node: NodeId, now: Timestamp) -> bool {
        match self.0.get(&node) {
            Some(last) if now.since(*last) < TOLD_EVERY => false,
            _ => {
                self.0.insert(node, now);
                true
            }
        }
    }
}

impl Round<'_> {
    /// Checks the values that a node sent for the keys at `positions`, unless the caller does. One that does not hold is damaged from here
    /// on, so that another replica is asked for its key.
    pub(super) fn prove(&mut self, node: NodeId, value: &mut Value, positions: &[u32]) {
        let Value::Records(records) = value else { return };
        if !self.proofs || self.options.proofs == Proofs::There {
            return;
        }
        let mismatched = match &self.fan_out.scope {
            Scope::Keys(ids) => records.prove(|index| KeyRef::Id(ids[positions[index] as usize])),
            Scope::ByteKeys(keys) => {
                records.prove(|index| KeyRef::Bytes(keys.get(positions[index] as usize)))
            }
            Scope::Partitions => return,
        };
        if mismatched.is_empty() {
            return;
        }
        note_mismatches(mismatched.len() as u64);
        let mut keys: Vec<u32> = mismatched.iter().map(|&index| positions[index as usize]).collect();
        tracing::warn!(%node, values = keys.len(), "values from a node do not match their checksums");
        keys.truncate(TOLD_KEYS_MAX);
        self.tell(node, &keys);
    }

    /// Asks the node for the values again, to be proven there: if they are damaged on its disk, it finds that itself and repairs them.
    /// What it answers does not matter: another replica is asked for the keys meanwhile.
    fn tell(&self, node: NodeId, keys: &[u32]) {
        let Executor { fleet, .. } = self.executor;
        let now = fleet.now();
        let Some(index) = self.topology.table.node_index(node) else { return };
        if !self.executor.with_routing(|state| state.told.may_tell(node, now)) {
            return;
        }
        let mut request = v1::EvaluateRequest { proofs: false, in_slices: false, ..self.message(keys) };
        if let Some(header) = &mut request.header {
            header.deadline_us = TOLD_PATIENCE.as_micros() as u64;
        }
        let (transport, addr) =
            (Arc::clone(fleet.transport()), self.topology.table.node_at(index).address.clone());
        tokio::spawn(async move {
            let told = tokio::time::timeout(TOLD_PATIENCE, transport.evaluate(&addr, request)).await;
            if !matches!(told, Ok(Ok(_))) {
                tracing::debug!(%node, "a node could not be told of values that do not match");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_told_once_a_second_and_others_at_once() {
        let mut told = LastReports::default();
        let at = |millis| Timestamp(Duration::from_millis(millis));
        let asked = [(1, 0), (1, 1), (2, 1), (1, 999), (1, 1_000), (2, 1_000)]
            .map(|(n, ms)| told.may_tell(NodeId(n), at(ms)));
        assert_eq!(asked, [true, false, true, false, true, false]);
    }
}
