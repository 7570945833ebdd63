//! The contract that every metadata store keeps: the embedded one, the embedded one over gRPC, and a real etcd.

use futures::StreamExt;
use kith_cluster::metadata::{
    CommitOutcome, Condition, EmbeddedMetadata, MetadataError, MetadataService, MetadataStore,
    MetadataTarget, RemoteMetadata, Write,
};
use kith_cluster::testing::Etcd;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;

/// Runs a claim against each implementation.
async fn each<F: Future<Output = ()>>(claim: impl Fn(Arc<dyn MetadataStore>) -> F) {
    claim(Arc::new(EmbeddedMetadata::in_memory())).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address").to_string();
    let service = MetadataService::new(Arc::new(EmbeddedMetadata::in_memory()));
    let server = tonic::transport::Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    claim(Arc::new(RemoteMetadata::connect(&addr).expect("an address"))).await;
    let etcd = Etcd::start();
    let target = MetadataTarget { address: etcd.address(), ..Default::default() };
    claim(target.connect().expect("an address")).await;
}

fn put(key: &str, value: &str) -> Write {
    Write::put(key, value.as_bytes().to_vec())
}

fn only_if(key: &str, revision: u64) -> Condition {
    Condition { key: key.to_owned(), revision }
}

async fn keys(store: &dyn MetadataStore, prefix: &str) -> Vec<String> {
    let snapshot = store.read(prefix).await.expect("it can be read");
    snapshot.entries.into_iter().map(|entry| entry.key).collect()
}

#[tokio::test]
async fn a_commit_happens_whole_or_not_at_all() {
    each(|store| async move {
        let first = store.commit(vec![only_if("a", 0)], vec![put("a", "1"), put("b", "1")]).await;
        let Ok(CommitOutcome::At(revision)) = first else { panic!("{first:?}") };
        let stale = store.commit(vec![only_if("a", revision + 1)], vec![put("a", "2"), put("c", "2")]).await;
        assert_eq!(stale.expect("an answer"), CommitOutcome::Conflict);
        let exists = store.commit(vec![only_if("a", 0)], vec![put("c", "2")]).await;
        assert_eq!(exists.expect("an answer"), CommitOutcome::Conflict);
        assert_eq!(keys(&*store, "").await, ["a", "b"]);
        let fresh = store.commit(vec![only_if("a", revision)], vec![put("a", "2"), Write::delete("b")]).await;
        assert_eq!(fresh.expect("an answer"), CommitOutcome::At(revision + 1));
        let snapshot = store.read("a").await.expect("it can be read");
        assert_eq!(
            (snapshot.entries[0].value.as_slice(), snapshot.entries[0].revision),
            (b"2".as_slice(), revision + 1)
        );
        assert_eq!(keys(&*store, "").await, ["a"]);
    })
    .await;
}

#[tokio::test]
async fn a_prefix_holds_its_keys_in_order_and_no_others() {
    each(|store| async move {
        let writes = ["nodes/2", "nodes/1", "nodesX", "stores/a"].map(|key| put(key, "x")).to_vec();
        store.commit(vec![], writes).await.expect("committed");
        assert_eq!(keys(&*store, "nodes/").await, ["nodes/1", "nodes/2"]);
    })
    .await;
}

#[tokio::test]
async fn keys_that_are_set_apart_are_read_only_by_those_who_ask_for_them() {
    each(|store| async move {
        let writes = ["a", "zz", "~types/a/1", "~types/ab/1"].map(|key| put(key, "x")).to_vec();
        store.commit(vec![], writes).await.expect("committed");
        assert_eq!(keys(&*store, "").await, ["a", "zz"]);
        assert_eq!(keys(&*store, "~types/a/").await, ["~types/a/1"]);
        assert_eq!(keys(&*store, "~").await, ["~types/a/1", "~types/ab/1"]);
        let revision = store.read("").await.expect("it can be read").revision;
        let mut changes = store.watch("", revision);
        let large = Write::put("~types/a/2", vec![b'x'; 1 << 20]);
        store.commit(vec![], vec![large, put("a", "y")]).await.expect("committed");
        let seen = changes.next().await.expect("a change");
        let seen: Vec<_> = seen.entries.iter().map(|it| (it.key.as_str(), it.value.len())).collect();
        assert_eq!(seen, [("a", 1), ("zz", 1)]);
        assert_eq!(keys(&*store, "~types/a/").await, ["~types/a/1", "~types/a/2"]);
    })
    .await;
}

#[tokio::test]
async fn a_watch_tells_of_the_latest_state() {
    each(|store| async move {
        store.commit(vec![], vec![put("a", "1")]).await.expect("committed");
        let revision = store.read("").await.expect("it can be read").revision;
        let mut changes = store.watch("a", revision);
        store.commit(vec![], vec![put("a", "2")]).await.expect("committed");
        let seen = changes.next().await.expect("a change");
        assert!(revision < seen.revision && seen.entries[0].value == b"2", "{seen:?}");
        // A watch from an old revision starts with the current state.
        let again = store.watch("a", 0).next().await.expect("the state");
        assert_eq!(again.entries, seen.entries);
    })
    .await;
}

#[tokio::test]
async fn leased_keys_vanish_with_their_lease() {
    each(|store| async move {
        let lease = store.lease(Duration::from_millis(50)).await.expect("a lease");
        let leased = Write { key: "live/1".to_owned(), value: Some(vec![]), lease: Some(lease) };
        store.commit(vec![], vec![leased.clone()]).await.expect("committed");
        assert_eq!(keys(&*store, "live/").await, ["live/1"]);
        while !keys(&*store, "live/").await.is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(matches!(store.keep_alive(lease).await, Err(MetadataError::LeaseEnded(_))));
        assert!(store.commit(vec![], vec![leased]).await.is_err(), "an ended lease holds nothing");
    })
    .await;
}

#[tokio::test]
async fn the_embedded_store_keeps_what_was_committed_but_no_leases() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("metadata.json");
    let revision = {
        let store = EmbeddedMetadata::open(&file).expect("a new store");
        let lease = store.lease(Duration::from_secs(60)).await.expect("a lease");
        let leased = Write { key: "live/1".to_owned(), value: Some(vec![]), lease: Some(lease) };
        store.commit(vec![], vec![put("a", "1"), leased]).await.expect("committed");
        store.read("a").await.expect("it can be read").entries[0].revision
    };
    let store = EmbeddedMetadata::open(&file).expect("the store again");
    assert_eq!(keys(&store, "").await, ["a"]);
    assert_eq!(store.read("a").await.expect("it can be read").entries[0].revision, revision);
    std::fs::write(&file, "{\"format\":7,\"revision\":1,\"entries\":[]}").expect("written");
    assert!(matches!(EmbeddedMetadata::open(&file), Err(MetadataError::Damaged { .. })));
}
