//! The partitions that owners gave up. They are kept for the grace period and until no process uses an old table, then freed.

use crate::rebalance::holdings::{Holdings, given_up};
use crate::rebalance::state::Nodes;
use crate::rebalance::{Phase, RebalanceAction, RebalanceParts, Reclaim};
use crate::{Strategy, TableParts};
use kith_types::{NodeId, PartitionId, Timestamp};

impl RebalanceParts {
    /// Adopts a table that is in force. What the owners of the previous table gave up waits for the end of its grace period.
    pub(crate) fn take_over(&mut self, table: TableParts, now: Timestamp) {
        let stores = &self.plan.stores;
        let (before, after) = (Holdings::of(&self.table, stores), Holdings::of(&table, stores));
        for reclaim in &mut self.reclaims {
            let (node, partition) = (reclaim.node, reclaim.partition);
            reclaim.stores.retain(|store| !after.has(*store as usize, partition, node));
        }
        for (node, partition, stores) in given_up(&before, &after, table.partition_count.iter()) {
            let (gone_since, ready_at) = (table.epoch, now + self.grace);
            self.reclaims.push(Reclaim {
                node,
                partition,
                stores,
                gone_since,
                ready_at,
                is_requested: false,
            });
        }
        // A node that leaves the table keeps its files until it is wiped, or frees them when it comes back.
        let is_listed = |node: NodeId| table.nodes.iter().any(|entry| entry.id == node);
        self.reclaims.retain(|reclaim| !reclaim.stores.is_empty() && is_listed(reclaim.node));
        self.table = table;
    }

    pub(crate) fn reclaim(&mut self, now: Timestamp, nodes: &Nodes, actions: &mut Vec<RebalanceAction>) {
        for index in 0..self.reclaims.len() {
            let reclaim = &self.reclaims[index];
            let due =
                reclaim.ready_at <= now && reclaim.gone_since <= nodes.oldest_in_use && !reclaim.is_requested;
            if due && !nodes.dead.contains(&reclaim.node) && !self.is_wanted(reclaim) {
                self.reclaims[index].is_requested = true;
                let Reclaim { node, partition, stores, .. } = self.reclaims[index].clone();
                actions.push(RebalanceAction::Reclaim(node, partition, stores));
            }
        }
    }

    /// Records that a node has freed a partition. It may have been asked several times to free one partition, for
    /// different stores.
    pub(crate) fn freed(&mut self, replica: (NodeId, PartitionId), stores: &[u32]) {
        let confirmed = |reclaim: &Reclaim| {
            reclaim.is_requested && (reclaim.node, reclaim.partition) == replica && reclaim.stores == stores
        };
        self.reclaims.retain(|reclaim| !confirmed(reclaim));
    }

    /// Whether a later batch copies the partition to the node again, which can happen on a ring.
    fn is_wanted(&self, reclaim: &Reclaim) -> bool {
        let over = matches!(self.phase, Phase::Ended(_) | Phase::Undoing);
        if over || self.table.strategy != Strategy::Ring {
            return false;
        }
        let (node, partition) = (reclaim.node, reclaim.partition);
        let to_come = self.plan.batches[self.batches_done()..].iter().flat_map(|batch| &batch.moves);
        to_come.into_iter().any(|step| step.stealer == node && step.partition == partition)
    }

    pub(crate) fn is_being_freed(&self, node: NodeId, partition: PartitionId) -> bool {
        if self.table.strategy != Strategy::Ring {
            return false;
        }
        let asked = self.reclaims.iter().filter(|reclaim| reclaim.is_requested);
        asked.into_iter().any(|reclaim| reclaim.node == node && reclaim.partition == partition)
    }
}
