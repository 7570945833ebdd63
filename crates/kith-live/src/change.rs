//! What one position of a log changed, as replicas apply it to their caches and adjacency.

use crate::{Association, ListKey, Object};

/// Everything that one position changed. A change without effects takes up a position and changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// What changed, in order; each object and each association once.
    pub effects: Vec<Effect>,
}

/// One object or association that changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// An object was written.
    Object(Object),
    /// An object was written whose fields are too large for a change record: they are read from the database.
    LargeObject(u64),
    /// An object is gone.
    NoObject(u64),
    /// An association was written.
    Association {
        /// Its list.
        list: ListKey,
        /// What it is now.
        now: Association,
        /// Its time before; `None` if it was not there.
        was: Option<u64>,
        /// The length of the list now.
        count: u64,
    },
    /// An association is gone. It was there before.
    NoAssociation {
        /// Its list.
        list: ListKey,
        /// The object that it led to.
        id2: u64,
        /// Its time before.
        was: u64,
        /// The length of the list now.
        count: u64,
    },
}

/// An object with more bytes than this is not part of change records.
pub const CHANGE_OBJECT_BYTES_MAX: usize = 4 << 10;
