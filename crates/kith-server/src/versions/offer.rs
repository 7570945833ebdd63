//! What a push offers is somebody else's word: where its components lie, and that they are of the store that it names. Both are
//! checked before a node is told to fetch anything, and nothing is asked of a place that is not allowed.

use super::{Stores, push::Push};
use crate::{
    place::{self, PlaceError, UrlRefused},
    security::audit::{self, Refused},
};
use kith_engine::{FetchError, Manifest, ObjectError};
use kith_objects::{Location, Objects};
use kith_wire::documents::ComponentDocument;
use tonic::{Code, Status};

impl Stores {
    /// Checks that the places which a push names are listed for its store. Asks nobody.
    ///
    /// # Errors
    /// `url_not_allowed`, with a line in the audit log.
    pub(super) fn check_places(&self, push: &Push) -> Result<(), Status> {
        let location = self.topology.borrow().cluster.object_store.clone();
        let own: Location = location.parse().map_err(|error| unusable(&PlaceError::Location(error)))?;
        for url in push.components.iter().filter_map(|component| component.url.as_deref()) {
            place::check_url(url, &push.store, &own, &self.read_from).map_err(|error| {
                refused(push, "url_not_allowed", &error.to_string());
                url_not_allowed(&error)
            })?;
        }
        Ok(())
    }

    /// Checks that what lies in the places of a push is what it says, and of its store. Done after the push began, so that no
    /// clean-up takes away afterwards what was found here.
    ///
    /// # Errors
    /// `other_store`, with a line in the audit log; `version_damaged`, `object_store_unreachable`.
    pub(super) async fn check_manifests(&self, push: &Push) -> Result<(), Status> {
        let location = self.topology.borrow().cluster.object_store.clone();
        let (store, components) = (push.store.clone(), push.components.clone());
        let checked = tokio::task::spawn_blocking(move || {
            let objects = place::objects(&location).map_err(|error| unusable(&error))?;
            components.iter().try_for_each(|component| check_manifest(&objects, &store, component))
        });
        let checked = checked.await.unwrap_or_else(|error| Err(Status::internal(error.to_string())));
        checked.inspect_err(|status| {
            if kith_wire::detail_of(status).code == "other_store" {
                refused(push, "other_store", status.message());
            }
        })
    }
}

/// One line for those who watch for attacks.
fn refused(push: &Push, code: &str, reason: &str) {
    audit::refused(&Refused {
        subject: &push.who,
        method: "push",
        store: &push.store,
        code,
        reason,
        peer: None,
    });
}

fn check_manifest(objects: &Objects, store: &str, component: &ComponentDocument) -> Result<(), Status> {
    let place = place::of(objects, store, component).map_err(|error| unusable(&error))?;
    let manifest = place.manifest().map_err(|error| unreadable(&place, &error))?;
    if manifest.hash() != component.manifest_hash {
        let message = format!("{} is not the version that is pushed: its manifest differs", place.location());
        return Err(damaged(message));
    }
    if !manifest.is_of(store, &component.name) {
        return Err(other_store(&manifest, store, component));
    }
    Ok(())
}

fn other_store(manifest: &Manifest, store: &str, component: &ComponentDocument) -> Status {
    let of = manifest.store().map_or_else(|| "of no graph".to_owned(), |of| format!("of store {of:?}"));
    let message = format!(
        "component {:?} of the push is a version {of}, built as {:?}, not one of store {store:?}",
        component.name, manifest.component
    );
    kith_wire::status(Code::FailedPrecondition, "other_store", message, "build it again for this store")
}

fn url_not_allowed(refused: &UrlRefused) -> Status {
    let help = "copy the version to this machine and push its folder, or have the routers' `read-from` list the place: \
                docs/operating/object-stores.md";
    kith_wire::status(Code::PermissionDenied, "url_not_allowed", refused.to_string(), help)
}

fn unusable(error: &PlaceError) -> Status {
    let help = "see docs/operating/object-stores.md for the settings of object stores";
    kith_wire::status(Code::Unavailable, "object_store_unreachable", chain(error), help)
}

fn unreadable(place: &Objects, error: &FetchError) -> Status {
    let message = format!("{}: {}", place.location(), chain(error));
    match error {
        FetchError::Source(ObjectError::Missing { .. })
        | FetchError::Manifest(_)
        | FetchError::Damaged(_) => damaged(message),
        _ => {
            let help = "check that routers can reach it, and the endpoint and keys in their environment: \
                        docs/operating/object-stores.md";
            kith_wire::status(Code::Unavailable, "object_store_unreachable", message, help)
        }
    }
}

fn damaged(message: String) -> Status {
    kith_wire::status(
        Code::FailedPrecondition,
        "version_damaged",
        message,
        "nothing was swapped; push it again",
    )
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
