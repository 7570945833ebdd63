//! What all requests of a client share, including those that outlive it.

use kith_client::{QueryError, Service, StoreShape};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// How long the types of a store are cached: they change only if the store is dropped and created again.
const SHAPE_AGE_MAX: Duration = Duration::from_secs(10);
/// How many stores' types are cached, more than a program reads. Beyond this, the cache is emptied.
const SHAPES_MAX: usize = 1_024;

/// What all requests of a client share, including those that outlive it.
pub struct Shared {
    service: Box<dyn Service>,
    /// By store, and since when it is known.
    shapes: Mutex<HashMap<String, (Instant, StoreShape)>>,
}

impl Shared {
    /// Of a connection whose stores are not known yet.
    pub fn new(service: Box<dyn Service>) -> Self {
        Self { service, shapes: Mutex::default() }
    }

    /// Whom to ask.
    pub fn service(&self) -> &dyn Service {
        self.service.as_ref()
    }

    /// What a store's keys and values are, as a router said lately.
    ///
    /// # Errors
    /// If there is no such store, or nobody answers.
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

    /// Whatever failed, the store may be another one by now.
    pub fn forget(&self, store: &str) {
        self.lock().remove(store);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, StoreShape)>> {
        self.shapes.lock()
    }
}
