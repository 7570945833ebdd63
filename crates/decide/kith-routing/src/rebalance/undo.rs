//! Aborts a rebalance: returns to the last consistent epoch.

use crate::rebalance::commit::settled;
use crate::rebalance::{RebalanceParts, Reclaim, TransferState};
use crate::{GroupRole, TableParts};
use kith_types::{Epoch, NodeId, PartitionId, Timestamp};
use std::collections::BTreeMap;

impl RebalanceParts {
    /// Marks for freeing what was copied since the last change of the table, because no table names it.
    pub(crate) fn discard_copies(&mut self, now: Timestamp) {
        let finished = &self.plan.batches[self.first_uncommitted..self.batches_done()];
        let current = std::mem::take(&mut self.transfers);
        let begun = current.into_iter().filter(|transfer| transfer.state != TransferState::Replaced);
        let moves =
            finished.iter().flat_map(|batch| batch.moves.clone()).chain(begun.map(|transfer| transfer.copy));
        let mut discards: BTreeMap<(NodeId, PartitionId), Vec<u32>> = BTreeMap::new();
        for copy in moves {
            let stores = copy.stores.iter().map(|store| store.store);
            discards.entry((copy.stealer, copy.partition)).or_default().extend(stores);
        }
        for ((node, partition), mut stores) in discards {
            // The data that the node had before has its own grace period.
            let of_old = self.reclaims.iter().filter(|old| (old.node, old.partition) == (node, partition));
            let old: Vec<u32> = of_old.flat_map(|old| old.stores.iter().copied()).collect();
            stores.retain(|store| !old.contains(store));
            stores.sort_unstable();
            stores.dedup();
            if !stores.is_empty() {
                let (gone_since, ready_at) = (Epoch(0), now);
                self.reclaims.push(Reclaim {
                    node,
                    partition,
                    stores,
                    gone_since,
                    ready_at,
                    is_requested: false,
                });
            }
        }
    }

    /// Returns the table that ends an abort, if it differs from the table in force. Owners stay as they are; new nodes that
    /// own nothing and a group that was joining are removed; drained flags are as before.
    pub(crate) fn undone_table(&self) -> Option<TableParts> {
        let (before, mut table) = (&self.plan.before, self.table.clone());
        let joining = table.groups.iter().position(|group| group.role == GroupRole::Joining);
        if let Some(index) = joining {
            table.groups.remove(index);
            table.owners.remove(index);
        }
        let owns = |node: NodeId| table.owners.iter().any(|owners| owners.contains(&node));
        table.nodes.retain(|node| before.nodes.iter().any(|old| old.id == node.id) || owns(node.id));
        for node in &mut table.nodes {
            if let Some(old) = before.nodes.iter().find(|old| old.id == node.id) {
                node.drained = old.drained;
            }
        }
        if table == self.table {
            return None;
        }
        table.epoch = Epoch(table.epoch.0 + 1);
        Some(settled(table))
    }
}
