//! Inspects what one node holds, for administration: schemas, places of keys, all records or rows, damage.
//!
//! Nothing here retries or chooses a node: the caller wants the answer of this node.

use kith_net::security::{Dialer, GrpcChannel};
use kith_query::QueryError;
use kith_wire::{
    MESSAGE_BYTES_MAX,
    v1::{self, inspect_client::InspectClient},
};
use std::time::Duration;
use tonic::{Status, Streaming};

/// The time limit of a question that reads at most one record.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to one node, opened on first use.
#[derive(Clone, Debug)]
pub struct Inspector {
    addr: String,
    client: InspectClient<GrpcChannel>,
}

impl Inspector {
    /// Creates an inspector of the node at `addr` (`host:port`).
    ///
    /// # Errors
    /// [`QueryError::Unreachable`] if `addr` is not an address.
    pub fn new(dialer: &Dialer, addr: &str) -> Result<Self, QueryError> {
        let channel = dialer.channel(addr).map_err(|status| unreachable(addr, status.message()))?;
        let client = InspectClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        Ok(Self { addr: addr.to_owned(), client })
    }

    /// The schema of a version's records, as canonical JSON. The caller must check its hash.
    ///
    /// # Errors
    /// If the node does not hold the version, the values are not records, or the node does not answer.
    pub async fn schema(&self, request: v1::SchemaRequest) -> Result<String, QueryError> {
        let mut client = self.client.clone();
        Ok(self.within(client.schema(request)).await?.schema)
    }

    /// Returns the position of a key's record on this node.
    ///
    /// # Errors
    /// If the node does not hold the key's partition of the version, it is damaged, or the node does not answer.
    pub async fn place(&self, request: v1::PlaceRequest) -> Result<v1::PlaceReply, QueryError> {
        let mut client = self.client.clone();
        self.within(client.place(request)).await
    }

    /// Streams every record of a partition. The node waits for a slow reader.
    ///
    /// # Errors
    /// If the node does not hold the partition of the version, or does not answer. Damage is reported in the stream.
    pub async fn records(
        &self,
        request: v1::RecordsRequest,
    ) -> Result<Streaming<v1::RecordsPiece>, QueryError> {
        let mut client = self.client.clone();
        self.within(client.records(request)).await
    }

    /// Lets the node compare its files with the manifest. The stream carries progress, and a finding for each component.
    ///
    /// # Errors
    /// If the node does not answer.
    pub async fn verify(
        &self,
        request: v1::VerifyRequest,
    ) -> Result<Streaming<v1::VerifyProgress>, QueryError> {
        let mut client = self.client.clone();
        self.within(client.verify(request)).await
    }

    /// Returns a page of the rows of a live graph.
    ///
    /// # Errors
    /// If the node does not hold the partition, or the node or its database does not answer.
    pub async fn scan(&self, request: v1::ScanRequest) -> Result<v1::ScanReply, QueryError> {
        let mut client = self.client.clone();
        self.within(client.scan(request)).await
    }

    /// Translates a status that came in a stream.
    pub fn error(&self, status: &Status) -> QueryError {
        match QueryError::from_status(status) {
            QueryError::Remote { help, message, .. } if help.is_empty() => unreachable(&self.addr, &message),
            other => other,
        }
    }

    async fn within<T>(
        &self,
        call: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, QueryError> {
        match tokio::time::timeout(TIMEOUT, call).await {
            Ok(reply) => Ok(reply.map_err(|status| self.error(&status))?.into_inner()),
            Err(_) => Err(unreachable(&self.addr, &format!("no answer within {} s", TIMEOUT.as_secs()))),
        }
    }
}

fn unreachable(addr: &str, reason: &str) -> QueryError {
    QueryError::NodeUnreachable { addr: addr.to_owned(), reason: reason.to_owned() }
}
