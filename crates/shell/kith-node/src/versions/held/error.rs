//! The reasons why a version cannot be prepared.

use kith_cluster::data_dir::DataDirError;
use kith_engine::{FetchError, OpenError};
use kith_files::objects::PlaceError;
use thiserror::Error;

/// The reason why a component version cannot be prepared.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum PrepareError {
    /// The files cannot be fetched or fail their checks.
    #[error("fetch component {component:?} version {version}")]
    Fetch {
        component: String,
        version: u64,
        #[source]
        source: FetchError,
    },
    /// It is unknown where the files are.
    #[error("find component {component:?} version {version}")]
    Place {
        component: String,
        version: u64,
        #[source]
        source: Box<PlaceError>,
    },
    /// The files are here but cannot be opened.
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
    /// The caller has given up.
    #[error("the preparation of version {version} of store {store:?} was given up")]
    GivenUp { store: String, version: u64 },
    /// This release does not know this kind of store.
    #[error("store {store:?} holds what this release cannot serve")]
    Unsupported { store: String },
}
