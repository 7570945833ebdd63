//! Files that count the bytes that are read, to report progress.

use crate::rows::RowSource;
use std::{
    fs::File,
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A file that counts the bytes that are read from it.
pub(super) struct CountedFile {
    pub(super) file: Box<dyn RowSource>,
    /// The size of the previous files in bytes.
    pub(super) before: u64,
    pub(super) read: Arc<AtomicU64>,
}

impl RowSource for CountedFile {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn size(&self) -> Option<u64> {
        self.file.size()
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        self.read.store(self.before, Ordering::Relaxed);
        Ok(Box::new(CountedReader { inner: self.file.open()?, read: Arc::clone(&self.read) }))
    }

    fn open_file(&self) -> io::Result<Option<File>> {
        // A file that is read with random access is counted when the next one is opened.
        self.read.store(self.before, Ordering::Relaxed);
        self.file.open_file()
    }
}

struct CountedReader {
    inner: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for CountedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
