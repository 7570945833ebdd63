//! Answers questions about what a node holds: schemas, places of keys, all records or rows of a partition, damage.

use super::{
    export::Pieces,
    named::{seen, unknown_version, version_named},
    quota::NodeQuotas,
};
use crate::{
    live::LiveGraphs,
    repair::copies,
    repair::verify::{Depth, verify},
    versions::held::{HeldStores, VersionReader},
};
use futures::{StreamExt, stream::BoxStream};
use kith_cluster::{background, topology::TopologyReceiver};
use kith_engine::{OpenError, ValueError, ValuesReader};
use kith_types::{ErrorCode, PartitionId};
use kith_wire::{documents::ServedDocument, v1};
use std::{ops::ControlFlow, sync::Arc};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// The number of pieces that may wait for a slow reader. Beyond that, the node stops reading.
const PIECE_QUEUE: usize = 2;

/// Answers `Inspect` requests.
pub(crate) struct InspectService {
    pub node: u32,
    pub held: Arc<HeldStores>,
    pub topology: TopologyReceiver,
    pub quotas: Arc<NodeQuotas>,
    pub live: Arc<LiveGraphs>,
    /// The turns of verifying the object store's copy: one at a time.
    pub turns: Arc<Semaphore>,
}

impl InspectService {
    fn values(&self, store: &str, version: u64) -> Result<Arc<ValuesReader>, Status> {
        match self.held.open.get(store, version) {
            Some(VersionReader::Values(reader)) => Ok(reader),
            Some(VersionReader::Graph(_)) => Err(kith_wire::status(
                ErrorCode::NotValues,
                format!("store {store:?} holds a graph, which has no values by key"),
                "`kith store list` shows what stores hold",
            )),
            None => Err(kith_wire::status(
                ErrorCode::VersionUnavailable,
                format!("node {} does not hold version {version} of {store:?}", self.node),
                "ask another replica",
            )),
        }
    }

    fn place_of(&self, reader: &ValuesReader, key: &[u8]) -> Result<v1::PlaceReply, ValueError> {
        let location = reader.place_of(key)?;
        let value = reader.get(key)?;
        let pack = location.pack.as_deref().and_then(|pack| pack.file_name());
        Ok(v1::PlaceReply {
            partition: location.partition.0,
            found: value.is_some(),
            file: location.file.map(|file| file.to_string()).unwrap_or_default(),
            offset: location.offset,
            pack: pack.map(|pack| pack.to_string_lossy().into_owned()).unwrap_or_default(),
            pack_offset: location.pack_offset,
            length: value.map_or(0, |value| value.len() as u64),
        })
    }
}

#[tonic::async_trait]
impl v1::inspect_server::Inspect for InspectService {
    async fn schema(&self, request: Request<v1::SchemaRequest>) -> Result<Response<v1::SchemaReply>, Status> {
        let v1::SchemaRequest { store, version, .. } = request.into_inner();
        let reader = self.values(&store, version)?;
        let schema = reader.manifest().values().and_then(|values| values.schema.clone());
        let schema = schema.ok_or_else(|| {
            let message = format!("the values of store {store:?} at version {version} have no schema");
            kith_wire::status(ErrorCode::SchemaUnavailable, message, "only stores of records have schemas")
        })?;
        Ok(Response::new(v1::SchemaReply { schema }))
    }

    async fn place(&self, request: Request<v1::PlaceRequest>) -> Result<Response<v1::PlaceReply>, Status> {
        let v1::PlaceRequest { store, version, key } = request.into_inner();
        let reader = self.values(&store, version)?;
        // One key takes little enough time for the connection's own task.
        let location = self.place_of(&reader, &key).map_err(|error| refused(self.node, &error))?;
        Ok(Response::new(location))
    }

    async fn scan(&self, request: Request<v1::ScanRequest>) -> Result<Response<v1::ScanReply>, Status> {
        Ok(Response::new(self.live.scan(&request.into_inner()).await?))
    }

    type RecordsStream = BoxStream<'static, Result<v1::RecordsPiece, Status>>;

    async fn records(
        &self,
        request: Request<v1::RecordsRequest>,
    ) -> Result<Response<Self::RecordsStream>, Status> {
        let v1::RecordsRequest { store, version, partition, skip } = request.into_inner();
        let reader = self.values(&store, version)?;
        let (sender, receiver) = mpsc::channel(PIECE_QUEUE);
        let (node, quotas) = (self.node, Arc::clone(&self.quotas));
        background::spawn(move || {
            let mut pieces = Pieces::new(sender, quotas, store, skip);
            let read = reader.for_each(PartitionId(partition), |key, value| pieces.push(key, value));
            pieces.finish(read.map_err(|error| refused(node, &error)));
        });
        Ok(Response::new(ReceiverStream::new(receiver).boxed()))
    }

    type VerifyStream = BoxStream<'static, Result<v1::VerifyProgress, Status>>;

    async fn verify(
        &self,
        request: Request<v1::VerifyRequest>,
    ) -> Result<Response<Self::VerifyStream>, Status> {
        let request = request.into_inner();
        let topology = seen(&self.topology, request.revision).await?;
        let v1::VerifyRequest { store, version, .. } = &request;
        let store = version_named(&topology, store, *version)
            .ok_or_else(|| unknown_version(self.node, store, *version))?;
        let depth = if request.deep { Depth::Deep } else { Depth::Quick };
        let (sender, receiver) = mpsc::channel(PIECE_QUEUE);
        if request.object_store {
            let (held, topology) = (Arc::clone(&self.held), self.topology.clone());
            let check = copies::Check { node: self.node, held, topology, store, depth, sender };
            tokio::spawn(check.run(Arc::clone(&self.turns)));
            return Ok(Response::new(ReceiverStream::new(receiver).boxed()));
        }
        let held = Arc::clone(&self.held);
        background::spawn(move || verify_here(&held, &store, depth, &sender));
        Ok(Response::new(ReceiverStream::new(receiver).boxed()))
    }
}

/// Verifies this node's files of a version. Ends early if the caller disconnects.
fn verify_here(
    held: &HeldStores,
    store: &ServedDocument,
    depth: Depth,
    sender: &mpsc::Sender<Result<v1::VerifyProgress, Status>>,
) {
    let (mut done, owned) = (0, held.owned.of_store(store));
    for component in &store.components {
        let folder = held.folders.path(&store.name, &component.name, component.version);
        let looked = verify(&folder, component, &owned, depth, &mut |bytes| {
            done += bytes;
            // A slow reader misses progress reports, but never a finding.
            let _ = sender.try_send(Ok(v1::VerifyProgress { bytes_done: done, finding: None }));
            if sender.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let confirmed = looked.and_then(|found| held.repairer.confirm(store, component, found, false));
        let message = match confirmed {
            Ok(found) => Ok(v1::VerifyProgress { bytes_done: done, finding: Some(found.to_wire()) }),
            Err(error) => Err(not_looked_at(&error)),
        };
        let is_last = message.is_err();
        // The caller may have disconnected.
        if sender.blocking_send(message).is_err() || is_last {
            return;
        }
    }
}

fn refused(node: u32, error: &ValueError) -> Status {
    let message = format!("node {node}: {error}");
    match error {
        ValueError::Damaged(_) => {
            let help = "ask another replica; `kith store verify --deep` shows what is damaged";
            kith_wire::status(ErrorCode::Damaged, message, help)
        }
        ValueError::NotHeld { .. } => {
            let help = "refresh the routing table";
            kith_wire::status(ErrorCode::NotOwner, message, help)
        }
        _ => kith_wire::status(ErrorCode::WrongKeyType, message, "give a key of the store's key type"),
    }
}

fn not_looked_at(error: &OpenError) -> Status {
    let message = format!("this node lacks descriptors or memory to look at its files: {error}");
    kith_wire::status(ErrorCode::Overloaded, message, "ask again in a moment")
}
