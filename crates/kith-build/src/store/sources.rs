//! Files whose bytes are counted while they are read, so that progress can be told.

use kith_rows::RowSource;
use std::{
    fs::File,
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A file whose bytes are counted while they are read.
pub(super) struct Counted {
    pub(super) file: Box<dyn RowSource>,
    /// Bytes of the files before it.
    pub(super) before: u64,
    pub(super) read: Arc<AtomicU64>,
}

impl RowSource for Counted {
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
        // Read in place, from its end: it counts when the next one is opened.
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
