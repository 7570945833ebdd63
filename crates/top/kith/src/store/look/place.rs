//! `kith store where`: shows which nodes have a key, in which file, and which node answers now.

use super::replicas::{Replica, Replicas, unless_denied};
use crate::{
    connect::{self, TargetFlags},
    failure::{ErrorReport, Exit},
    output::{self, Format},
    table,
};
use clap::Args;
use futures::future::join_all;
use kith_client::{BatchKeys, QueryError, QueryOptions};
use kith_query::line::{KeyEncoding, StoreKeys};
use kith_schema::KeyType;
use kith_types::PartitionId;
use kith_wire::v1;
use serde::Serialize;
use serde_json::Value;

#[derive(Clone, Debug, Args)]
pub struct PlaceFlags {
    /// The store
    store: String,
    /// The key: a number, text or base64, depending on the store's key type
    key: String,
    /// How string or byte keys are written [default: text for strings, base64 for bytes]
    #[arg(long, value_enum, value_name = "ENCODING")]
    key_encoding: Option<KeyEncoding>,
}

/// The place of a key. The field names are a contract: see `docs/stores.md`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaceReply {
    pub store: String,
    #[serde(serialize_with = "kith_terminal::ids::key")]
    pub key: Value,
    pub version: u64,
    pub partition: u32,
    /// The node that answered when the key was read just now; `null` if none did.
    pub answers: Option<u32>,
    pub replicas: Vec<ReplicaReply>,
}

/// The place of the key on one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplicaReply {
    pub group: u32,
    pub node: u32,
    pub addr: String,
    /// The state of the node, as the router sees it: `up`, `down`, `coming back` or `unregistered`.
    pub node_state: String,
    /// Whether a push left the node out of this version.
    pub excluded: bool,
    /// The state of the key on the node: `FOUND`, `ABSENT` or `ERROR`.
    pub state: &'static str,
    /// The pack, a file in the version's folder; `null` if the node does not have the key.
    pub file: Option<String>,
    /// The offset in bytes of the record in the pack.
    pub offset: Option<u64>,
    /// The length of the value in bytes.
    pub length: Option<u64>,
    /// The logical file in the pack.
    pub chunk_set: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// Prints where a key is.
///
/// # Errors
/// If the key does not fit the store's key type, the router does not answer, or the caller may not ask. Other errors of a
/// node are part of the reply.
pub async fn run(target: &TargetFlags, format: Format, flags: PlaceFlags) -> anyhow::Result<Exit> {
    let service = connect::service(target).await?;
    let asked = StoreKeys {
        store: flags.store,
        keys: vec![Value::from(flags.key)],
        key_encoding: flags.key_encoding,
    };
    let shape = service.shape(&asked.store).await?;
    let keys = asked.of_type(shape.key)?;
    let replicas = Replicas::of(&connect::router(target).await?, &asked.store, None).await?;
    let (bytes, key) = match &keys {
        BatchKeys::Ids(ids) => (ids[0].to_le_bytes().to_vec(), Value::from(ids[0])),
        BatchKeys::Bytes(keys) => (keys.iter().next().unwrap_or_default().to_vec(), asked.keys[0].clone()),
    };
    let partition = partition_of(shape.key, &bytes, &replicas);
    let request =
        v1::PlaceRequest { store: asked.store.clone(), version: replicas.version.version, key: bytes.into() };
    let nodes = replicas.of_partition(partition);
    let placed = join_all(nodes.into_iter().map(|node| place_on(&replicas, node, request.clone()))).await;
    let placed = placed.into_iter().collect::<Result<Vec<_>, _>>()?;
    let options = QueryOptions { profile: true, partial: true, ..QueryOptions::default() };
    let answered = service.multi_get(&asked.store, &keys, &options).await.ok();
    let reply = PlaceReply {
        key,
        version: replicas.version.version,
        partition: partition.0,
        answers: answered.and_then(|answer| answered_by(&answer.profile?)),
        replicas: placed,
        store: asked.store,
    };
    output::print(format, &reply, table::look::place)?;
    let is_whole = reply.replicas.iter().all(|replica| replica.state != "ERROR");
    Ok(if is_whole { Exit::Done } else { Exit::Partial })
}

fn partition_of(key: KeyType, bytes: &[u8], replicas: &Replicas) -> PartitionId {
    let partition = key.partition(bytes, replicas.partition_count());
    partition.expect("a key of the store's type has a partition")
}

/// Returns the node whose answer was used.
fn answered_by(profile: &v1::Profile) -> Option<u32> {
    let mut requests = profile.rounds.iter().flat_map(|round| &round.requests);
    requests.rfind(|request| request.outcome == "ok").map(|request| request.node)
}

async fn place_on(
    replicas: &Replicas,
    replica: Replica,
    request: v1::PlaceRequest,
) -> Result<ReplicaReply, QueryError> {
    let asked = match replicas.inspector(&replica.addr) {
        Ok(node) => node.place(request).await,
        Err(error) => Err(error),
    };
    let (location, error) = match unless_denied(asked)? {
        Ok(location) => (Some(location), None),
        Err(error) => (None, Some(error)),
    };
    let found = location.as_ref().filter(|location| location.found);
    Ok(ReplicaReply {
        group: replica.group,
        node: replica.node,
        addr: replica.addr,
        node_state: replica.state,
        excluded: replica.excluded,
        state: match (&location, found) {
            (None, _) => "ERROR",
            (Some(_), Some(_)) => "FOUND",
            (Some(_), None) => "ABSENT",
        },
        file: found.map(|location| location.pack.clone()),
        offset: found.map(|location| location.pack_offset),
        length: found.map(|location| location.length),
        chunk_set: found.map(|location| location.file.clone()),
        error,
    })
}
