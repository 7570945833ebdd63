//! Takes over rebalances whose driver died. Any router does it, within seconds.

use super::{
    Rebalancer, Records,
    document::{parts_of, record, settled},
    drive::Driver,
};
use kith_cluster::metadata::{CommitOutcome, Condition, Entry, Write, keys};
use kith_routing::RoutingTable;
use kith_routing::rebalance::{Phase, RebalanceState, ResumeRefusal, StopReason};
use kith_types::Timestamp;
use kith_wire::documents::{ClusterDocument, Document, PhaseDocument, RebalanceDocument};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The interval between checks that drivers are alive.
const CARE_INTERVAL: Duration = Duration::from_secs(1);

/// Takes over from dead drivers until `stop` is cancelled.
pub fn take_over(rebalancer: Rebalancer, stop: CancellationToken) {
    tokio::spawn(async move {
        let mut interval = tokio::time::interval(CARE_INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = interval.tick() => {}
            }
            if let Err(error) = rebalancer.look_after().await {
                tracing::debug!(error, "a rebalance may have lost its driver");
            }
        }
    });
}

/// Sets the metric that shows whether the running rebalance is stopped.
fn show(running: Option<&Entry>) {
    let document = running.and_then(|entry| RebalanceDocument::decode(&entry.value).ok());
    let is_stopped = document.is_some_and(|it| matches!(it.phase, PhaseDocument::Stopped { .. }));
    metrics::gauge!("kith_router_rebalance_stopped").set(f64::from(u8::from(is_stopped)));
}

impl Rebalancer {
    async fn look_after(&self) -> Result<(), String> {
        let Records { running, ended } =
            self.records().await.map_err(|status| status.message().to_owned())?;
        show(running.as_ref());
        let Some(entry) = running.or(ended) else { return Ok(()) };
        let document = RebalanceDocument::decode(&entry.value).map_err(|error| error.to_string())?;
        let is_over = matches!(document.phase, PhaseDocument::Finished | PhaseDocument::Aborted);
        if is_over && document.reclaims.is_empty() {
            return Ok(());
        }
        let is_driven = if document.driver == self.cluster.coordinator.name() {
            self.driving().as_deref() == Some(&document.id)
        } else {
            let live = self.cluster.is_live(&document.driver).await;
            live.map_err(|error| error.to_string())?
        };
        if is_driven {
            return Ok(());
        }
        self.resume(document, &entry).await
    }

    /// Raises the fence and continues from the stored state.
    async fn resume(&self, mut document: RebalanceDocument, entry: &Entry) -> Result<(), String> {
        let snapshot = self.cluster.metadata.read(keys::CLUSTER).await.map_err(|error| error.to_string())?;
        let cluster = snapshot.get(keys::CLUSTER).ok_or("there is no cluster")?;
        let cluster = ClusterDocument::decode(&cluster.value).map_err(|error| error.to_string())?;
        let table = settled(&cluster).map_err(|error| error.to_string())?;
        let table = RoutingTable::new(table).map_err(|error| error.to_string())?;
        let mut parts = parts_of(&document).map_err(|error| error.to_string())?;
        let state = match RebalanceState::resume(parts.clone(), &table, Timestamp::ZERO) {
            Err(ResumeRefusal::TableChanged { in_force, .. }) => {
                // Only an abort is left to do, and it changes nothing.
                parts.phase = Phase::Stopped(StopReason::TableChanged { in_force });
                RebalanceState::resume(parts, &table, Timestamp::ZERO)
            }
            other => other,
        };
        let state = state.map_err(|refusal| refusal.to_string())?;
        self.cluster.coordinator.name().clone_into(&mut document.driver);
        document.fence += 1;
        record(&mut document, state.parts(), &cluster);
        let condition = Condition { key: entry.key.clone(), revision: entry.revision };
        let write = Write::put(entry.key.clone(), document.encode());
        let committed = self.cluster.metadata.commit(vec![condition], vec![write]).await;
        let CommitOutcome::At(revision) = committed.map_err(|error| error.to_string())? else {
            return Ok(());
        };
        tracing::warn!(
            rebalance = document.id,
            fence = document.fence,
            "took over a rebalance whose driver is gone"
        );
        self.drive(Driver::resumed(self.clone(), document, state, cluster, revision, &entry.key));
        Ok(())
    }
}
