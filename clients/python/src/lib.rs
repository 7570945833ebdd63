//! The Rust half of Kith's Python client: `kith-client` and `kith-session` behind the stable ABI of Python 3.11
//! (`docs/design/0013-python-client.md`). Names, defaults and builders are in `python/kith`. Here, `error` decides which
//! exception class an error code gets; all else is converted and passed on.

#[cfg(target_endian = "big")]
compile_error!("records are little-endian, and Python sees their vectors without conversion");

mod answered;
mod ask;
mod batch;
mod build;
mod call;
mod client;
mod entry;
mod error;
mod fields;
mod footer;
mod from_python;
mod graph;
mod keys;
mod live;
mod options;
mod plan;
mod predicate;
mod record;
mod security;
mod shared;
mod stream;
mod to_python;
mod value;

/// The native part of the package `kith`. Import `kith` instead.
#[pyo3::pymodule]
mod _kith {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        batch::Batch,
        build::{build_graph, build_store},
        call::{Call, leave},
        client::{Client, connect},
        entry::Entry,
        graph::operations,
        plan::Plan,
        record::Record,
        stream::Stream,
    };

    /// Configures the runtime before the first request.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::call::init();
        module.add("ERROR_CLASSES", crate::error::classes())
    }
}
