//! The state that all requests of a client share, including requests that outlive the client.

use kith_client::{QueryError, Service, StoreShape};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// The time for which the types of a store are cached. They change only if the store is dropped and created again.
const SHAPE_AGE_MAX: Duration = Duration::from_secs(10);
/// The maximum number of stores whose types are cached, which is more than a program reads. Beyond it, the cache is emptied.
const SHAPES_MAX: usize = 1_024;

/// The connection of a client, and a cache of the types of stores.
pub struct SharedConnection {
    service: Box<dyn Service>,
    /// The types by store, with the time at which they were read.
    shapes: Mutex<HashMap<String, (Instant, StoreShape)>>,
}

impl SharedConnection {
    /// Returns the state of a new connection.
    pub fn new(service: Box<dyn Service>) -> Self {
        Self { service, shapes: Mutex::default() }
    }

    /// Returns the service that answers requests.
    pub fn service(&self) -> &dyn Service {
        self.service.as_ref()
    }

    /// Returns the types of a store's keys and values, from the cache if they were read within [`SHAPE_AGE_MAX`].
    ///
    /// # Errors
    /// If there is no such store, or the cluster does not answer.
    pub async fn shape(&self, store: &str) -> Result<StoreShape, QueryError> {
        let known = self.lock().get(store).copied();
        if let Some((_, shape)) = known.filter(|(since, _)| since.elapsed() < SHAPE_AGE_MAX) {
            return Ok(shape);
        }
        let shape = self.service.shape(store).await?;
        let mut shapes = self.lock();
        if SHAPES_MAX <= shapes.len() {
            shapes.clear();
        }
        shapes.insert(store.to_owned(), (Instant::now(), shape));
        Ok(shape)
    }

    /// Removes a store from the cache. It is called after an error, because the store may have been replaced.
    pub fn forget(&self, store: &str) {
        self.lock().remove(store);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, StoreShape)>> {
        self.shapes.lock()
    }
}
