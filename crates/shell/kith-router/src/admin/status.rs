//! The status of the cluster, as this router sees it.

use crate::admin::{
    live::status::{self as live, LogsByNode},
    own_status,
    service::Admin,
    shape,
    versions::{last_push, observed},
};
use kith_cluster::metadata::records::now;
use kith_types::NodeId;
use kith_wire::{
    documents::{NodeDocument, RouterDocument, TopologyDocument},
    v1,
};
use std::{sync::Arc, time::Duration};

/// A node or router that does not answer within this time is shown as `down`.
const STATUS_TIMEOUT: Duration = Duration::from_millis(500);
/// The time that the creation of a live graph waits until nodes serve it.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which it asks them.
const READY_INTERVAL: Duration = Duration::from_millis(20);

impl Admin {
    /// Returns the status that the request asks for: of this router alone, or of the whole cluster.
    pub(super) async fn cluster_status(&self, request: v1::StatusRequest) -> v1::ClusterStatus {
        let v1::StatusRequest { counters, own } = request;
        let counted = counters.then(|| self.view.counters());
        let topology = Arc::clone(&self.cluster.topology.borrow());
        let revision = topology.revision;
        let metadata_age_ms = u64::try_from(self.freshness.age().as_millis()).unwrap_or(u64::MAX);
        if own {
            return v1::ClusterStatus { counters: counted, revision, metadata_age_ms, ..Default::default() };
        }
        let metadata = &*self.cluster.metadata;
        let (nodes, live_logs) = self.node_statuses(&topology, counters).await;
        let is_away =
            |node: &&v1::NodeStatus| !node.spare && ["down", "unregistered"].contains(&node.state.as_str());
        let nodes_down: Vec<u32> = nodes.iter().filter(is_away).map(|node| node.node).collect();
        let routers = topology.routers.iter().map(|router| self.router_status(router));
        let routers = futures::future::join_all(routers).await;
        v1::ClusterStatus {
            nodes,
            epoch: topology.cluster.epoch,
            routers,
            partitions: topology.cluster.partitions,
            counters: counted,
            revision,
            metadata_age_ms,
            stores: self.store_statuses().await,
            groups: shape::groups(&topology, &nodes_down),
            live_graphs: live::graphs(&topology, &live_logs),
            databases: live::database_statuses(metadata, &topology.databases, STATUS_TIMEOUT).await,
        }
    }

    /// Waits until a new live graph answers all requests, for a limited time. What is missing after that is shown by the status of
    /// the cluster.
    pub(super) async fn wait_until_ready(&self, graph: &str) {
        let ready = async {
            loop {
                let topology = Arc::clone(&self.cluster.topology.borrow());
                let (_, reports) = self.node_statuses(&topology, false).await;
                if live::is_ready(graph, &topology, &reports) {
                    return;
                }
                tokio::time::sleep(READY_INTERVAL).await;
            }
        };
        let _ = tokio::time::timeout(READY_TIMEOUT, ready).await;
    }

    /// Returns the status of every listed node and of live spares, and what nodes that are up report about live graphs.
    async fn node_statuses(
        &self,
        topology: &TopologyDocument,
        counters: bool,
    ) -> (Vec<v1::NodeStatus>, LogsByNode) {
        let groups = topology.cluster.groups.iter();
        let listed: Vec<(Option<u32>, u32)> =
            groups.flat_map(|group| group.nodes.iter().map(|&node| (Some(group.group), node))).collect();
        let is_spare = |node: &u32| !listed.iter().any(|(_, known)| known == node);
        let spares = topology.nodes.iter().map(|known| known.node).filter(is_spare).map(|node| (None, node));
        let nodes = listed.iter().copied().chain(spares);
        let nodes = nodes.map(|(group, node)| self.node_status(topology, group, node, counters));
        let reports = futures::future::join_all(nodes).await;
        let live = reports.iter().filter_map(|(status, live)| Some((status.node, live.clone()?))).collect();
        let mut nodes: Vec<v1::NodeStatus> = reports.into_iter().map(|(status, _)| status).collect();
        // A node that was removed and has ended is no longer shown.
        nodes.retain(|node| !node.spare || node.state != "down");
        (nodes, live)
    }

    async fn node_status(
        &self,
        topology: &TopologyDocument,
        group: Option<u32>,
        node: u32,
        counters: bool,
    ) -> (v1::NodeStatus, Option<Vec<v1::AppliedLogs>>) {
        let document: Option<&NodeDocument> = topology.nodes.iter().find(|document| document.node == node);
        let listed = topology.cluster.listed.iter().find(|listed| listed.node == node);
        let zone = listed.map(|listed| &listed.zone).filter(|zone| !zone.is_empty());
        let zone = zone.or(document.map(|document| &document.zone)).cloned().unwrap_or_default();
        let status = v1::NodeStatus {
            node,
            group: group.unwrap_or_default(),
            spare: group.is_none(),
            zone,
            addr: document.map(|document| document.addr.clone()).unwrap_or_default(),
            pid: document.map_or(0, |document| document.pid),
            partitions: topology.cluster.partitions_of(node).len() as u32,
            state: "unregistered".to_owned(),
            ..Default::default()
        };
        if document.is_some() { self.report(status, counters).await } else { (status, None) }
    }

    /// Adds the node's own report to its status. Returns what it reports about live graphs, if it is up.
    async fn report(
        &self,
        mut status: v1::NodeStatus,
        counters: bool,
    ) -> (v1::NodeStatus, Option<Vec<v1::AppliedLogs>>) {
        let request = v1::PingRequest { counters, disk: true, live: true, ..Default::default() };
        let ping = self.view.ping(&status.addr, request);
        match tokio::time::timeout(STATUS_TIMEOUT, ping).await {
            Ok(Ok(reply)) => {
                let is_up = self.view.is_up(NodeId(status.node));
                status.state = if is_up { "up" } else { "coming back" }.to_owned();
                status.load = reply.load;
                status.served = reply.served;
                status.files_damaged = reply.files_damaged;
                status.files_repaired = reply.files_repaired;
                status.fetch_held_back = reply.fetch_held_back;
                status.counters = reply.counters;
                status.disk_free = reply.disk_free;
                (status, Some(reply.live))
            }
            _ => {
                status.state = "down".to_owned();
                (status, None)
            }
        }
    }

    async fn router_status(&self, router: &RouterDocument) -> v1::RouterStatus {
        let reply =
            tokio::time::timeout(STATUS_TIMEOUT, own_status(&self.cluster.dialer, &router.addr)).await;
        let own = reply.ok().and_then(Result::ok);
        v1::RouterStatus {
            addr: router.addr.clone(),
            http: router.http.clone(),
            pid: router.pid,
            router: router.router,
            state: if own.is_some() { "up" } else { "down" }.to_owned(),
            revision: own.as_ref().map_or(0, |own| own.revision),
            metadata_age_ms: own.map_or(0, |own| own.metadata_age_ms),
        }
    }

    async fn store_statuses(&self) -> Vec<v1::StoreStatus> {
        let read = tokio::time::timeout(STATUS_TIMEOUT, self.cluster.stores()).await;
        let documents = read.ok().and_then(Result::ok).unwrap_or_default();
        let statuses = documents.into_iter().map(|store| {
            let (answers, p50, p99) = self.view.latencies_of(&store.name);
            let age = observed(&store, now()).version_age.unwrap_or_default();
            v1::StoreStatus {
                version: store.current().map_or(0, |current| current.version),
                version_age_ms: age.as_millis() as u64,
                last_push: last_push(&store).unwrap_or_default().to_owned(),
                running: store.running.map(|running| running.push).unwrap_or_default(),
                frozen: store.frozen.is_some(),
                answers,
                p50_us: p50.as_micros() as u64,
                p99_us: p99.as_micros() as u64,
                store: store.name,
            }
        });
        statuses.collect()
    }
}
