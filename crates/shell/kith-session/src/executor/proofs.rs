//! Checks the proofs of values, and reports values that do not match to their node.

use super::{
    Executor,
    round::{ReadPoints, RoundQuestion},
};
use kith_client::note_mismatches;
use kith_operators::Value;
use kith_query::{Proofs, Scope};
use kith_types::{KeyRef, NodeId, Timestamp};
use kith_wire::v1;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The most keys of one report. One record that a node finds damaged makes it check the whole store.
const REPORT_KEYS_MAX: usize = 16;
/// The shortest time between two reports to one node.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// The time that the node may take to answer a report. No query waits for it.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time of the last report to each node.
#[derive(Debug, Default)]
pub(super) struct LastReports(BTreeMap<NodeId, Timestamp>);

impl LastReports {
    /// Whether a node may get a report now. If so, the report is noted.
    fn may_report(&mut self, node: NodeId, now: Timestamp) -> bool {
        match self.0.get(&node) {
            Some(last) if now.since(*last) < REPORT_INTERVAL => false,
            _ => {
                self.0.insert(node, now);
                true
            }
        }
    }
}

impl RoundQuestion<'_> {
    /// Checks the values that a node sent for the keys at `positions`, unless the caller checks them. A value that does not
    /// match is treated as damaged, so that another replica is asked for its key.
    pub(super) fn prove(&self, node: NodeId, value: &mut Value, positions: &[u32], points: &ReadPoints) {
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
        keys.truncate(REPORT_KEYS_MAX);
        self.report(node, &keys, points);
    }

    /// Asks the node to read the values again and check their proofs. If they are damaged on its disk, the node finds that
    /// itself and repairs them. Its answer is ignored: another replica is asked for the keys meanwhile.
    fn report(&self, node: NodeId, keys: &[u32], points: &ReadPoints) {
        let Executor { fleet, .. } = self.executor;
        let now = fleet.now();
        let Some(index) = self.topology.table.node_index(node) else { return };
        if !self.executor.with_routing(|state| state.reports.may_report(node, now)) {
            return;
        }
        let mut request =
            v1::EvaluateRequest { proofs: false, in_slices: false, ..self.message(keys, points) };
        if let Some(header) = &mut request.header {
            header.deadline_us = REPORT_TIMEOUT.as_micros() as u64;
        }
        let (transport, addr) =
            (Arc::clone(fleet.transport()), self.topology.table.node_at(index).address.clone());
        tokio::spawn(async move {
            let reported = tokio::time::timeout(REPORT_TIMEOUT, transport.evaluate(&addr, request)).await;
            if !matches!(reported, Ok(Ok(_))) {
                tracing::debug!(%node, "values that do not match could not be reported to their node");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_gets_one_report_a_second_and_others_get_theirs_at_once() {
        let mut reports = LastReports::default();
        let at = |millis| Timestamp(Duration::from_millis(millis));
        let asked = [(1, 0), (1, 1), (2, 1), (1, 999), (1, 1_000), (2, 1_000)]
            .map(|(n, ms)| reports.may_report(NodeId(n), at(ms)));
        assert_eq!(asked, [true, false, true, false, true, false]);
    }
}
