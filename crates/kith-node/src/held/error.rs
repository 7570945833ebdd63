//! Why a version cannot be made ready.

use kith_engine::{FetchError, OpenError};
use kith_process::{data_dir::DataDirError, place::PlaceError};
use thiserror::Error;

/// A component version cannot be made ready.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum PrepareError {
    /// Its files cannot be pulled or do not pass their checks.
    #[error("fetch component {component:?} version {version}")]
    Fetch {
        component: String,
        version: u64,
        #[source]
        source: FetchError,
    },
    /// Nobody knows where its files are.
    #[error("find component {component:?} version {version}")]
    Place {
        component: String,
        version: u64,
        #[source]
        source: Box<PlaceError>,
    },
    /// Its files are here but cannot be opened.
    #[error("open component {component:?} version {version}")]
    Open {
        component: String,
        version: u64,
        #[source]
        source: OpenError,
    },
    /// Another process has taken the data directory, or it cannot be written.
    #[error("the data directory cannot be used any more")]
    Directory(#[source] DataDirError),
    /// Nobody waits for it any more.
    #[error("the preparation of version {version} of store {store:?} was given up")]
    GivenUp { store: String, version: u64 },
    /// This release cannot serve what the store holds.
    #[error("store {store:?} holds what this release cannot serve")]
    Unsupported { store: String },
}
