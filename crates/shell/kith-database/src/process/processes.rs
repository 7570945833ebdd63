//! The database processes of a cluster: their addresses, and the connections to them.

use kith_net::frames::Frames;
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};

/// Finds the current address of a database process by its id, from the metadata.
pub type ProcessLocator = Arc<dyn Fn(u32) -> Option<String> + Send + Sync>;

/// The database processes of a cluster. All graphs of a node or router share the connections to them.
pub struct DatabaseProcesses {
    locate: ProcessLocator,
    pub(super) frames: Arc<Frames>,
    /// The last known address of each process that was called.
    addrs: Mutex<HashMap<u32, String>>,
}

impl DatabaseProcesses {
    /// Returns the processes that `locate` finds. They are called over the connections of `frames`, which must not be used
    /// for anything else.
    pub fn new(locate: ProcessLocator, frames: Arc<Frames>) -> Self {
        Self { locate, frames, addrs: Mutex::default() }
    }

    /// Returns the current address of a process. If it has changed, releases the connection to the previous one.
    pub(super) fn addr(&self, database: u32) -> Option<String> {
        let addr = (self.locate)(database);
        let mut addrs = self.addrs.lock();
        let before = addrs.get(&database);
        if before != addr.as_ref() {
            if let Some(before) = before {
                self.frames.release(before);
            }
            match &addr {
                Some(addr) => addrs.insert(database, addr.clone()),
                None => addrs.remove(&database),
            };
        }
        addr
    }
}
