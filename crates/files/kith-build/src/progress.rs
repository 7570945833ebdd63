//! The progress of a build.

use crate::rows::graph::ReadProgress;
use kith_files::BuildProgress;

/// The progress of a running build. It is reported often enough for a progress bar, but at most once per thousand rows.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// Files of a graph are read, or its components are written.
    Graph(LoadProgress<'a>),
    /// Rows of a store are read or written.
    Rows {
        /// `reading` or `writing`.
        stage: &'static str,
        /// The number of rows of this stage so far.
        rows: u64,
        /// The amount done, in the unit of `total`.
        done: u64,
        /// The total number of bytes of the files, or of rows; 0 if it is not known.
        total: u64,
    },
    /// Bytes are copied, uploaded or downloaded.
    Bytes {
        /// A description of the stage.
        stage: &'a str,
        /// The number of bytes so far.
        done: u64,
        /// The total number of bytes.
        total: u64,
    },
}

impl Progress<'_> {
    /// The progress of writing the rows of a store.
    pub(crate) fn writing(done: u64, total: u64) -> Self {
        Progress::Rows { stage: "writing", rows: done, done, total }
    }
}

/// The progress of loading a graph.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum LoadProgress<'a> {
    /// A file is being read; once per block.
    Reading(&'a ReadProgress),
    /// A component's files are being written; once per partition.
    Building {
        component: &'a str,
        /// The progress of the component.
        progress: BuildProgress,
    },
}

/// Called with the progress of a build, which waits for it. It is called by one thread at a time, which need not be the one
/// that builds.
pub type OnProgress<'t> = dyn FnMut(Progress<'_>) + Send + 't;
