//! The types of a graph on one node.
//!
//! A node learns of new types through the watch of the metadata store, which may be slower than the log of a partition. A
//! read that meets a type or schema that the node does not know waits for newer types.

use super::errors::LiveError;
use arc_swap::ArcSwap;
use kith_live::{Change, FieldsFault, GraphTypes};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::sync::Notify;

/// The time that a read waits for newer types. Usually they arrive within milliseconds.
const TYPES_WAIT: Duration = Duration::from_secs(2);

/// The types that a node knows.
pub(super) struct KnownTypes {
    now: ArcSwap<GraphTypes>,
    changed: Notify,
    /// The greatest number of a type in the changes that this node has read from logs.
    last_seen: AtomicU16,
}

impl KnownTypes {
    pub fn new(types: Arc<GraphTypes>) -> Self {
        Self { now: ArcSwap::new(types), changed: Notify::new(), last_seen: AtomicU16::new(0) }
    }

    pub fn set(&self, types: Arc<GraphTypes>) {
        self.now.store(types);
        self.changed.notify_waiters();
    }

    pub fn get(&self) -> Arc<GraphTypes> {
        self.now.load_full()
    }

    /// Notes the types in a change of a log.
    pub fn note(&self, change: &Change) {
        self.last_seen.fetch_max(change.last_type().0, Relaxed);
    }

    fn lacks_seen(&self, types: &GraphTypes) -> bool {
        types.last_number().0 < self.last_seen.load(Relaxed)
    }

    /// Waits, for a limited time, until the types are enough. Returns the types at the end of the wait.
    async fn when(&self, enough: impl Fn(&GraphTypes) -> bool) -> Arc<GraphTypes> {
        let wait = async {
            loop {
                let changed = self.changed.notified();
                let types = self.get();
                if enough(&types) {
                    return types;
                }
                changed.await;
            }
        };
        tokio::time::timeout(TYPES_WAIT, wait).await.unwrap_or_else(|_| self.get())
    }

    /// Decodes rows. Waits for newer types if a row has a type or a schema that this node does not know.
    pub async fn decoded<T>(
        &self,
        decode: impl Fn(&GraphTypes) -> Result<T, FieldsFault>,
    ) -> Result<T, FieldsFault> {
        let lacks =
            |decoded: &Result<T, FieldsFault>| decoded.as_ref().is_err_and(FieldsFault::needs_newer_types);
        let decoded = decode(&self.get());
        match lacks(&decoded) {
            true => decode(&*self.when(|types| !lacks(&decode(types))).await),
            false => decoded,
        }
    }

    /// Returns the types. In an open graph, waits until they contain all types in the changes that this node has read. An
    /// association type that is not among them had no associations at the points of the logs that this node has reached.
    ///
    /// # Errors
    /// [`LiveError::OldTypes`] if the types do not arrive for some time.
    pub async fn of_log(&self) -> Result<Arc<GraphTypes>, LiveError> {
        let types = self.get();
        if !types.open || !self.lacks_seen(&types) {
            return Ok(types);
        }
        let types = self.when(|types| !self.lacks_seen(types)).await;
        if self.lacks_seen(&types) { Err(LiveError::OldTypes) } else { Ok(types) }
    }

    /// Returns the types. In an open graph, waits for a limited time until they have a type that a caller names.
    pub async fn containing(&self, has: impl Fn(&GraphTypes) -> bool) -> Arc<GraphTypes> {
        let types = self.get();
        if !types.open || has(&types) { types } else { self.when(has).await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_live::{Effect, Label, ListKey, TypeId, TypeKind};

    fn open() -> GraphTypes {
        GraphTypes::new(1, &"open = true".parse().unwrap()).unwrap()
    }

    fn with(types: &GraphTypes, name: &str) -> GraphTypes {
        types.with_labels(&[Label { kind: TypeKind::Object, name: name.to_owned() }]).unwrap().0
    }

    #[tokio::test]
    async fn a_wait_ends_with_the_types_that_it_waits_for() {
        let known = Arc::new(KnownTypes::new(Arc::new(open())));
        let waiting = Arc::clone(&known);
        let wait = tokio::spawn(async move { waiting.when(|types| types.object("b").is_some()).await });
        for name in ["a", "b"] {
            tokio::task::yield_now().await;
            known.set(Arc::new(with(&known.get(), name)));
        }
        assert_eq!(wait.await.unwrap().objects.len(), 2);
    }

    #[tokio::test]
    async fn a_wait_ends_although_the_types_never_arrive() {
        let known = KnownTypes::new(Arc::new(open()));
        assert!(known.when(|types| types.object("a").is_some()).await.objects.is_empty());
    }

    #[test]
    fn types_in_the_log_that_are_unknown_are_noticed() {
        let known = KnownTypes::new(Arc::new(with(&open(), "a")));
        let deleted = |number| {
            let list = ListKey { id1: 1, kind: TypeId(number) };
            Change { effects: vec![Effect::NoAssociation { list, id2: 2, was: 3, count: 0 }] }
        };
        known.note(&deleted(1));
        assert!(!known.lacks_seen(&known.get()));
        known.note(&deleted(2));
        known.note(&deleted(1));
        assert!(known.lacks_seen(&known.get()));
        known.set(Arc::new(with(&known.get(), "b")));
        assert!(!known.lacks_seen(&known.get()));
    }
}
