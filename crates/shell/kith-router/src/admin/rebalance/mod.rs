//! Carries out rebalances: a thin shell around the state machine of `kith_routing::rebalance` (Voldemort §5.7). One router drives.
//! Each of its writes is conditional on its previous one, so that a driver that was wrongly believed dead cannot change
//! anything (`docs/design/0006-rebalance.md`).

mod document;
mod drive;
mod nodes;
mod plan;
mod refused;
mod restore;
mod sizes;
mod status;
mod takeover;

pub use takeover::take_over;

use crate::admin::ClusterHandle;
use document::parts_of;
use drive::Driver;
use kith_cluster::metadata::{
    CommitOutcome, Condition, Entry, Write, keys,
    records::{self, ChangeError},
};
use kith_cluster::topology::catch_up;
use kith_routing::RoutingTable;
use kith_routing::rebalance::{Conditions, RebalancePlan, RebalanceState};
use kith_types::NodeId;
use kith_wire::{
    documents::{
        ClusterDocument, DOCUMENT_FORMAT, Document, PhaseDocument, RebalanceDocument, StopDocument,
        StoreDocument,
    },
    v1::{self, rebalance_request::Command},
};
use parking_lot::{Mutex, MutexGuard};
use plan::{PlannedRebalance, Planner};
use refused::{begin_status, cannot_continue, no_rebalance, not_heard, not_settled, push_running, running};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tonic::Status;

/// The default grace period of moved partitions. It is longer than any query's deadline, so that a query that pinned an
/// older table still finds them.
const GRACE_DEFAULT: Duration = Duration::from_secs(60);
/// The maximum number of attempts to begin a rebalance while others change the cluster.
const BEGIN_TRIES: u32 = 10;

/// The time that a router waits until its watch has caught up with a revision. A revision that changed only leases
/// never arrives.
const SEEN_WAIT: Duration = Duration::from_secs(2);

/// The time that a user's command waits for the driving router. It is longer than another router needs to take over.
const HEARD_WAIT: Duration = Duration::from_secs(20);
/// The interval between checks whether the driver has read a user's command.
const HEARD_INTERVAL: Duration = Duration::from_millis(50);

/// Whether a rebalance can be continued by a user.
#[derive(Debug, PartialEq, Eq)]
enum Resumption {
    Possible,
    /// It has not stopped.
    NotNeeded,
    /// Another process has changed the cluster, so that it can only be aborted.
    Impossible,
}

fn resumption(phase: &PhaseDocument) -> Resumption {
    match phase {
        PhaseDocument::Stopped { reason: StopDocument::TableChanged { .. } } => Resumption::Impossible,
        PhaseDocument::Stopped { .. } => Resumption::Possible,
        _ => Resumption::NotNeeded,
    }
}

/// Plans and drives rebalances, for one router.
#[derive(Clone)]
pub struct Rebalancer {
    cluster: ClusterHandle,
    /// The rebalance that this router drives now; written when driving begins and ends.
    driving: Arc<Mutex<Option<String>>>,
}

/// The terms on which a rebalance is carried out.
struct Terms<'a> {
    /// The user who asked for it.
    who: &'a str,
    /// The time for which moved partitions are kept on their old owners.
    grace: Duration,
    /// The limit on the rate of all copies to one node, in bytes per second; 0 for no limit.
    bytes_per_second: u64,
}

/// The records of the running and of the last rebalance, from one read.
struct Records {
    running: Option<Entry>,
    ended: Option<Entry>,
}

impl Rebalancer {
    /// Returns a rebalancer that drives nothing yet.
    pub fn new(cluster: ClusterHandle) -> Self {
        Self { cluster, driving: Arc::default() }
    }

    fn driving(&self) -> MutexGuard<'_, Option<String>> {
        self.driving.lock()
    }

    /// Carries out a request.
    ///
    /// # Errors
    /// Returns the status for the caller. Nothing has changed in this case.
    pub async fn command(&self, request: v1::RebalanceRequest) -> Result<v1::RebalanceReply, Status> {
        let v1::RebalanceRequest { who, command } = request;
        let command = command.ok_or_else(|| records::unknown_command("a rebalance"))?;
        match command {
            Command::Plan(asked) => {
                let planned = Planner { cluster: &self.cluster }.plan(&asked).await?;
                Ok(status::planned(&planned.plan, &who))
            }
            Command::Apply(asked) => self.begin(&asked, &who).await,
            Command::Status(_) => self.status().await,
            Command::Abort(_) => self.ask("abort").await,
            Command::Resume(_) => self.resume_stopped().await,
        }
    }

    async fn records(&self) -> Result<Records, Status> {
        let snapshot = self.cluster.metadata.read(keys::REBALANCE).await.map_err(unavailable)?;
        Ok(Records {
            running: snapshot.get(keys::REBALANCE).cloned(),
            ended: snapshot.get(keys::REBALANCE_ENDED).cloned(),
        })
    }

    async fn status(&self) -> Result<v1::RebalanceReply, Status> {
        let Records { running, ended } = self.records().await?;
        let entry = running.or(ended).ok_or_else(no_rebalance)?;
        status::recorded(&decoded(&entry)?)
    }

    /// Continues a rebalance that has stopped. One that has not stopped is left alone.
    async fn resume_stopped(&self) -> Result<v1::RebalanceReply, Status> {
        let entry = self.records().await?.running.ok_or_else(no_rebalance)?;
        let document = decoded(&entry)?;
        match resumption(&document.phase) {
            Resumption::Possible => self.ask("resume").await,
            Resumption::NotNeeded => status::recorded(&document),
            Resumption::Impossible => Err(cannot_continue(&document)),
        }
    }

    /// Passes a command of a user on to the router that drives, and waits until that router has stored it. The reply
    /// therefore shows the state after the command.
    async fn ask(&self, what: &str) -> Result<v1::RebalanceReply, Status> {
        let entry = self.records().await?.running.ok_or_else(no_rebalance)?;
        let id = decoded(&entry)?.id;
        let value = format!("{what} {id}").into_bytes();
        let heard = async {
            let mut asked = None;
            loop {
                let snapshot = self.cluster.metadata.read(keys::REBALANCE).await.map_err(unavailable)?;
                if snapshot.get(keys::REBALANCE).is_none() {
                    return Ok::<_, Status>(()); // It is over.
                }
                let waiting = snapshot.get(keys::REBALANCE_ASKED);
                match (waiting, asked) {
                    (None, Some(_)) => return Ok(()),
                    (Some(entry), Some(revision)) if entry.revision != revision => return Ok(()),
                    (Some(entry), None) if entry.value == value => asked = Some(entry.revision),
                    // Another command waits for the driver: let the driver read it first.
                    (Some(_), _) => {}
                    (None, None) => {
                        let absent = Condition { key: keys::REBALANCE_ASKED.to_owned(), revision: 0 };
                        let write = Write::put(keys::REBALANCE_ASKED, value.clone());
                        let committed = self.cluster.metadata.commit(vec![absent], vec![write]).await;
                        if let CommitOutcome::At(revision) = committed.map_err(unavailable)? {
                            asked = Some(revision);
                        }
                    }
                }
                tokio::time::sleep(HEARD_INTERVAL).await;
            }
        };
        tokio::time::timeout(HEARD_WAIT, heard).await.map_err(|_| not_heard(what))??;
        let Records { running, ended } = self.records().await?;
        let documents = running.iter().chain(&ended).map(decoded);
        let document = documents.filter_map(Result::ok).find(|document| document.id == id);
        status::recorded(&document.ok_or_else(no_rebalance)?)
    }

    /// Plans, writes the record and begins to drive. The reply shows the first state.
    async fn begin(&self, asked: &v1::ShapeRequest, who: &str) -> Result<v1::RebalanceReply, Status> {
        self.cluster.wait_until_live().await.map_err(change_status)?;
        for _ in 0..BEGIN_TRIES {
            let Records { running: under_way, ended } = self.records().await?;
            if let Some(entry) = under_way {
                return Err(running(&decoded(&entry)?));
            }
            // This is read before the plan is made, so that no push can begin between the plan and the commit.
            let mut conditions = self.no_push_runs().await?;
            let PlannedRebalance { plan, cluster, cluster_revision, dead } =
                Planner { cluster: &self.cluster }.plan(asked).await?;
            let reclaims_left = match &ended {
                Some(entry) => decoded(entry)?.reclaims.len(),
                None => 0,
            };
            let begin = Conditions { push_running: None, reclaims_left, dead };
            let terms = Terms {
                who,
                grace: asked.grace_ms.map_or(GRACE_DEFAULT, Duration::from_millis),
                bytes_per_second: asked.bytes_per_second,
            };
            let (document, state) = self.first_record(plan, &cluster, terms, &begin)?;
            let revision_of = |entry: Option<&Entry>| entry.map_or(0, |entry| entry.revision);
            for (key, revision) in [
                (keys::REBALANCE, 0),
                (keys::REBALANCE_ENDED, revision_of(ended.as_ref())),
                (keys::CLUSTER, cluster_revision),
            ] {
                conditions.push(Condition { key: key.to_owned(), revision });
            }
            let writes =
                vec![Write::put(keys::REBALANCE, document.encode()), Write::delete(keys::REBALANCE_ASKED)];
            if let CommitOutcome::At(revision) =
                self.cluster.metadata.commit(conditions, writes).await.map_err(unavailable)?
            {
                let reply = status::recorded(&document)?;
                self.drive(Driver::new(self.clone(), document, state, cluster, revision));
                return Ok(reply);
            }
        }
        Err(refused::conflict())
    }

    /// Returns conditions that hold as long as no store begins a push.
    async fn no_push_runs(&self) -> Result<Vec<Condition>, Status> {
        let stores = self.cluster.metadata.read(keys::STORES).await.map_err(unavailable)?;
        self.wait_until_seen(stores.revision).await;
        let mut conditions = Vec::new();
        for entry in stores.entries {
            let store = StoreDocument::decode(&entry.value)
                .map_err(|error| records::other_release(error.to_string()))?;
            if let Some(push) = &store.running {
                return Err(push_running(&store.name, push));
            }
            conditions.push(Condition { key: entry.key, revision: entry.revision });
        }
        Ok(conditions)
    }

    /// Waits for at most [`SEEN_WAIT`] until this router's topology is at least as new as `revision`.
    async fn wait_until_seen(&self, revision: u64) {
        if !catch_up(&self.cluster.topology, revision, SEEN_WAIT).await {
            tracing::debug!(revision, "the watch of the metadata lags");
        }
    }

    fn first_record(
        &self,
        plan: RebalancePlan,
        cluster: &ClusterDocument,
        terms: Terms<'_>,
        conditions: &Conditions,
    ) -> Result<(RebalanceDocument, RebalanceState), Status> {
        let Terms { who, grace, bytes_per_second } = terms;
        let table = RoutingTable::new(plan.before.clone())
            .map_err(|error| records::other_release(error.to_string()))?;
        let state = RebalanceState::begin(plan, grace, &table, conditions)
            .map_err(|refusal| begin_status(&refusal, not_settled(conditions.reclaims_left)))?;
        let mut document = RebalanceDocument {
            format: DOCUMENT_FORMAT,
            id: format!("rebalance-{:016x}", rand::random::<u64>()),
            who: who.to_owned(),
            since: records::now().0,
            driver: self.cluster.coordinator.name().to_owned(),
            fence: 1,
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
            bytes_per_second,
            plan: document::plan_document(&state.parts().plan, cluster),
            steps_done: 0,
            first_uncommitted: 0,
            table: cluster.clone(),
            phase: PhaseDocument::Working,
            abort_asked: false,
            transfers: Vec::new(),
            reclaims: Vec::new(),
            last_failure: String::new(),
        };
        document::record(&mut document, state.parts(), cluster);
        Ok((document, state))
    }

    /// Drives in the background until the rebalance is over or another router takes over.
    fn drive(&self, driver: Driver) {
        let id = driver.id().to_owned();
        *self.driving() = Some(id.clone());
        let rebalancer = self.clone();
        tokio::spawn(async move {
            match driver.run().await {
                Ok(()) => tracing::info!(rebalance = id, "nothing is left to do"),
                Err(error) => {
                    tracing::warn!(rebalance = id, %error, "this router no longer drives the rebalance")
                }
            }
            rebalancer.driving().take_if(|driving| *driving == id);
        });
    }
}

fn decoded(entry: &Entry) -> Result<RebalanceDocument, Status> {
    let document =
        RebalanceDocument::decode(&entry.value).map_err(|error| records::other_release(error.to_string()))?;
    parts_of(&document).map_err(|error| records::other_release(error.to_string()))?;
    Ok(document)
}

fn change_status(error: ChangeError) -> Status {
    error.to_status("")
}

fn unavailable(error: kith_cluster::metadata::MetadataError) -> Status {
    change_status(error.into())
}

/// The nodes of the plan that are down.
type Dead = BTreeSet<NodeId>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_stopped_and_still_fits_the_cluster_is_continued() {
        let of = |reason| resumption(&PhaseDocument::Stopped { reason });
        assert_eq!(of(StopDocument::StealerDown { node: 1 }), Resumption::Possible);
        assert_eq!(of(StopDocument::TableChanged { in_force: 3 }), Resumption::Impossible);
        assert_eq!(resumption(&PhaseDocument::Working), Resumption::NotNeeded);
        assert_eq!(resumption(&PhaseDocument::Finished), Resumption::NotNeeded);
    }
}
