//! Verifies the object store's copy of a version that this node may have to fetch.

use super::origins::Origins;
use crate::repair::verify::{CopyLocation, Depth, unreachable, verify_built};
use kith_engine::OnVerify;
use kith_wire::{documents::ComponentDocument, v1};
use tokio_util::sync::CancellationToken;
use tonic::Status;

impl Origins {
    /// Verifies the object store's copy of a component of a store in this cluster. Its reads share the rate limit of this
    /// node's fetches, until `given_up` is cancelled. Blocks.
    ///
    /// # Errors
    /// The errors of [`verify_built`].
    pub(crate) fn verify_built(
        &self,
        (store, component, cluster): (&str, &ComponentDocument, &str),
        depth: Depth,
        given_up: &CancellationToken,
        on_bytes: &mut OnVerify<'_>,
    ) -> Result<v1::ComponentFinding, Status> {
        let help = "see docs/operating/object-stores.md for the settings of object stores";
        let objects = self.object_store_of(store, component).map_err(|error| unreachable(&error, help))?;
        let source = self.throttled(&objects).until(given_up);
        let cluster = component.url.is_none().then_some((&self.object_store, cluster));
        verify_built(
            &CopyLocation { objects: &objects, source: &source, cluster },
            component,
            depth,
            on_bytes,
        )
    }
}
