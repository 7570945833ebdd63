//! Fetching from another node instead of the object store.

use kith_cluster::PeerObjects;
use kith_engine::{ObjectError, Source};
use kith_net::security::Dialer;
use tonic::Status;

/// The most bytes that are requested from a peer at a time. Small requests let a throttle spread the bytes evenly.
const REQUEST_BYTES: usize = 256 << 10;

/// One component version on another node. Its reads block, so the threads of a runtime must not call them.
#[derive(Clone, Debug)]
pub struct PeerSource(PeerObjects);

impl PeerSource {
    /// Returns a source for a component of a store at the component's own version, on the node at `addr` (`host:port`). Sends no
    /// request yet.
    ///
    /// # Errors
    /// `InvalidArgument` if `addr` is not `host:port`.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn new(
        dialer: &Dialer,
        addr: &str,
        store: &str,
        component: &str,
        version: u64,
    ) -> Result<Self, Status> {
        PeerObjects::new(dialer, addr, store, component, version).map(Self)
    }
}

impl Source for PeerSource {
    fn piece_bytes(&self) -> usize {
        REQUEST_BYTES
    }

    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        match self.0.read(object, offset, into) {
            Ok(Some(count)) => Ok(count),
            Ok(None) => Err(ObjectError::Missing { object: object.to_owned() }),
            Err(status) => Err(ObjectError::Failed { object: object.to_owned(), source: status.into() }),
        }
    }
}
