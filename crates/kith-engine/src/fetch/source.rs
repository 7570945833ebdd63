//! Where a version is fetched from: a folder, an object store, a peer.

use crate::verify::{CHUNK_BYTES, TURN_BYTES, give_way};
use std::error::Error;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
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

    /// How much of a large file is best asked for at a time. Where each request takes its time, that is much; it should be little,
    /// so that what is proven is in the processor's caches still, where none does.
    fn piece_bytes(&self) -> usize {
        REMOTE_PIECE_BYTES
    }
}

/// An object cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// It is not there.
    #[error("the source has no {object}")]
    Missing {
        /// Its name.
        object: String,
    },
    /// The source refused or did not answer.
    #[error("cannot read {object} from the source")]
    Failed {
        /// Its name.
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
        let file = File::open(self.dir.join(object)).map_err(failed)?;
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

    fn piece_bytes(&self) -> usize {
        CHUNK_BYTES
    }
}
