//! The fan-outs of a query.

use super::Run;
use crate::{
    at_hand::{self, ListQuestion},
    executor::{Asking, Handed, Outlook, Planned, RoundOutcome},
    stream::RecordDelivery,
};
use futures::future::try_join_all;
use kith_api::{CacheMode, Proofs, QueryError, QueryOptions};
use kith_ops::{FanOut, Records, Value};

impl Run<'_> {
    /// Runs one fan-out. Lists that are cached are not fetched.
    pub(crate) async fn round(&mut self, fan_out: &FanOut) -> Result<Value, QueryError> {
        let session = self.session;
        let (Some(lists), Some(question)) = (&session.inner.caches.lists, ListQuestion::of(fan_out)) else {
            return self.ask(fan_out).await;
        };
        let at_hand = match self.cache_mode() {
            CacheMode::Use => lists.read(&self.pinned, question.edge, question.keys),
            CacheMode::Refresh => vec![None; question.keys.len()],
            CacheMode::Bypass => return self.ask(fan_out).await,
        };
        self.trace.cached_keys(at_hand.iter().flatten().count());
        let Some(rest) = at_hand::rest(fan_out, question.keys, &at_hand) else {
            return Ok(question.joined(at_hand, Vec::new()));
        };
        match self.ask(&rest).await? {
            Value::Lists(fetched) => {
                lists.keep(&self.pinned, question.edge, &at_hand::keepable(&rest, &fetched));
                Ok(question.joined(at_hand, fetched))
            }
            other => Ok(other),
        }
    }

    /// Sends a fan-out to the nodes.
    pub(crate) async fn ask(&mut self, fan_out: &FanOut) -> Result<Value, QueryError> {
        let &mut Self {
            ref topology,
            ref pinned,
            ref reached,
            options,
            operation,
            deadline,
            ref mut trace,
            ..
        } = self;
        let asking = Asking { topology, pinned, fan_out, options, operation, deadline, reached };
        let run = self.session.inner.executor.run(&asking, trace);
        let RoundOutcome { value, missing, failures, reached } = run.await?;
        self.reached = reached;
        self.missing.extend(missing);
        self.failures.extend(failures);
        Ok(value)
    }

    /// Sends a fan-out to the nodes, and hands on their answers as they arrive.
    pub(crate) async fn ask_in_parts(
        &mut self,
        fan_out: &FanOut,
        handing: &mut RecordDelivery,
    ) -> Result<Handed, QueryError> {
        let &mut Self {
            ref topology,
            ref pinned,
            ref reached,
            options,
            operation,
            deadline,
            ref mut trace,
            ..
        } = self;
        let asking = Asking { topology, pinned, fan_out, options, operation, deadline, reached };
        self.session.inner.executor.run_in_parts(&asking, trace, handing).await
    }

    /// Plans a fan-out without asking the nodes.
    pub(crate) fn plan(&self, fan_out: &FanOut) -> Result<Planned, QueryError> {
        self.session.inner.executor.plan(&self.asking(fan_out))
    }

    /// Who would decide about a fan-out like this, whatever its keys are.
    pub(crate) fn outlook(&self, fan_out: &FanOut) -> Result<Outlook, QueryError> {
        self.session.inner.executor.outlook(&self.asking(fan_out))
    }

    fn asking<'a>(&'a self, fan_out: &'a FanOut) -> Asking<'a> {
        let &Self { ref topology, ref pinned, ref reached, options, operation, deadline, .. } = self;
        Asking { topology, pinned, fan_out, options, operation, deadline, reached }
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
        let options = &QueryOptions { proofs: Proofs::Everywhere, ..self.options.clone() };
        let reads = shares.iter().map(|share| {
            let mut trace = self.trace.beside();
            let (topology, operation, deadline) = (&*self.topology, self.operation, self.deadline);
            let reached = &self.reached;
            async move {
                let asking =
                    Asking { topology, pinned: share, fan_out, options, operation, deadline, reached };
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
