//! The pushes that a router runs.

use super::push::Push;
use kith_topology::versions::{PushId, Refusal};
use kith_types::StoreVersion;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};
use tokio_util::sync::CancellationToken;

/// The pushes that this router runs now. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub(super) struct ActivePushes(Arc<Mutex<BTreeMap<PushId, ActivePush>>>);

/// A push that this router runs.
struct ActivePush {
    store: String,
    /// The token that is cancelled when the push is cancelled.
    cancelled: CancellationToken,
}

/// Registers a push as active on this router until it is dropped.
pub(super) struct PushEntry {
    pushes: ActivePushes,
    push: PushId,
    /// Cancels a push that no record knows yet, because its graph does not exist yet.
    pub cancelled: CancellationToken,
}

impl Drop for PushEntry {
    fn drop(&mut self) {
        self.pushes.0.lock().remove(&self.push);
    }
}

impl ActivePushes {
    /// Registers a push until the entry is dropped.
    ///
    /// # Errors
    /// [`Refusal::PushRunning`] if this router runs it already.
    pub fn enter(&self, push: &Push) -> Result<PushEntry, Refusal> {
        match self.0.lock().entry(push.push.clone()) {
            Entry::Vacant(free) => {
                let (store, cancelled) = (push.store.clone(), CancellationToken::new());
                free.insert(ActivePush { store, cancelled: cancelled.clone() });
                Ok(PushEntry { pushes: self.clone(), push: push.push.clone(), cancelled })
            }
            Entry::Occupied(_) => {
                let (push, who) = (push.push.clone(), push.who.clone());
                Err(Refusal::PushRunning { push, version: StoreVersion(0), who })
            }
        }
    }

    /// Whether this router runs the push.
    pub fn contains(&self, push: &PushId) -> bool {
        self.0.lock().contains_key(push)
    }

    /// Cancels a push of a store, if this router runs it. Returns whether it does.
    pub fn cancel(&self, store: &str, push: &PushId) -> bool {
        let active = self.0.lock();
        let of_store = active.get(push).filter(|active| active.store == store);
        of_store.inspect(|active| active.cancelled.cancel()).is_some()
    }
}
