//! The regular checks of a driver: whether it still drives, which nodes are down, which tables are in use, and which command
//! a user gave.

use super::{DriveError, Driver};
use crate::admin::rebalance::nodes::dead;
use futures::{StreamExt, stream::FuturesUnordered};
use kith_cluster::metadata::{Condition, Entry, Write, keys};
use kith_net::security::Dialer;
use kith_routing::rebalance::{CopyFault, Phase, RebalanceEvent, Reclaim};
use kith_types::{Epoch, NodeId};
use kith_wire::{
    documents::{Document, TopologyDocument},
    v1::{self, cluster_client::ClusterClient},
};
use std::{collections::BTreeSet, time::Duration};

/// A router that does not report its table within this time counts as having an old one.
const ROUTER_TIMEOUT: Duration = Duration::from_secs(1);

impl Driver {
    /// Checks whether this router still drives, which nodes are down, which tables are in use, and which command a user
    /// gave.
    pub(super) async fn look(&mut self) -> Result<(), DriveError> {
        let records = self.rebalancer.cluster.metadata.read(keys::REBALANCE).await;
        let Ok(records) = records
            .inspect_err(|error| tracing::debug!(%error, "cannot read the records of the rebalance now"))
        else {
            return Ok(());
        };
        if records.get(self.key).is_none_or(|entry| entry.revision != self.revision) {
            return Err(DriveError::Fenced);
        }
        while self.work.try_join_next().is_some() {}
        self.restart_lost_copies();
        let topology = self.rebalancer.cluster.topology.borrow().clone();
        let plan = &self.state.parts().plan;
        let nodes = plan.announced.nodes.iter().chain(&plan.before.nodes).map(|node| node.id).collect();
        if let Ok(dead) =
            dead(&*self.rebalancer.cluster.metadata, &self.rebalancer.cluster.dialer, &topology, &nodes).await
        {
            let (came, went): (Vec<_>, Vec<_>) = (
                self.down.difference(&dead).copied().collect(),
                dead.difference(&self.down).copied().collect(),
            );
            came.into_iter().for_each(|node| self.on(RebalanceEvent::NodeUp(node)));
            went.into_iter().for_each(|node| self.on(RebalanceEvent::NodeDown(node)));
            self.down = dead;
            self.give_up_on_the_dead();
        }
        let awaited = |reclaim: &Reclaim| self.in_use < reclaim.gone_since;
        if self.state.parts().reclaims.iter().any(awaited)
            && let Some(epoch) = self.oldest_in_use(&topology).await
        {
            self.in_use = epoch;
            self.on(RebalanceEvent::InUse(epoch));
        }
        match records.get(keys::REBALANCE_ASKED) {
            Some(asked) => self.hear(asked).await,
            None => Ok(()),
        }
    }

    /// Once only the freeing of files is left, stops waiting for nodes that are down. Such a node frees what no table
    /// assigns to it once it is back. Otherwise a dead node could not be replaced before it came back.
    fn give_up_on_the_dead(&mut self) {
        if !matches!(self.state.phase(), Phase::Ended(_)) {
            return;
        }
        let now = self.now();
        let due = |reclaim: &&Reclaim| reclaim.ready_at <= now && self.down.contains(&reclaim.node);
        let gone: BTreeSet<NodeId> =
            self.state.parts().reclaims.iter().filter(due).map(|reclaim| reclaim.node).collect();
        for node in gone {
            tracing::warn!(rebalance = self.id(), %node, "the node is down: it frees what it gave up when it is back");
            self.on(RebalanceEvent::Emptied(node));
        }
    }

    /// Reports copies whose task ended without a result as failed. A task ends that way if another copy in the same request
    /// was cancelled.
    fn restart_lost_copies(&mut self) {
        let lost: Vec<usize> =
            self.copies.iter().filter(|(_, task)| task.is_finished()).map(|(index, _)| *index).collect();
        if self.happened.is_empty() {
            for index in lost {
                self.copies.remove(&index);
                self.on(RebalanceEvent::CopyFailed(index, CopyFault::Transient));
            }
        }
    }

    /// Applies the command that a user gave to any router. It is stored in the record before it is removed from its own key,
    /// so that no crash loses it.
    async fn hear(&mut self, asked: &Entry) -> Result<(), DriveError> {
        let text = String::from_utf8_lossy(&asked.value).into_owned();
        match text.split_once(' ') {
            Some(("abort", id)) if id == self.id() => self.on(RebalanceEvent::Abort),
            Some(("resume", id)) if id == self.id() => self.on(RebalanceEvent::Continue),
            _ => {}
        }
        self.save().await?;
        let condition = Condition { key: asked.key.clone(), revision: asked.revision };
        let write = Write::delete(asked.key.clone());
        if let Err(error) = self.rebalancer.cluster.metadata.commit(vec![condition], vec![write]).await {
            tracing::debug!(%error, "the command could not be removed: it is applied again");
        }
        Ok(())
    }

    /// Returns the oldest epoch among the tables of the live routers, or `None` if one of them does not answer.
    async fn oldest_in_use(&self, topology: &TopologyDocument) -> Option<Epoch> {
        let live = self.rebalancer.cluster.metadata.read(keys::LIVE).await.ok()?;
        let routers =
            topology.routers.iter().filter(|router| live.get(&keys::live_router(router.router)).is_some());
        let mut asked: FuturesUnordered<_> =
            routers.map(|router| epoch_at(&self.rebalancer.cluster.dialer, &router.addr)).collect();
        let mut oldest = Epoch(topology.cluster.epoch);
        while let Some(epoch) = asked.next().await {
            oldest = oldest.min(epoch?);
        }
        Some(oldest)
    }
}

async fn epoch_at(dialer: &Dialer, addr: &str) -> Option<Epoch> {
    let asked = async {
        let channel = dialer.connect(addr).await.ok()?;
        let reply = ClusterClient::new(channel)
            .max_decoding_message_size(kith_wire::MESSAGE_BYTES_MAX)
            .get_topology(v1::TopologyRequest {})
            .await
            .ok()?;
        let document = TopologyDocument::decode(&reply.get_ref().document).ok()?;
        Some(Epoch(document.cluster.epoch))
    };
    tokio::time::timeout(ROUTER_TIMEOUT, asked).await.ok().flatten()
}
