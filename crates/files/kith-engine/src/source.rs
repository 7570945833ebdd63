//! The sources of fetches: a folder, an object store, a peer.

use crate::proof::{CHUNK_BYTES, TURN_BYTES, give_way};
use std::error::Error;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The bytes of one request to another machine.
pub const REMOTE_PIECE_BYTES: usize = 4 << 20;

/// A place that holds the objects of built versions: `manifest.json` and packs. Calls block, and several threads call at a
/// time. The source retries by itself, but nothing that it returns is trusted: the caller verifies all bytes.
pub trait Source: Send + Sync {
    /// Reads from `offset` on until `into` is full or the object ends. Returns the number of bytes read. Fewer than asked
    /// for means that the object ends there; 0 means that it ends at or before `offset`.
    ///
    /// # Errors
    /// If the object is missing or cannot be read.
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError>;

    /// The size of an object, if it is known without reading the object.
    ///
    /// # Errors
    /// Those of [`Source::read`].
    fn object_bytes(&self, _object: &str) -> Result<Option<u64>, ObjectError> {
        Ok(None)
    }

    /// The best size of one request for a part of a large file. It should be large if each request has a noticeable
    /// latency. Otherwise it should be small, so that bytes are still in the processor's caches when they are verified.
    fn piece_bytes(&self) -> usize {
        REMOTE_PIECE_BYTES
    }
}

/// Opens a regular file; `None` for anything else. Reading a pipe may block forever, and a device has no end.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// The reason why an object cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ObjectError {
    /// The object does not exist.
    #[error("the source has no {object}")]
    Missing { object: String },
    /// The name exists, but is not a regular file.
    #[error("{object} of the source is no regular file")]
    NoFile { object: String },
    /// The source refused or did not answer.
    #[error("cannot read {object} from the source")]
    Failed {
        object: String,
        /// The source's error.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// A folder on this machine as a source.
#[derive(Clone, Debug)]
pub struct FolderSource {
    dir: PathBuf,
}

impl FolderSource {
    /// The source for the folder of one version.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }
}

impl Source for FolderSource {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => ObjectError::Missing { object: object.to_owned() },
            _ => ObjectError::Failed { object: object.to_owned(), source: source.into() },
        };
        let Some(file) = open_regular(&self.dir.join(object)).map_err(failed)? else {
            return Err(ObjectError::NoFile { object: object.to_owned() });
        };
        let mut done = 0;
        while done < into.len() {
            let end = into.len().min(done + TURN_BYTES);
            match file.read_at(&mut into[done..end], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => {
                    done += count;
                    give_way();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(done)
    }

    fn object_bytes(&self, object: &str) -> Result<Option<u64>, ObjectError> {
        Ok(std::fs::metadata(self.dir.join(object)).ok().map(|found| found.len()))
    }

    fn piece_bytes(&self) -> usize {
        CHUNK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FetchError;
    use crate::files::MANIFEST_NAME;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let source = FolderSource::new(folder.path());
        mknodat(CWD, folder.path().join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("device")).unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        for name in ["pipe", "device", "folder"] {
            let refused = source.read(name, 0, &mut [0; 8]).unwrap_err();
            assert!(matches!(refused, ObjectError::NoFile { .. }), "{name}: {refused}");
        }
    }

    #[test]
    fn a_manifest_that_is_too_long_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join(MANIFEST_NAME)).unwrap();
        // The file consists of a hole.
        file.set_len(2 << 30).unwrap();
        let refused = super::super::read_manifest(&FolderSource::new(folder.path()), None).unwrap_err();
        assert!(matches!(refused, FetchError::Damaged(_)), "{refused:?}");
        let message = refused.to_string();
        assert!(message.contains("2147483648"), "{message}");
    }
}
