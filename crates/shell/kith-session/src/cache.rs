//! The one seam for caches in front of the nodes (`docs/design/0001-seams.md`). A session offers every fan-out and every
//! network of a query to its caches before it asks the nodes, and gives back what the nodes answer. It does the asking,
//! the waiting and the refreshing, so a cache only knows and keeps, and never calls the session.

use futures::future::BoxFuture;
use kith_operators::{Network, NetworkKey, Value};
use kith_query::{CacheMode, FanOut, QueryError};
use kith_topology::PinnedState;
use std::sync::Arc;

/// The pinned state that a query reads, and how its caller wants caches to be used.
#[derive(Clone, Copy)]
pub struct CacheUse<'a> {
    /// The graph or store, at one version.
    pub pinned: &'a PinnedState,
    /// Whether to use, bypass or refresh caches.
    pub mode: CacheMode,
}

/// A cache in front of the nodes.
///
/// Contract: a result that is taken was kept for the same question about the same pinned state.
pub trait ResultCache: Send + Sync + 'static {
    /// Takes what is known of the result of a fan-out.
    fn fan_out(&self, _at: CacheUse<'_>, _fan_out: &FanOut) -> CacheLookup<FanOut, Value> {
        CacheLookup::Nothing
    }

    /// Takes what is known of a member's network, which several fan-outs make up.
    fn network(&self, _at: CacheUse<'_>, _key: &NetworkKey) -> CacheLookup<NetworkKey, Arc<Network>> {
        CacheLookup::Nothing
    }
}

/// The knowledge of a cache about the answer to a question.
pub enum CacheLookup<Question, Answer> {
    /// The cache does not keep answers to such questions.
    Nothing,
    /// The cache keeps such answers, but is switched off, or the caller bypasses it.
    Bypassed,
    /// The whole answer.
    Whole(Answer),
    /// The whole answer, which is old. With a keeper, the session asks again in the background.
    Stale(Answer, Option<Box<dyn Keeper<Answer>>>),
    /// A part of the answer, or nothing yet. The session asks for the rest, and the keeper makes the whole answer of it.
    Rest {
        /// The question without what is known.
        question: Question,
        /// The number of keys that are known.
        known_keys: usize,
        /// Receives the rest of the answer.
        keeper: Box<dyn Keeper<Answer>>,
    },
    /// Another query is asking. The session waits, but not beyond the query's deadline.
    Awaited(BoxFuture<'static, CacheLookup<Question, Answer>>),
    /// The other query that asked has failed.
    Failed(QueryError),
}

/// Receives what the nodes answer to a question. It is dropped without a call if they were not asked to the end, for
/// example because the caller left.
pub trait Keeper<Answer>: Send {
    /// Keeps an answer, and adds to it what was known before. An answer that is not complete lacks partitions.
    fn keep(self: Box<Self>, answer: Answer, is_complete: bool) -> Answer;

    /// Learns why the nodes did not answer.
    fn fail(self: Box<Self>, _error: &QueryError) {}
}

/// Asks caches in turn; the first that keeps answers to such questions decides.
pub(crate) fn first_known<Question, Answer>(
    caches: &[Arc<dyn ResultCache>],
    take: impl Fn(&dyn ResultCache) -> CacheLookup<Question, Answer>,
) -> CacheLookup<Question, Answer> {
    let known = caches.iter().map(|cache| take(&**cache));
    known.into_iter().find(|cached| !matches!(cached, CacheLookup::Nothing)).unwrap_or(CacheLookup::Nothing)
}
