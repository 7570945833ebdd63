//! The fan-outs and networks of a query, as far as caches do not know them.

use super::Run;
use crate::{
    Session,
    cache::{CacheLookup, CacheUse, Keeper, first_known},
};
use futures::{FutureExt, future::BoxFuture};
use kith_net::{WorkKind, in_turns_once_long, slot};
use kith_operators::{Network, NetworkKey, Value};
use kith_query::{FanOut, GraphAnswer, NetworkQuery, QueryError, QueryMachine};
use kith_topology::PinnedState;
use kith_types::OperationName;
use std::sync::Arc;

/// As [`Run::round`]; the answer shows every write that was confirmed before. Further rounds are as they were.
pub(crate) async fn latest_round(run: &mut Run<'_>, fan_out: &FanOut) -> Result<Value, QueryError> {
    let before = (run.options.critical, run.options.partial);
    run.read_latest();
    let answered = run.round(fan_out).await;
    let options = run.options.to_mut();
    (options.critical, options.partial) = before;
    answered
}

impl Run<'_> {
    /// Runs one fan-out. What caches know of its result is not fetched.
    pub(crate) async fn round(&mut self, fan_out: &FanOut) -> Result<Value, QueryError> {
        let at = CacheUse { pinned: &self.pinned, mode: self.options.cache_mode() };
        let cached = first_known(&self.session.inner.caches, |cache| cache.fan_out(at, fan_out));
        match self.settled(cached).await? {
            CacheLookup::Whole(value) => {
                self.trace.cached_keys(fan_out.scope.key_count().unwrap_or(1));
                Ok(value)
            }
            CacheLookup::Stale(value, keeper) => {
                self.trace.cached_keys(fan_out.scope.key_count().unwrap_or(1));
                if let Some(keeper) = keeper {
                    let (fan_out, session) = (fan_out.clone(), self.session.clone());
                    let ask: Ask<Value> = Box::new(|run| async move { run.ask(&fan_out).await }.boxed());
                    refresh_in_background(session, Arc::clone(&self.pinned), self.operation, keeper, ask);
                }
                Ok(value)
            }
            CacheLookup::Rest { question, known_keys, keeper } => {
                self.trace.cached_keys(known_keys);
                let missing = self.missing.len();
                let fetched = self.ask(&question).await;
                kept(keeper, fetched, self.missing.len() == missing)
            }
            _ => self.ask(fan_out).await,
        }
    }

    /// The network of a member.
    pub(super) async fn network(&mut self, key: NetworkKey) -> Result<Arc<Network>, QueryError> {
        let at = CacheUse { pinned: &self.pinned, mode: self.options.cache_mode() };
        let cached = first_known(&self.session.inner.caches, |cache| cache.network(at, &key));
        match &cached {
            CacheLookup::Nothing | CacheLookup::Failed(_) => {}
            CacheLookup::Bypassed => self.trace.cache("bypass"),
            CacheLookup::Whole(_) => self.trace.cache("hit"),
            CacheLookup::Stale(..) => self.trace.cache("stale"),
            CacheLookup::Rest { .. } => self.trace.cache("miss"),
            CacheLookup::Awaited(_) => self.trace.cache("joined"),
        }
        match self.settled(cached).await? {
            CacheLookup::Whole(network) => Ok(network),
            CacheLookup::Stale(network, keeper) => {
                if let Some(keeper) = keeper {
                    let session = self.session.clone();
                    let ask: Ask<Arc<Network>> = Box::new(|run| run.fetch_network(key));
                    let operation = NetworkQuery::NAME;
                    refresh_in_background(session, Arc::clone(&self.pinned), operation, keeper, ask);
                }
                Ok(network)
            }
            CacheLookup::Rest { question, keeper, .. } => {
                let fetched = self.fetch_network(question).await;
                kept(keeper, fetched, self.missing.is_empty())
            }
            _ => self.fetch_network(key).await,
        }
    }

    /// Waits for something until the deadline of the query.
    async fn within_deadline<T>(&self, awaited: impl Future<Output = T>) -> Result<T, QueryError> {
        let late = |_| QueryError::DeadlineExceeded { deadline_ms: self.allowed_ms() };
        tokio::time::timeout_at(self.deadline.into(), awaited).await.map_err(late)
    }

    /// Waits for what another query fetches.
    async fn settled<Question, Answer>(
        &self,
        mut cached: CacheLookup<Question, Answer>,
    ) -> Result<CacheLookup<Question, Answer>, QueryError> {
        loop {
            cached = match cached {
                CacheLookup::Awaited(later) => self.within_deadline(later).await?,
                CacheLookup::Failed(error) => return Err(error),
                settled => return Ok(settled),
            }
        }
    }

    /// Fetches a member's network from the nodes (Moolle, Algorithm 2), once few enough others are being fetched: answers of
    /// nodes for all of them would otherwise be in memory at a time.
    fn fetch_network(&mut self, key: NetworkKey) -> BoxFuture<'_, Result<Arc<Network>, QueryError>> {
        async move {
            let _slot = self.within_deadline(slot(WorkKind::Networks)).await?;
            let (plan, workflow) = (self.network_plan(&key), self.options.workflow);
            match self.steps(QueryMachine::network(key, workflow, plan), false).await? {
                GraphAnswer::Network(answer) => answer.network.ok_or_else(|| QueryError::Internal {
                    detail: "a fetched network has no ids".to_owned(),
                }),
                other => Err(QueryError::Internal { detail: format!("a network was answered by {other:?}") }),
            }
        }
        .boxed()
    }
}

/// Gives what the nodes answered to the keeper, and returns the whole answer.
fn kept<Answer>(
    keeper: Box<dyn Keeper<Answer>>,
    fetched: Result<Answer, QueryError>,
    is_complete: bool,
) -> Result<Answer, QueryError> {
    match fetched {
        Ok(answer) => Ok(keeper.keep(answer, is_complete)),
        Err(error) => {
            keeper.fail(&error);
            Err(error)
        }
    }
}

/// A question that is asked in the background.
type Ask<Answer> =
    Box<dyn for<'r, 's> FnOnce(&'r mut Run<'s>) -> BoxFuture<'r, Result<Answer, QueryError>> + Send>;

/// Asks again, for a keeper. Nobody waits for it (Moolle, Algorithm 1, line 21). The keeper gets nothing if the graph is at
/// another version meanwhile.
fn refresh_in_background<Answer: Send + 'static>(
    session: Session,
    pinned: Arc<PinnedState>,
    operation: OperationName,
    keeper: Box<dyn Keeper<Answer>>,
    ask: Ask<Answer>,
) {
    tokio::spawn(async move {
        let at = async |run: &mut Run<'_>| match run.pinned().pin == pinned.pin {
            true => Some(ask(run).await.map(|answer| (answer, run.missing.is_empty()))).transpose(),
            false => Ok(None),
        };
        // Nobody waits for it, but others would wait for what it computes about many ids.
        match in_turns_once_long(session.in_background(&pinned.name, operation, at)).await {
            Ok(Some((answer, is_complete))) => drop(keeper.keep(answer, is_complete)),
            Ok(None) => {}
            Err(error) => keeper.fail(&error),
        }
    });
}
