//! Whether a file that was opened is still the one at its path, with the graph that it had.

use super::{SqliteOptions, check, connect, no_graph};
use crate::{DatabaseError, GraphIdentity};
use rusqlite::{Connection, OpenFlags};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// A file that is open, and the graph that it should have.
#[derive(Debug)]
pub(super) struct Home {
    pub file: PathBuf,
    pub identity: GraphIdentity,
    /// The device and the number of the file, which tell it from others.
    inode: (u64, u64),
}

impl Home {
    /// The file at this path, which must be there. Blocks.
    pub fn new(file: &Path, identity: GraphIdentity) -> Result<Self, DatabaseError> {
        let inode = inode(file).ok_or_else(|| no_graph(file))?;
        Ok(Self { file: file.to_owned(), identity, inode })
    }

    /// Fails as opening the file would, if it is not there any more, or is another one, or has another graph. `connection` is
    /// one to the file that was opened. Blocks.
    pub fn check(&self, connection: &Connection) -> Result<(), DatabaseError> {
        self.check_file()?;
        check(connection, &self.file, self.identity).map(drop)
    }

    /// Fails as opening the file would, if it is not there any more, or is another one. Blocks.
    pub fn check_file(&self) -> Result<(), DatabaseError> {
        match inode(&self.file) {
            Some(inode) if inode == self.inode => Ok(()),
            Some(_) => Err(self.replaced()),
            None => Err(no_graph(&self.file)),
        }
    }

    fn replaced(&self) -> DatabaseError {
        let opened = connect(&self.file, SqliteOptions::default(), OpenFlags::empty());
        match opened.and_then(|connection| check(&connection, &self.file, self.identity)) {
            Ok(_) => {
                let place = self.file.display();
                DatabaseError::unavailable(format!(
                    "{place} was replaced while it was open: start the process again"
                ))
            }
            Err(error) => error,
        }
    }
}

fn inode(file: &Path) -> Option<(u64, u64)> {
    fs::metadata(file).ok().map(|found| (found.dev(), found.ino()))
}
