//! Lets nodes fetch, verify and open a version, and waits for nodes that are away.

use super::push::{Progress, Push};
use crate::admin::ClusterHandle;
use futures::{StreamExt, stream::FuturesUnordered};
use kith_cluster::FailPoint;
use kith_cluster::metadata::records::{ChangeError, holders_of, now, state_of};
use kith_topology::versions::{Command, Context, Pull, Supply, Trust};
use kith_types::{ErrorCode, NodeId, PartitionId};
use kith_wire::{
    documents::{Document, StoreDocument},
    v1::{self, node_client::NodeClient},
};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};
use tonic::{Code, Status};

/// The pause between attempts to reach a node that is away.
const NODE_RETRY: Duration = Duration::from_millis(500);

/// The preparation of a pushed version: every node fetches, verifies and opens it.
pub(super) struct Preparation<'a> {
    pub cluster: &'a ClusterHandle,
    pub push: &'a Push,
    pub progress: &'a Progress,
}

impl Preparation<'_> {
    /// Lets every holder prepare the version of a push that has begun. Returns the outcomes as commands for the flip.
    /// Nodes in groups that are taken out are asked once; those that are down fetch the version when they are back.
    ///
    /// # Errors
    /// The error of the node with which more nodes failed than the push allows.
    pub async fn on_all_holders(
        &self,
        store: &StoreDocument,
        revision: u64,
    ) -> Result<Vec<Command>, ChangeError> {
        let push = self.push;
        let mut state = state_of(store)?;
        let version = store.versions.iter().find(|entry| entry.state == "fetching");
        let version = store.at(version.ok_or(ChangeError::Unknown)?);
        let request = v1::PrepareRequest {
            record: version.encode().into(),
            revision,
            quota_left_bytes: if push.force { None } else { state.quota_left_bytes() },
            ..Default::default()
        };
        let holders = holders_of(&self.cluster.cluster(), &store.name, store.definition.replication);
        let reading: BTreeSet<NodeId> = holders.groups.iter().flatten().copied().collect();
        let mut supply = Supply::new(holders.clone(), push.from_peers);
        let mut running = FuturesUnordered::new();
        let mut outcomes = Vec::new();
        loop {
            for pull in supply.start() {
                let request = self.request_for(&request, &pull);
                let timeout = if reading.contains(&pull.node) { push.node_wait } else { Duration::ZERO };
                running.push(async move {
                    let result = self.on_node(pull.node, &request, timeout).await;
                    (pull, result)
                });
            }
            let Some((pull, result)) = running.next().await else { return Ok(outcomes) };
            match &result {
                Ok(()) if !supply.done(&pull) => continue,
                Ok(()) => {}
                Err(_) => supply.failed(pull.node),
            }
            let command = outcome_of(push, pull.node, &result);
            let (who, standing) = ("", Trust::default());
            let context = Context { now: now(), who, standing, holders: &holders, rebalance: None };
            state = state.apply(&command, &context)?.state;
            if let (None, Err(status)) = (&state.running, result) {
                return Err(status.into());
            }
            outcomes.push(command);
            FailPoint::PushPreparing.reach();
        }
    }

    /// Returns the request for one node. A peer without an address is left out, and the object store supplies its
    /// partitions.
    fn request_for(&self, request: &v1::PrepareRequest, pull: &Pull) -> v1::PrepareRequest {
        let numbers = |partitions: &BTreeSet<PartitionId>| partitions.iter().map(|it| it.0).collect();
        let suppliers = pull.peers.iter().filter_map(|(peer, partitions)| {
            let addr = self.cluster.addr_of_node(peer.0)?;
            Some(v1::Supplier { addr, partitions: numbers(partitions) })
        });
        let only = if pull.is_whole { Vec::new() } else { numbers(&pull.partitions) };
        v1::PrepareRequest { only, suppliers: suppliers.collect(), ..request.clone() }
    }

    /// Repeats the request while the node is away, for at most `timeout`.
    async fn on_node(
        &self,
        node: NodeId,
        request: &v1::PrepareRequest,
        timeout: Duration,
    ) -> Result<(), Status> {
        let started = Instant::now();
        loop {
            match self.attempt(node, request.clone()).await {
                Err(status) if is_away(&status) && started.elapsed() < timeout => {
                    // A report without a component and bytes means that this node is waited for.
                    let waiting = v1::PushProgress { node: node.0, ..Default::default() };
                    let _ = self.progress.try_send(Ok(waiting));
                    tokio::time::sleep(NODE_RETRY).await;
                }
                Err(status) if is_away(&status) => {
                    let (waited, why) = (timeout.as_secs_f64(), status.message());
                    let message = format!("node {} cannot be reached, after {waited} s: {why}", node.0);
                    let help = "nothing was swapped; start the node (see `kith cluster status`) and try again; \
                                --node-wait sets how long to wait for it";
                    return Err(kith_wire::status(ErrorCode::NodeUnreachable, message, help));
                }
                other => return other,
            }
        }
    }

    async fn attempt(&self, node: NodeId, request: v1::PrepareRequest) -> Result<(), Status> {
        let addr = self.cluster.addr_of_node(node.0);
        let addr = addr.ok_or_else(|| Status::unavailable("the node has not registered"))?;
        let channel = self.cluster.dialer.connect(&addr).await?;
        let mut steps = NodeClient::new(channel).prepare(request).await?.into_inner();
        while let Some(step) = steps.message().await? {
            if step.ready {
                return Ok(());
            }
            let report = v1::PushProgress {
                node: node.0,
                component: step.component,
                bytes_done: step.bytes_done,
                bytes_total: step.bytes_total,
                held_back: step.held_back,
                ..Default::default()
            };
            // A slow reader misses progress reports, but nothing else.
            let _ = self.progress.try_send(Ok(report));
        }
        Err(Status::unavailable("the stream ended before the version was ready"))
    }
}

/// Returns the change of the store's record that follows from a node's answer.
fn outcome_of(push: &Push, node: NodeId, result: &Result<(), Status>) -> Command {
    let id = push.push.clone();
    match result {
        Ok(()) => Command::Ready { push: id, node },
        Err(status) => {
            let error = status.message();
            tracing::warn!(store = push.store, node = node.0, error, "a node does not have the version");
            Command::NodeFailed { push: id, node, reason: error.to_owned() }
        }
    }
}

fn is_away(status: &Status) -> bool {
    kith_wire::code_of(status) == ErrorCode::Unavailable
        || (status.code() == Code::Unknown && status.details().is_empty())
}
