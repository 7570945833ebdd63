//! How far a build is.

use crate::graph::LoadProgress;

/// How far a build is, as it is told while it runs; often enough for a bar, never more than once in a thousand rows.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// Files of a graph are read, or its components are written.
    Graph(LoadProgress<'a>),
    /// Rows of a store are read or written.
    Rows {
        /// `reading` or `writing`.
        stage: &'static str,
        /// Rows of this stage so far.
        rows: u64,
        /// How much is done, in the unit of `total`.
        done: u64,
        /// Bytes of the files or rows in all; 0 if that is not known.
        total: u64,
    },
    /// Bytes are copied, uploaded or downloaded.
    Bytes {
        /// What happens to them, in words.
        stage: &'a str,
        /// Bytes so far.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
}

impl Progress<'_> {
    /// Rows of a store that are being written.
    pub(crate) fn writing(done: u64, total: u64) -> Self {
        Progress::Rows { stage: "writing", rows: done, done, total }
    }
}

/// Called with how far a build is. The build waits for it. It is called by one thread at a time, which need not be the one that builds.
pub type OnProgress<'t> = dyn FnMut(Progress<'_>) + Send + 't;
