//! The copies and releases in progress at nodes.

use super::{Driver, FailedCopy, Happened, RETRY_PAUSE};
use crate::admin::rebalance::nodes::addr_of;
use kith_net::security::{Dialer, GrpcChannel};
use kith_routing::rebalance::CopyFault;
use kith_types::{ErrorCode, NodeId, PartitionId};
use kith_wire::{
    documents::TopologyDocument,
    v1::{self, node_client::NodeClient},
};
use tonic::Status;

impl Driver {
    /// Sends one request for everything that one stealer gets from one donor.
    pub(super) fn copy(&mut self, donor: NodeId, stealer: NodeId, stores: &[u32], indexes: Vec<usize>) {
        let transfers = &self.state.parts().transfers;
        let request = v1::CopyRequest {
            from: String::new(),
            stores: self.store_names(stores),
            partitions: indexes.iter().map(|index| transfers[*index].copy.partition.0).collect(),
            revision: self.revision,
            bytes_per_second: self.document.bytes_per_second,
        };
        let (sender, topology) = (self.sender.clone(), self.rebalancer.cluster.topology.clone());
        let (id, of_task) = (self.document.id.clone(), indexes.clone());
        let dialer = self.rebalancer.cluster.dialer.clone();
        let task = self.work.spawn(async move {
            let topology = topology.borrow().clone();
            let outcome = copy_to(&dialer, &topology, donor, stealer, request).await.map_err(|status| {
                let error = status.message();
                tracing::warn!(rebalance = id, %donor, %stealer, error, "a copy failed");
                FailedCopy { fault: fault_of(&status), detail: format!("from {donor} to {stealer}: {error}") }
            });
            if outcome.as_ref().is_err_and(|failed| failed.fault == CopyFault::Transient) {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            let _ = sender.send(Happened::Copied(of_task, outcome));
        });
        // Aborting one copy aborts all copies of its request. The other copies are then reported as failed.
        for index in indexes {
            self.copies.insert(index, task.clone());
        }
    }

    /// Tells a node to free partitions, and repeats this until it succeeds.
    pub(super) fn release(&mut self, node: NodeId, stores: Vec<u32>, partitions: Vec<PartitionId>) {
        let request = v1::ReleaseRequest {
            stores: self.store_names(&stores),
            partitions: partitions.iter().map(|partition| partition.0).collect(),
            revision: self.revision,
        };
        let (sender, topology) = (self.sender.clone(), self.rebalancer.cluster.topology.clone());
        let (id, dialer) = (self.document.id.clone(), self.rebalancer.cluster.dialer.clone());
        self.work.spawn(async move {
            loop {
                let known = topology.borrow().clone();
                let released = async {
                    let channel = connect(&dialer, &known, node).await?;
                    NodeClient::new(channel).release(request.clone()).await
                };
                let Err(status) = released.await else { break };
                tracing::warn!(rebalance = id, %node, error = status.message(), "files could not be freed yet");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            let freed = partitions.into_iter().map(|partition| (partition, stores.clone())).collect();
            let _ = sender.send(Happened::Released(node, freed));
        });
    }

    fn store_names(&self, stores: &[u32]) -> Vec<String> {
        let known = &self.state.parts().plan.stores;
        stores.iter().filter_map(|store| Some(known.get(*store as usize)?.name.clone())).collect()
    }
}

async fn connect(dialer: &Dialer, topology: &TopologyDocument, node: NodeId) -> Result<GrpcChannel, Status> {
    let addr = addr_of(topology, node).ok_or_else(|| Status::unavailable("the node has not registered"))?;
    dialer.connect(&addr).await
}

async fn copy_to(
    dialer: &Dialer,
    topology: &TopologyDocument,
    donor: NodeId,
    stealer: NodeId,
    mut request: v1::CopyRequest,
) -> Result<(), Status> {
    request.from =
        addr_of(topology, donor).ok_or_else(|| Status::unavailable("the donor has not registered"))?;
    let mut steps =
        NodeClient::new(connect(dialer, topology, stealer).await?).copy(request).await?.into_inner();
    while let Some(step) = steps.message().await? {
        if step.ready {
            return Ok(());
        }
    }
    Err(Status::unavailable("the stream ended before the copy was complete"))
}

fn fault_of(status: &Status) -> CopyFault {
    match kith_wire::code_of(status) {
        ErrorCode::DonorUnfit => CopyFault::Donor,
        ErrorCode::StealerUnfit => CopyFault::Stealer,
        _ => CopyFault::Transient,
    }
}
