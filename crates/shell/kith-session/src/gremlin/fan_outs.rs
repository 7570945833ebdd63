//! The fan-outs of a traversal.

use super::{notes, to_gremlin_error};
use crate::session::{Run, latest_round};
use kith_gremlin::GremlinError;
use kith_operators::{Operator, Value as Evaluated};
use kith_query::{FanOut, QueryError, Scope, ServedGraph};
use kith_traversal::{evaluate::Meter, graph::Notes};
use kith_types::FanOutKind;
use kith_wire::v1;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The kinds of the fan-outs for some vertices, as explanations show them.
pub(super) const ONE_OR_MORE: &str = "single-key for one vertex, non-union for more";
/// The same where nodes merge their lists.
pub(super) const UNION_OF_ONE_OR_MORE: &str = "single-key for one vertex, sync-union for more";

/// The run of a traversal, which sends one fan-out after the other.
pub(super) struct FanOuts<'a> {
    run: Mutex<Run<'a>>,
    /// Counts answers until the step that asked has returned.
    meter: Arc<Meter>,
    /// The last error, which says more than the error that a step passes on.
    failed: parking_lot::Mutex<Option<QueryError>>,
}

impl<'a> FanOuts<'a> {
    pub fn new(run: Run<'a>, meter: Arc<Meter>) -> Self {
        Self { run: Mutex::new(run), meter, failed: parking_lot::Mutex::default() }
    }

    /// What counts the memory of the traversal.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The run, to change what its further fan-outs must show.
    pub async fn run(&self) -> tokio::sync::MutexGuard<'_, Run<'a>> {
        self.run.lock().await
    }

    /// The run, once there are no further fan-outs.
    pub fn into_run(self) -> Run<'a> {
        self.run.into_inner()
    }

    /// The state that answered, and the timings if these were requested.
    pub fn finish(self) -> (ServedGraph, Option<v1::Profile>) {
        self.run.into_inner().into_served()
    }

    /// Takes the notes about everything that has been done since the last call.
    pub fn take_notes(&self) -> Notes {
        // A step that still waits for the graph has nothing to note yet.
        self.run.try_lock().map(|mut run| notes::take(&mut run)).unwrap_or_default()
    }

    /// Sends a fan-out, unless its lists are in a cache of this process.
    pub async fn ask(&self, fan_out: FanOut) -> Result<Evaluated, GremlinError> {
        let evaluated = self.run.lock().await.round(&fan_out).await.map_err(|error| self.error(error))?;
        self.meter.lend(evaluated.bytes())?;
        Ok(evaluated)
    }

    /// Asks for something of each key; keys are distinct.
    pub async fn ask_keys(
        &self,
        purpose: &'static str,
        keys: &[u64],
        plan: Operator,
    ) -> Result<Evaluated, GremlinError> {
        self.ask(of_keys(purpose, keys, plan)).await
    }

    /// Asks for something of all partitions.
    pub async fn ask_everyone(
        &self,
        purpose: &'static str,
        plan: Operator,
    ) -> Result<Evaluated, GremlinError> {
        let (kind, scope) = (FanOutKind::Broadcast, Scope::Partitions);
        self.ask(FanOut { purpose, kind, scope, plan }).await
    }

    /// As [`FanOuts::ask_everyone`]; the answer shows every write that was confirmed before.
    pub async fn ask_everyone_for_latest(
        &self,
        purpose: &'static str,
        plan: Operator,
    ) -> Result<Evaluated, GremlinError> {
        let fan_out = FanOut { purpose, kind: FanOutKind::Broadcast, scope: Scope::Partitions, plan };
        let evaluated = latest_round(&mut *self.run.lock().await, &fan_out).await;
        let evaluated = evaluated.map_err(|error| self.error(error))?;
        self.meter.lend(evaluated.bytes())?;
        Ok(evaluated)
    }

    /// Sends several fan-outs at the same time. Returns their values in the same order.
    pub async fn ask_together(&self, fan_outs: &[FanOut]) -> Result<Vec<Evaluated>, GremlinError> {
        let evaluated = self.run.lock().await.ask_together(fan_outs).await;
        let evaluated = evaluated.map_err(|error| self.error(error))?;
        self.meter.lend(evaluated.iter().map(Evaluated::bytes).fold(0, u64::saturating_add))?;
        Ok(evaluated)
    }

    /// An error as a step passes it on. [`FanOuts::cause`] returns it as it was.
    pub fn error(&self, error: QueryError) -> GremlinError {
        let passed_on = to_gremlin_error(&error);
        *self.failed.lock() = Some(error);
        passed_on
    }

    /// The error of a query that a step has passed on.
    pub fn cause(&self, error: &GremlinError) -> Option<QueryError> {
        self.failed.lock().clone().filter(|cause| to_gremlin_error(cause) == *error)
    }
}

/// A fan-out whose answer is one set for all keys; keys are distinct.
pub(super) fn union_of_keys(purpose: &'static str, keys: &[u64], plan: Operator) -> FanOut {
    let kind = if keys.len() == 1 { FanOutKind::SingleKey } else { FanOutKind::SyncUnion };
    FanOut { kind, ..of_keys(purpose, keys, plan) }
}

/// A fan-out that asks for something of each key; keys are distinct.
pub(super) fn of_keys(purpose: &'static str, keys: &[u64], plan: Operator) -> FanOut {
    let kind = if keys.len() == 1 { FanOutKind::SingleKey } else { FanOutKind::NonUnion };
    FanOut { purpose, kind, scope: Scope::Keys(keys.to_vec()), plan }
}
