//! Stores of values in a running cluster: built with the engine, pushed over the wire.

use super::cluster::Cluster;
use kith_client::{QueryError, RouterClient};
use kith_engine::{KeyType, ValueType};
use kith_files::{ValuesBuilder, ValuesOptions};
use kith_types::{PartitionCount, StoreVersion};
use kith_wire::{documents::ComponentDocument, v1};
use std::path::PathBuf;

/// Makes a store of no version.
pub fn create(cluster: &Cluster, store: &str, key: KeyType, value: ValueType) {
    cluster.must(&["store", "create", store, "--key", key.name(), "--value", value.name()]);
}

/// Builds rows into the cluster's object store and has them served.
pub fn push(
    cluster: &Cluster,
    store: &str,
    types: (KeyType, ValueType),
    version: u64,
    rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
) {
    if let Err(error) = try_push(cluster, store, types, version, rows) {
        panic!("{error}");
    }
}

/// As [`push`], which may be refused. It tells of one byte, however large the version is.
pub fn try_push(
    cluster: &Cluster,
    store: &str,
    types: (KeyType, ValueType),
    version: u64,
    rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
) -> Result<(), QueryError> {
    push_built(cluster, store, &built(cluster, store, types, version, rows))
}

/// A version in the cluster's object store, as its push names it.
pub struct UploadedVersion {
    component: ComponentDocument,
}

/// Builds rows into the cluster's object store.
pub fn built(
    cluster: &Cluster,
    store: &str,
    types: (KeyType, ValueType),
    version: u64,
    rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
) -> UploadedVersion {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let topology = runtime.block_on(async {
        let router = connect(cluster).await.expect("the router answers");
        router.topology().await.expect("the router knows its topology").cluster
    });
    let out = PathBuf::from(&topology.object_store).join(store).join("values");
    let partitions = PartitionCount::new(topology.partitions).expect("a valid count");
    UploadedVersion { component: build(out, store, types, version, partitions, rows) }
}

/// Has a built version served. Asked again it is the same push.
pub fn push_built(cluster: &Cluster, store: &str, built: &UploadedVersion) -> Result<(), QueryError> {
    let version = built.component.version;
    let request = v1::PushRequest {
        store: store.to_owned(),
        push: format!("{store}-{version}"),
        who: "tests".to_owned(),
        components: serde_json::to_vec(&[&built.component]).expect("documents are JSON").into(),
        version,
        ..Default::default()
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let router = connect(cluster).await?;
        let mut steps = router.push_store(request).await?;
        loop {
            match steps.message().await {
                Ok(Some(step)) if step.committed_version != 0 => return Ok(()),
                Ok(Some(_)) => {}
                Ok(None) => panic!("the push ended without a word"),
                Err(status) => return Err(QueryError::from_status(&status)),
            }
        }
    })
}

async fn connect(cluster: &Cluster) -> Result<RouterClient, QueryError> {
    let addr = cluster.ready()["router"].as_str().expect("an address").to_owned();
    RouterClient::connect(&[addr]).await
}

fn build(
    out: PathBuf,
    store: &str,
    (key, value): (KeyType, ValueType),
    version: u64,
    partitions: PartitionCount,
    rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
) -> ComponentDocument {
    let options =
        ValuesOptions { key, value, ..ValuesOptions::new(store, StoreVersion(version), partitions, out) };
    let mut builder = ValuesBuilder::new(options).expect("a build");
    for (key, value) in rows {
        builder.row(&key, &value).expect("a row of the store");
    }
    let (manifest, summary) = builder.finish(&mut |_| {}).expect("built");
    ComponentDocument {
        name: "values".to_owned(),
        role: "values".to_owned(),
        version,
        manifest_hash: manifest.hash(),
        columns: Vec::new(),
        members: summary.counts.records,
        edges: 0,
        bytes: 1,
        loaded_at: 0,
        schema: None,
        folder: None,
        url: None,
    }
}
