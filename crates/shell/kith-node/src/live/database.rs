//! The database of a graph, and whether it works.

use super::errors::LiveError;
use kith_database::{Database, DatabaseError};
use kith_types::{LogPoint, PartitionId};
use parking_lot::Mutex;
use std::{ops::Deref, sync::Arc};

/// The database of one graph.
pub(super) struct GraphDatabase {
    database: Arc<dyn Database>,
    /// The error of the last call by which this node leads or follows a partition; `None` if the call succeeded.
    last_error: Mutex<Option<DatabaseError>>,
}

impl GraphDatabase {
    /// Returns an open database that is assumed to work.
    pub fn new(database: Arc<dyn Database>) -> Self {
        Self { database, last_error: Mutex::default() }
    }

    /// Records whether the database has done what it was asked.
    pub fn note(&self, error: Option<&DatabaseError>) {
        let mut last = self.last_error.lock();
        if last.as_ref() != error {
            *last = error.cloned();
        }
    }

    /// Returns why the database did not do what it was last asked, if it did not.
    pub fn last_error(&self) -> Option<DatabaseError> {
        self.last_error.lock().clone()
    }

    /// Reads the end of a partition's log.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn end_of(&self, partition: PartitionId) -> Result<LogPoint, LiveError> {
        let ends = self.database.points(vec![partition]).await?;
        Ok(ends.first().copied().unwrap_or_default())
    }
}

impl Deref for GraphDatabase {
    type Target = dyn Database;

    fn deref(&self) -> &Self::Target {
        &*self.database
    }
}
