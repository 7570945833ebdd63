//! The background tasks of a fleet: follows the topology, probes nodes, and tells nodes how long this process waits for
//! them.

use super::Fleet;
use kith_routing::{HealthEvent, HealthOptions};
use kith_topology::Topology;
use kith_types::NodeId;
use kith_wire::v1;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::sync::watch;

/// The interval at which due probes are looked for: a fraction of the probe interval. The load meter takes three missed
/// ticks as a pause of this process.
const PROBE_TICK: Duration = Duration::from_millis(50);
/// The interval at which this process reports to nodes how long it waits for them. Nodes check these reports as often.
const TELL_INTERVAL: Duration = Duration::from_millis(500);

pub(super) async fn follow(fleet: Weak<Fleet>, mut topology: watch::Receiver<Arc<Topology>>) {
    while topology.changed().await.is_ok() {
        let Some(fleet) = fleet.upgrade() else { return };
        let table = Arc::clone(&topology.borrow_and_update().table);
        let now = fleet.now();
        fleet.lock().follow(&table, now);
        fleet.with_load(|load, _| load.follow(&table));
        fleet.refresh(table);
        fleet.turned.notify_waiters();
        fleet.probe_due();
    }
}

pub(super) async fn probe(fleet: Weak<Fleet>) {
    let mut tick = tokio::time::interval(PROBE_TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(fleet) = fleet.upgrade() else { return };
        fleet.with_load(|load, now| load.on_tick(now));
        fleet.probe_due();
    }
}

pub(super) async fn tell_waits(fleet: Weak<Fleet>) {
    loop {
        tokio::time::sleep(TELL_INTERVAL).await;
        let Some(fleet) = fleet.upgrade() else { return };
        fleet.tell_waits();
    }
}

impl Fleet {
    /// Lets the transport drop addresses that the table no longer names. Runs only if the transport has more addresses than
    /// the table, because queries that began with the previous table may still use them.
    fn forget_strangers(&self) {
        let table = Arc::clone(&self.reach.load().table);
        if table.nodes().len() < self.transport.addresses() {
            let known = table.nodes().iter().map(|node| node.address.as_str()).collect();
            self.transport.keep_only(&known);
        }
    }

    /// Probes the nodes whose probes are due.
    fn probe_due(self: &Arc<Self>) {
        self.forget_strangers();
        let now = self.now();
        let cut = self.transport.take_cut();
        let mut health = self.lock();
        if !cut.is_empty() {
            for node in self.reach.load().table.nodes().iter().filter(|node| cut.contains(&node.address)) {
                health.on(node.id, HealthEvent::ConnectionIdleLost, now);
            }
        }
        let due = health.probes_due(now);
        drop(health);
        for node in due {
            tokio::spawn(Arc::clone(self).probe_one(node));
        }
    }

    /// Tells each node how long its answers took since the last report. A lost report is not repeated.
    fn tell_waits(&self) {
        let (waits, table) =
            (self.with_load(|load, _| load.take_waits()), Arc::clone(&self.reach.load().table));
        for (node, waits) in waits {
            let Some(addr) = table.node(node).map(|node| node.address.clone()) else { continue };
            let transport = Arc::clone(&self.transport);
            let header =
                v1::RequestHeader { epoch: table.epoch().0, client: self.client, ..Default::default() };
            let waits = waits.counts().to_vec();
            let ping = v1::PingRequest { header: Some(header), waits, ..Default::default() };
            tokio::spawn(async move {
                let timeout = HealthOptions::default().probe_timeout;
                // If it is lost, the next report covers only later answers.
                let _ = tokio::time::timeout(timeout, transport.ping(&addr, ping)).await;
            });
        }
    }

    async fn probe_one(self: Arc<Self>, node: NodeId) {
        let table = Arc::clone(&self.reach.load().table);
        let Some(index) = table.node_index(node) else { return };
        let addr = table.node_at(index).address.clone();
        if addr.is_empty() {
            return self.on(node, HealthEvent::ProbeFailed);
        }
        let header = v1::RequestHeader { epoch: table.epoch().0, client: self.client, ..Default::default() };
        let ping = self.transport.ping(&addr, v1::PingRequest { header: Some(header), ..Default::default() });
        let answered = tokio::time::timeout(HealthOptions::default().probe_timeout, ping).await;
        let table = Arc::clone(&self.reach.load().table);
        if table.node(node).is_none_or(|node| node.address != addr) {
            // The node has another address by now, and is probed there.
            return;
        }
        let well = matches!(&answered, Ok(Ok(reply)) if reply.node == node.0);
        self.on(node, if well { HealthEvent::ProbeOk } else { HealthEvent::ProbeFailed });
    }
}
