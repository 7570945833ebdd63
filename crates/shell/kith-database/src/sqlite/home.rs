//! Checks whether an opened file is still the one at its path, with the same graph.

use super::{SqliteOptions, check, connect, no_graph};
use crate::{DatabaseError, GraphIdentity};
use rusqlite::{Connection, OpenFlags};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// An open file, and the graph that it is expected to hold.
#[derive(Debug)]
pub(super) struct Home {
    pub file: PathBuf,
    pub identity: GraphIdentity,
    /// The device and inode number, which identify the file.
    inode: (u64, u64),
}

impl Home {
    /// Returns the file at this path, which must exist. Blocks.
    pub fn new(file: &Path, identity: GraphIdentity) -> Result<Self, DatabaseError> {
        let inode = inode(file).ok_or_else(|| no_graph(file))?;
        Ok(Self { file: file.to_owned(), identity, inode })
    }

    /// Checks that the file still exists, is the same file, and holds the same graph. Otherwise returns the error that
    /// opening the path would return. `connection` is a connection to the opened file. Blocks.
    pub fn check(&self, connection: &Connection) -> Result<(), DatabaseError> {
        self.check_file()?;
        check(connection, &self.file, self.identity).map(drop)
    }

    /// Checks that the file still exists and is the same file. Otherwise returns the error that opening the path would
    /// return. Blocks.
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
                let path = self.file.display();
                DatabaseError::unavailable(format!(
                    "{path} was replaced while it was open: start the process again"
                ))
            }
            Err(error) => error,
        }
    }
}

fn inode(file: &Path) -> Option<(u64, u64)> {
    fs::metadata(file).ok().map(|found| (found.dev(), found.ino()))
}
