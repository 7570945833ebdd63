//! The fan-outs of a query.

use super::Run;
use crate::{
    executor::{DeliveryEnd, FanOutCall, Outlook, PlannedFanOut, ReachedPoints, RoundOutcome},
    stream::RecordDelivery,
};
use futures::future::try_join_all;
use kith_operators::{Records, Value};
use kith_query::{FanOut, Proofs, QueryError, QueryOptions};

impl Run<'_> {
    /// Sends a fan-out to the nodes.
    pub(crate) async fn ask(&mut self, fan_out: &FanOut) -> Result<Value, QueryError> {
        let &mut Self {
            ref topology,
            ref pinned,
            ref reached,
            ref options,
            operation,
            deadline,
            ref mut trace,
            ..
        } = self;
        let anywhere = ReachedPoints::new();
        let reached = if self.is_pinned { reached } else { &anywhere };
        let asking = FanOutCall { topology, pinned, fan_out, options, operation, deadline, reached };
        let outcome = self.session.inner.executor.run(&asking, trace).await?;
        Ok(self.take(outcome))
    }

    /// Notes what a fan-out tells besides its value.
    fn take(&mut self, outcome: RoundOutcome) -> Value {
        let RoundOutcome { value, missing, failures, reached } = outcome;
        match self.is_pinned {
            true => self.reached = reached,
            false => self.reach(reached),
        }
        self.missing.extend(missing);
        self.failures.extend(failures);
        value
    }

    /// Sends several fan-outs of a run without pins at the same time. Returns their values in the same order.
    pub(crate) async fn ask_together(&mut self, fan_outs: &[FanOut]) -> Result<Vec<Value>, QueryError> {
        let this = &*self;
        let asked = fan_outs.iter().map(|fan_out| {
            let mut trace = this.trace.beside();
            async move {
                let anywhere = ReachedPoints::new();
                let asking = FanOutCall { reached: &anywhere, ..this.asking(fan_out) };
                let outcome = this.session.inner.executor.run(&asking, &mut trace).await?;
                Ok::<_, QueryError>((outcome, trace))
            }
        });
        let outcomes = try_join_all(asked.collect::<Vec<_>>()).await?;
        let mut values = Vec::with_capacity(outcomes.len());
        for (outcome, trace) in outcomes {
            self.trace.absorb(trace);
            values.push(self.take(outcome));
        }
        Ok(values)
    }

    fn asking<'s>(&'s self, fan_out: &'s FanOut) -> FanOutCall<'s> {
        let &Self { ref topology, ref pinned, ref reached, ref options, operation, deadline, .. } = self;
        FanOutCall { topology, pinned, fan_out, options, operation, deadline, reached }
    }

    /// Sends a fan-out to the nodes, and hands on their answers as they arrive.
    pub(crate) async fn ask_in_parts(
        &mut self,
        fan_out: &FanOut,
        handing: &mut RecordDelivery,
    ) -> Result<DeliveryEnd, QueryError> {
        let &mut Self {
            ref topology,
            ref pinned,
            ref reached,
            ref options,
            operation,
            deadline,
            ref mut trace,
            ..
        } = self;
        let asking = FanOutCall { topology, pinned, fan_out, options, operation, deadline, reached };
        self.session.inner.executor.run_in_parts(&asking, trace, handing).await
    }

    /// Plans a fan-out without asking the nodes.
    pub(crate) fn plan(&self, fan_out: &FanOut) -> Result<PlannedFanOut, QueryError> {
        self.session.inner.executor.plan(&self.asking(fan_out))
    }

    /// Returns the controller, the policy and the hedging that would decide about a fan-out like this, whatever its
    /// keys are.
    pub(crate) fn outlook(&self, fan_out: &FanOut) -> Result<Outlook, QueryError> {
        Outlook::of(&self.session.inner.executor, &self.asking(fan_out))
    }

    /// Asks `required` different replicas for each key at the same time, and returns the values that they agree on.
    pub(crate) async fn ask_agreeing(
        &mut self,
        fan_out: &FanOut,
        required: u32,
    ) -> Result<Value, QueryError> {
        let executor = &self.session.inner.executor;
        let shares = executor.shares(&self.topology, &self.pinned, fan_out, required);
        // Only checked values can be compared.
        let options = &QueryOptions { proofs: Proofs::Everywhere, ..(*self.options).clone() };
        let reads = shares.iter().map(|share| {
            let mut trace = self.trace.beside();
            let (topology, operation, deadline) = (&*self.topology, self.operation, self.deadline);
            let reached = &self.reached;
            async move {
                let asking =
                    FanOutCall { topology, pinned: share, fan_out, options, operation, deadline, reached };
                executor.run(&asking, &mut trace).await.map(|outcome| (outcome, trace))
            }
        });
        let reads = try_join_all(reads.collect::<Vec<_>>()).await?;
        let mut answers = Vec::with_capacity(reads.len());
        for (RoundOutcome { value, missing, failures, .. }, trace) in reads {
            self.missing.extend(missing);
            self.failures.extend(failures);
            self.trace.absorb(trace);
            match value {
                Value::Records(records) => answers.push(records),
                other => return Ok(other),
            }
        }
        Ok(Value::Records(Records::agreed(answers)))
    }
}
