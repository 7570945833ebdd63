//! Where a version is fetched from: a folder, an object store, a peer.

use crate::proof::{CHUNK_BYTES, TURN_BYTES, give_way};
use std::error::Error;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What is asked of another machine for at a time.
pub const REMOTE_PIECE_BYTES: usize = 4 << 20;

/// A place that holds built versions' objects: `manifest.json` and packs. Blocking; asked from several threads at a
/// time. Nothing that it gives is trusted: retries are its own business, proof is the caller's.
pub trait Source: Send + Sync {
    /// Reads from `offset` on until `into` is full or the object ends; gives the number of bytes read. Less than
    /// asked for means that the object ends there; 0 that it ends at or before `offset`.
    ///
    /// # Errors
    /// If the object is missing or cannot be read.
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError>;

    /// How long an object is, where that is known without reading it.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn object_bytes(&self, _object: &str) -> Result<Option<u64>, ObjectError> {
        Ok(None)
    }

    /// How much of a large file is best asked for at a time. Where each request takes its time, that is much; it should be little,
    /// so that what is proven is in the processor's caches still, where none does.
    fn piece_bytes(&self) -> usize {
        REMOTE_PIECE_BYTES
    }
}

/// Opens a regular file; `None` for anything else: reading a pipe may block for ever, and a device has no end.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// An object cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ObjectError {
    /// It is not there.
    #[error("the source has no {object}")]
    Missing { object: String },
    /// Something is there, but no file.
    #[error("{object} of the source is no regular file")]
    NoFile { object: String },
    /// The source refused or did not answer.
    #[error("cannot read {object} from the source")]
    Failed {
        object: String,
        /// What it says.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// A folder of this machine.
#[derive(Clone, Debug)]
pub struct FolderSource {
    dir: PathBuf,
}

impl FolderSource {
    /// The folder of one version.
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
        // Nothing but a hole.
        file.set_len(2 << 30).unwrap();
        let refused = super::super::read_manifest(&FolderSource::new(folder.path()), None).unwrap_err();
        assert!(matches!(refused, FetchError::Damaged(_)), "{refused:?}");
        let told = refused.to_string();
        assert!(told.contains("2147483648"), "{told}");
    }
}
