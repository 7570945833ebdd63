//! The executor: carries out every fan-out of every query, with sending, retries, early termination and merging.
//! `kith_routing` makes the decisions; the executor only carries them out.

mod failure;
mod hedge_metrics;
mod outlook;
mod plan;
mod proofs;
mod reserve;
mod round;

pub(crate) use outlook::Outlook;
pub(crate) use plan::{PlannedFanOut, unknown_policy};

use crate::{
    fleet::Fleet,
    profile::Trace,
    settings::{SessionSettings, SettingsError},
    stream::RecordDelivery,
};
use kith_net::transport::Transport;
use kith_operators::Value;
use kith_query::{FanOut, QueryError, QueryOptions};
use kith_routing::{
    Controllers, LoadSnapshot, PolicyState, QuotaPressure, ReplicaPolicy,
    execution::{Budgets, Failure, Outcome, Verdict},
    fan_out::ControllerStates,
    load::Hedging,
};
use kith_topology::{PinnedState, Topology};
use kith_types::{FanOutKind, LogPoint, OperationName, PartitionId};
use parking_lot::Mutex;
use proofs::LastReports;
use rand::{SeedableRng, rngs::StdRng};
pub(crate) use round::DeliveryEnd;
use round::Round;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// If the receiver of an answer needs longer than this to take it, the other answers had to wait. Their latencies then say
/// nothing about their nodes.
const HELD_UP: Duration = Duration::from_millis(1);

/// A fan-out of one query.
#[derive(Clone, Copy)]
pub(crate) struct FanOutCall<'a> {
    pub topology: &'a Topology,
    pub pinned: &'a PinnedState,
    pub fan_out: &'a FanOut,
    pub options: &'a QueryOptions,
    /// The operation whose fan-out this is.
    pub operation: OperationName,
    pub deadline: Instant,
    /// The points of the logs at which the query has already read partitions. Only used for live graphs.
    pub reached: &'a ReachedPoints,
}

/// The points of the logs at which a query reads the partitions of a live graph.
pub(crate) type ReachedPoints = BTreeMap<PartitionId, LogPoint>;

/// Runs fan-outs. One per process and cluster.
pub struct Executor {
    fleet: Arc<Fleet>,
    controllers: Controllers,
    policy: &'static dyn ReplicaPolicy,
    /// The policy of reads by key.
    policy_values: &'static dyn ReplicaPolicy,
    hedging: Hedging,
    /// The region and zone of this process.
    region_and_zone: (String, String),
    /// Whether nodes should skip the read quota, because this process has already charged it.
    admits: bool,
    /// Cursors, controller memory, budgets and the random source. The lock is held for microseconds, once per fan-out
    /// and reply.
    routing: Mutex<RoutingState>,
}

struct RoutingState {
    policy: PolicyState,
    controllers: ControllerStates,
    budgets: Budgets,
    rng: StdRng,
    reports: LastReports,
    quotas: QuotaPressure,
}

/// The outcome of one fan-out.
#[derive(Debug)]
pub struct RoundOutcome {
    /// The nodes' values, merged.
    pub value: Value,
    /// Partitions without an answer; empty unless the caller accepts partial answers.
    pub missing: Vec<u32>,
    /// The failures that left partitions without an answer.
    pub failures: Vec<Failure>,
    /// The points of the logs at which the query has read partitions, earlier rounds included. Only used for live graphs.
    pub reached: ReachedPoints,
}

impl Executor {
    /// Creates an executor over the transport that the settings name.
    ///
    /// # Errors
    /// If the settings name a policy or controller that does not exist.
    pub fn new(
        topology: watch::Receiver<Arc<Topology>>,
        settings: &SessionSettings,
    ) -> Result<Self, SettingsError> {
        Self::over(topology, settings, settings.transport.build(&settings.dialer))
    }

    /// Creates an executor over the given transport.
    ///
    /// # Errors
    /// If the settings name a policy or controller that does not exist.
    pub fn over(
        topology: watch::Receiver<Arc<Topology>>,
        settings: &SessionSettings,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, SettingsError> {
        let seed = rand::random();
        let state = RoutingState {
            policy: PolicyState::new(seed),
            controllers: ControllerStates::default(),
            budgets: Budgets::default(),
            rng: StdRng::seed_from_u64(seed),
            reports: LastReports::default(),
            quotas: QuotaPressure::default(),
        };
        Ok(Self {
            controllers: settings.controllers()?,
            policy: settings.policy()?,
            policy_values: settings.policy_values()?,
            hedging: settings.hedging()?,
            region_and_zone: (settings.region.clone(), settings.zone.clone()),
            admits: settings.admits,
            fleet: Fleet::new(topology, transport, settings.tells_waits),
            routing: Mutex::new(state),
        })
    }

    /// The health and connections of the nodes.
    pub fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    /// The load, as this process measures it.
    pub fn load(&self) -> LoadSnapshot {
        self.fleet.with_load(|load, now| load.snapshot(now))
    }

    fn with_routing<T>(&self, work: impl FnOnce(&mut RoutingState) -> T) -> T {
        work(&mut self.routing.lock())
    }

    /// Runs one fan-out until it ends.
    ///
    /// # Errors
    /// [`QueryError`], returned within the deadline.
    pub(crate) async fn run(
        &self,
        asking: &FanOutCall<'_>,
        trace: &mut Trace,
    ) -> Result<RoundOutcome, QueryError> {
        let mut planned = self.plan(asking)?;
        self.reserve(asking, &mut planned).await?;
        let mut round = Round::new(self, asking, &planned, trace, false);
        let outcome = round.drive().await;
        hedge_metrics::count(&outcome.hedges);
        if planned.kind == FanOutKind::EarlyTerminable && outcome.verdict == Verdict::Complete {
            self.fleet.with_load(|load, _| load.on_terminable_end(outcome.stopped_early));
        }
        round.conclude(outcome)
    }

    /// Runs one fan-out of a batch read, and hands on each answer that counts when it arrives. No key is in two answers.
    /// While the receiver does not take an answer, no request is sent, and the bytes that nodes may send are bounded
    /// (`docs/design/0010-streaming.md`).
    ///
    /// # Errors
    /// [`QueryError`], returned within the deadline plus the time that the receiver needed; also the receiver's errors
    /// about an answer.
    pub(crate) async fn run_in_parts(
        &self,
        asking: &FanOutCall<'_>,
        trace: &mut Trace,
        handing: &mut RecordDelivery,
    ) -> Result<DeliveryEnd, QueryError> {
        let mut planned = self.plan(asking)?;
        self.reserve(asking, &mut planned).await?;
        let mut round = Round::new(self, asking, &planned, trace, true);
        let outcome: Outcome = loop {
            let (parts, outcome) = round.next_parts().await;
            for part in parts {
                let handed = Instant::now();
                handing.part(part).await?;
                if HELD_UP < handed.elapsed() {
                    round.was_held_up();
                }
            }
            if let Some(outcome) = outcome {
                break outcome;
            }
        };
        hedge_metrics::count(&outcome.hedges);
        round.conclude_handed(outcome)
    }
}
