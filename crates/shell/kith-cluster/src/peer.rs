//! Objects of a version from a node that holds it: the client side of `Node.ReadObject`.

use kith_net::security::{Dialer, GrpcChannel};
use kith_types::ErrorCode;
use kith_wire::v1::{self, node_client::NodeClient};
use std::time::Duration;
use tokio::runtime::Handle;
use tonic::{Code, Status};

/// The time after which a peer that sends nothing is given up.
const TIMEOUT: Duration = Duration::from_secs(20);
/// A request whose connection broke is sent once more, because the peer may have closed an idle connection.
const TRIES: u32 = 2;

/// One component version on another node. Its reads block, so the threads of a runtime must not call them. It must be created
/// inside a runtime, whose threads receive what the peer sends.
#[derive(Clone, Debug)]
pub struct PeerObjects {
    runtime: Handle,
    client: NodeClient<GrpcChannel>,
    store: String,
    component: String,
    version: u64,
}

impl PeerObjects {
    /// Returns a source for the component `component` of `store` at its own version, on the node at `addr` (`host:port`).
    /// Sends no request yet.
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
        Ok(Self {
            runtime: Handle::current(),
            client: NodeClient::new(dialer.channel(addr)?),
            store: store.to_owned(),
            component: component.to_owned(),
            version,
        })
    }

    /// Reads from `offset` on until `into` is full or the object ends. Returns the number of bytes read; `None` if the node does
    /// not hold the object.
    ///
    /// # Errors
    /// If the node cannot be reached, sends nothing for too long, or refuses the request.
    pub fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<Option<usize>, Status> {
        let mut tries = 1;
        loop {
            match self.runtime.block_on(self.try_read(object, offset, into)) {
                Ok(count) => {
                    metrics::counter!("kith_node_fetched_from_peers_bytes_total").increment(count as u64);
                    return Ok(Some(count));
                }
                Err(status) if kith_wire::code_of(&status) == ErrorCode::ObjectNotHeld => return Ok(None),
                Err(status) if status.code() == Code::Unavailable && tries < TRIES => tries += 1,
                Err(status) => return Err(status),
            }
        }
    }

    async fn try_read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, Status> {
        let request = v1::ReadObjectRequest {
            store: self.store.clone(),
            component: self.component.clone(),
            version: self.version,
            object: object.to_owned(),
            offset,
            bytes: into.len() as u64,
        };
        let mut client = self.client.clone();
        let mut pieces = in_time(client.read_object(request)).await?.into_inner();
        let mut done = 0;
        while let Some(piece) = in_time(pieces.message()).await? {
            let end = done + piece.bytes.len();
            let slice = into.get_mut(done..end);
            slice
                .ok_or_else(|| Status::internal("the peer sent more bytes than were requested"))?
                .copy_from_slice(&piece.bytes);
            done = end;
        }
        Ok(done)
    }
}

async fn in_time<T>(step: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let late = |_| Status::deadline_exceeded(format!("the peer sent nothing for {} s", TIMEOUT.as_secs()));
    tokio::time::timeout(TIMEOUT, step).await.map_err(late)?
}
