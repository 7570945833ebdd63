//! A source that counts reads and fails, and a fetch from any source whose progress is checked.

use kith_engine::{FetchError, FetchOptions, FetchProgress, FolderSource, ObjectError, Source, fetch};
use kith_types::PartitionId;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts reads, and fails from the `fails_from`-th read on.
pub struct Flaky {
    inner: FolderSource,
    reads: AtomicU64,
    fails_from: u64,
    /// The reads: object, offset, bytes.
    pub asked: Mutex<Vec<(String, u64, usize)>>,
}

impl Flaky {
    pub fn new(dir: &Path, fails_from: u64) -> Self {
        let (inner, reads) = (FolderSource::new(dir), AtomicU64::new(0));
        Self { inner, reads, fails_from, asked: Mutex::default() }
    }

    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }
}

impl Source for Flaky {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        self.asked.lock().unwrap().push((object.to_owned(), offset, into.len()));
        if self.reads.fetch_add(1, Ordering::SeqCst) >= self.fails_from {
            return Err(ObjectError::Failed { object: object.to_owned(), source: "403".into() });
        }
        self.inner.read(object, offset, into)
    }
}

/// Fetches, and checks the progress that is reported.
pub fn pull(
    source: &dyn Source,
    target: &Path,
    partitions: &[PartitionId],
    options: &FetchOptions,
) -> Result<FetchProgress, FetchError> {
    let mut last = FetchProgress::default();
    fetch(source, target, partitions, options, &mut |progress| {
        assert!(last.bytes_done <= progress.bytes_done && progress.bytes_done <= progress.bytes);
        last = progress.clone();
        ControlFlow::Continue(())
    })?;
    assert_eq!((last.bytes_done, last.files_done), (last.bytes, last.files));
    Ok(last)
}
