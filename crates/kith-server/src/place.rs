//! Where built components lie: in the cluster's object store, or where they say.

use kith_objects::{Access, LocationError, Objects, ObjectsError};
use kith_wire::documents::ComponentDocument;
use thiserror::Error;

/// A text that names no place, or a place whose settings are wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// It names none.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// Its settings are wrong.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
}

/// A place by its folder or URL, with the keys of this process's environment.
///
/// # Errors
/// [`PlaceError`]; nobody is asked yet.
pub fn objects(location: &str) -> Result<Objects, PlaceError> {
    Ok(Objects::open(&location.parse()?, &Access::from_environment())?)
}

/// The folder of a component's version.
///
/// # Errors
/// As [`objects`].
pub fn of(object_store: &Objects, store: &str, component: &ComponentDocument) -> Result<Objects, PlaceError> {
    match &component.url {
        Some(url) => objects(url),
        None => Ok(object_store.join(&format!("{store}/{}/{}", component.name, component.version))),
    }
}
