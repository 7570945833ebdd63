//! Looks at what one node holds, for administration: schemas, places of keys, all records or rows, damage.
//!
//! Nothing here retries or chooses a node: whoever asks wants this node's own word.

use kith_api::QueryError;
use kith_net::security::{Dialer, GrpcChannel};
use kith_wire::{
    MESSAGE_BYTES_MAX,
    v1::{self, inspect_client::InspectClient},
};
use std::time::Duration;
use tonic::{Status, Streaming};

/// How long a question that reads at most a record may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to one node, made when it is first used.
#[derive(Clone, Debug)]
pub struct Inspector {
    addr: String,
    client: InspectClient<GrpcChannel>,
}

impl Inspector {
    /// Of the node at `addr` (`host:port`).
    ///
    /// # Errors
    /// [`QueryError::Unreachable`] if that is no address.
    pub fn new(dialer: &Dialer, addr: &str) -> Result<Self, QueryError> {
        let channel = dialer.channel(addr).map_err(|status| unreachable(addr, status.message()))?;
        let client = InspectClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        Ok(Self { addr: addr.to_owned(), client })
    }

    /// The schema of the records of a version, as canonical JSON; its hash is for the caller to check.
    ///
    /// # Errors
    /// If the node does not hold the version, its values are no records, or it does not answer.
    pub async fn schema(&self, request: v1::SchemaRequest) -> Result<String, QueryError> {
        let mut client = self.client.clone();
        Ok(self.within(client.schema(request)).await?.schema)
    }

    /// Where a key's record lies on this node.
    ///
    /// # Errors
    /// If the node does not hold the key's partition of the version, it is damaged, or the node does not answer.
    pub async fn place(&self, request: v1::PlaceRequest) -> Result<v1::PlaceReply, QueryError> {
        let mut client = self.client.clone();
        self.within(client.place(request)).await
    }

    /// Every record of a partition. Read slowly and the node waits.
    ///
    /// # Errors
    /// If the node does not hold the partition of the version, or does not answer; damage comes in the stream.
    pub async fn records(
        &self,
        request: v1::RecordsRequest,
    ) -> Result<Streaming<v1::RecordsPiece>, QueryError> {
        let mut client = self.client.clone();
        self.within(client.records(request)).await
    }

    /// Has the node compare files and manifest; a finding per component comes in the stream, and progress.
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

    /// A page of the rows of a live graph.
    ///
    /// # Errors
    /// If the node does not hold the partition, the database does not answer, or the node does not.
    pub async fn scan(&self, request: v1::ScanRequest) -> Result<v1::ScanReply, QueryError> {
        let mut client = self.client.clone();
        self.within(client.scan(request)).await
    }

    /// What a status that came in a stream means.
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
        match tokio::time::timeout(PATIENCE, call).await {
            Ok(reply) => Ok(reply.map_err(|status| self.error(&status))?.into_inner()),
            Err(_) => Err(unreachable(&self.addr, &format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }
}

fn unreachable(addr: &str, reason: &str) -> QueryError {
    QueryError::NodeUnreachable { addr: addr.to_owned(), reason: reason.to_owned() }
}
