//! What a driver looks at now and then: whether it still drives, who is down, which tables are in use, and what a person asks.

use super::{DriveError, Driver};
use crate::rebalance::nodes::dead;
use futures::{StreamExt, stream::FuturesUnordered};
use kith_metadata::{Condition, Entry, Write, keys};
use kith_net::security::Dialer;
use kith_rebalance::{CopyFault, Phase, RebalanceEvent, Reclaim};
use kith_types::{Epoch, NodeId};
use kith_wire::{
    documents::{Document, TopologyDocument},
    v1::{self, cluster_client::ClusterClient},
};
use std::{collections::BTreeSet, time::Duration};

/// A router that does not say within this time which table it has may have an old one.
const ROUTER_PATIENCE: Duration = Duration::from_secs(1);

impl Driver {
    /// Looks whether this router still drives, who is down, which tables are in use, and what a person asks.
    pub(super) async fn look(&mut self) -> Result<(), DriveError> {
        let records = self.rebalancer.metadata.read(keys::REBALANCE).await;
        let Ok(records) = records.inspect_err(|error| tracing::debug!(%error, "nothing is seen now")) else {
            return Ok(());
        };
        if records.get(self.key).is_none_or(|entry| entry.revision != self.revision) {
            return Err(DriveError::Fenced);
        }
        while self.work.try_join_next().is_some() {}
        self.restart_lost_copies();
        let topology = self.rebalancer.topology.borrow().clone();
        let plan = &self.state.parts().plan;
        let nodes = plan.announced.nodes.iter().chain(&plan.before.nodes).map(|node| node.id).collect();
        if let Ok(dead) = dead(&*self.rebalancer.metadata, &self.rebalancer.dialer, &topology, &nodes).await {
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

    /// When all else is over, a node that is down is not waited for: it frees by itself what no table gives it, once it is
    /// back. Else the node that died could not be replaced before it lived again.
    fn give_up_on_the_dead(&mut self) {
        if !matches!(self.state.phase(), Phase::Ended(_)) {
            return;
        }
        let now = self.now();
        let due = |reclaim: &&Reclaim| reclaim.ready_at <= now && self.down.contains(&reclaim.node);
        let gone: BTreeSet<NodeId> =
            self.state.parts().reclaims.iter().filter(due).map(|reclaim| reclaim.node).collect();
        for node in gone {
            tracing::warn!(rebalance = self.id(), %node, "it is down: it frees what it gave up when it is back");
            self.on(RebalanceEvent::Emptied(node));
        }
    }

    /// A copy that went down with another that was cancelled is one that failed.
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

    /// What a person asked for at whichever router. Stored before it is taken off, so that no crash loses it.
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
        if let Err(error) = self.rebalancer.metadata.commit(vec![condition], vec![write]).await {
            tracing::debug!(%error, "what was asked is heard again");
        }
        Ok(())
    }

    /// The oldest table of the routers that live; `None` if one of them does not say.
    async fn oldest_in_use(&self, topology: &TopologyDocument) -> Option<Epoch> {
        let live = self.rebalancer.metadata.read(keys::LIVE).await.ok()?;
        let routers =
            topology.routers.iter().filter(|router| live.get(&keys::live_router(router.router)).is_some());
        let mut asked: FuturesUnordered<_> =
            routers.map(|router| epoch_at(&self.rebalancer.dialer, &router.addr)).collect();
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
    tokio::time::timeout(ROUTER_PATIENCE, asked).await.ok().flatten()
}
