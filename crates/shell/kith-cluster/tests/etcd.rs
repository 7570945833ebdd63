//! Events that only clients of etcd see: compaction, restarts, outages, users and certificates.

use futures::StreamExt;
use kith_cluster::metadata::{
    CommitOutcome, Condition, MetadataError, MetadataStore, MetadataTarget, Snapshot, Write,
};
use kith_cluster::testing::Etcd;
use kith_net::security::secret;
use kith_types::ErrorCode;
use std::{sync::Arc, time::Duration};

/// The bound on every wait; far above what any of them takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The interval between two checks for an answer.
const LOOK: Duration = Duration::from_millis(50);
/// The time to live of leases, which is longer than any wait.
const LEASE: Duration = Duration::from_secs(600);

fn target(etcd: &Etcd, cluster: &str) -> MetadataTarget {
    MetadataTarget { address: etcd.address(), cluster: Some(cluster.to_owned()), ..Default::default() }
}

fn connect(target: &MetadataTarget) -> Arc<dyn MetadataStore> {
    target.connect().expect("it makes sense")
}

fn put(value: &str) -> Vec<Write> {
    vec![Write::put("a", value.as_bytes().to_vec())]
}

fn value(snapshot: &Snapshot) -> &str {
    std::str::from_utf8(&snapshot.get("a").expect("it is there").value).expect("UTF-8")
}

async fn commit(store: &dyn MetadataStore, value: &str) -> u64 {
    match store.commit(Vec::new(), put(value)).await.expect("an answer") {
        CommitOutcome::At(revision) => revision,
        CommitOutcome::Conflict => panic!("there is no condition"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_outlives_compactions_and_restarts() {
    let mut etcd = Etcd::start();
    let store = connect(&target(&etcd, "c"));
    let first = commit(&*store, "1").await;
    let mut changes = store.watch("", first);
    commit(&*store, "2").await;
    assert_eq!(value(&changes.next().await.expect("a change")), "2");
    // Compact the revisions that the watch has not seen while it is broken.
    etcd.restart();
    commit(&*store, "3").await;
    commit(&*store, "4").await;
    etcd.compact();
    let last = loop {
        let seen = changes.next().await.expect("a change");
        if value(&seen) == "4" {
            break seen.revision;
        }
    };
    // A watch from before the remaining history begins with the current state.
    let late = store.watch("", first).next().await.expect("the state");
    assert_eq!((value(&late), late.revision), ("4", last));
    commit(&*store, "5").await;
    assert_eq!(value(&changes.next().await.expect("a change")), "5");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_etcd_calls_end_with_an_error_and_go_on_when_it_is_back() {
    let mut etcd = Etcd::start();
    let store = connect(&target(&etcd, "c"));
    let before = commit(&*store, "1").await;
    etcd.kill();
    for error in [
        store.read("").await.map(|_| ()).expect_err("nobody answers"),
        store.commit(Vec::new(), put("2")).await.map(|_| ()).expect_err("nobody answers"),
        store.lease(Duration::from_secs(3)).await.map(|_| ()).expect_err("nobody answers"),
    ] {
        assert!(matches!(error, MetadataError::Unavailable { .. }), "{error}");
        assert_eq!(error.code(), ErrorCode::MetadataUnavailable);
    }
    etcd.restart();
    let condition = Condition { key: "a".to_owned(), revision: before };
    let committed = store.commit(vec![condition], put("3")).await.expect("an answer");
    assert!(matches!(committed, CommitOutcome::At(_)), "what failed did not happen: {committed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_member_is_asked_when_one_is_away() {
    let (mut gone, etcd) = (Etcd::start(), Etcd::start());
    gone.kill();
    let address = format!("etcd://{},{}", gone.host(), etcd.host());
    let store = connect(&MetadataTarget { address, ..Default::default() });
    commit(&*store, "1").await;
    assert_eq!(value(&store.read("").await.expect("it can be read")), "1");
}

/// Writes until it succeeds, while a leader is being elected. Returns the revision.
async fn commit_in_the_end(store: &dyn MetadataStore, value: &str) -> u64 {
    in_the_end(
        value,
        || store.commit(Vec::new(), put(value)),
        |committed| match committed {
            CommitOutcome::At(revision) => revision,
            CommitOutcome::Conflict => panic!("there is no condition"),
        },
    )
    .await
}

/// Asks until there is an answer. etcd has no leader for as long as the machine is too busy to elect one.
async fn in_the_end<T, R>(
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<T, MetadataError>,
    answer: impl Fn(T) -> R,
) -> R {
    let asked = async {
        loop {
            match ask().await {
                Ok(value) => return answer(value),
                Err(error) => assert!(matches!(error, MetadataError::Unavailable { .. }), "{error}"),
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(TIMEOUT, asked).await.unwrap_or_else(|_| panic!("no answer in time: {what}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_members_of_three_are_enough_and_one_is_not() {
    let mut members = Etcd::start_three();
    let hosts = members.each_ref().map(Etcd::host).join(",");
    let store = connect(&MetadataTarget { address: format!("etcd://{hosts}"), ..Default::default() });
    let first = commit_in_the_end(&*store, "0").await;
    let mut changes = store.watch("", first);
    let lease = store.lease(LEASE).await.expect("a lease");
    for (number, member) in members.iter_mut().enumerate() {
        // One of the three is the leader, and one has the watch.
        member.kill();
        let written = format!("without {number}");
        commit_in_the_end(&*store, &written).await;
        while value(&changes.next().await.expect("a change")) != written {}
        assert_eq!(in_the_end("a read", || store.read(""), |read| value(&read).to_owned()).await, written);
        in_the_end("a lease", || store.keep_alive(lease), |()| ()).await;
        member.restart();
    }
    // The last member has all data, but cannot know that it does.
    members[0].kill();
    members[1].kill();
    for error in [
        store.read("").await.map(|_| ()).expect_err("one of three"),
        store.commit(Vec::new(), put("lost")).await.map(|_| ()).expect_err("one of three"),
    ] {
        assert_eq!(error.code(), ErrorCode::MetadataUnavailable, "{error}");
    }
    members[1].restart();
    commit_in_the_end(&*store, "back").await;
    while value(&changes.next().await.expect("a change")) != "back" {}
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_in_one_etcd_do_not_meet() {
    let etcd = Etcd::start();
    // The name of one cluster is a prefix of the other's.
    let (one, other) = (connect(&target(&etcd, "c")), connect(&target(&etcd, "c2")));
    commit(&*one, "one").await;
    commit(&*other, "other").await;
    assert_eq!(value(&one.read("").await.expect("it can be read")), "one");
    assert_eq!(value(&other.read("").await.expect("it can be read")), "other");
    assert_eq!(etcd.ctl(&["get", "--prefix", "--keys-only", "/kith/"]), "/kith/c/a\n\n/kith/c2/a\n\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_etcd_refuses_is_reported_in_its_words() {
    let etcd = Etcd::start();
    let store = connect(&target(&etcd, "c"));
    let large = vec![Write::put("a", vec![b'x'; 3 << 20])];
    let error = store.commit(Vec::new(), large).await.expect_err("it is larger than etcd takes");
    assert!(matches!(error, MetadataError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("larger") || error.to_string().contains("large"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_known_by_their_password_and_again_after_a_restart() {
    let mut etcd = Etcd::start();
    etcd.enable_users("hunter2");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("password");
    secret::testing::write(&file, "hunter2\n");
    let user = MetadataTarget {
        etcd_user: Some("kith".to_owned()),
        etcd_password_file: Some(file.clone()),
        ..target(&etcd, "c")
    };
    let store = connect(&user);
    let mut changes = store.watch("", commit(&*store, "1").await);
    // Tokens do not outlive the etcd that issued them.
    etcd.restart();
    commit(&*store, "2").await;
    while value(&changes.next().await.expect("a change")) != "2" {}

    let elsewhere = MetadataTarget { cluster: Some("d".to_owned()), ..user.clone() };
    let denied = connect(&elsewhere).commit(Vec::new(), put("1")).await.expect_err("it has no rights there");
    assert!(denied.to_string().contains("permission denied"), "{denied}");
    let nobody = connect(&target(&etcd, "c")).read("").await.expect_err("it has no user");
    assert!(matches!(nobody, MetadataError::Refused { .. }), "{nobody}");
    std::fs::write(&file, "hunter3").expect("written");
    let wrong = connect(&user).read("").await.expect_err("its password is another");
    assert_eq!(wrong.code(), ErrorCode::MetadataRefused, "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_both_sides_are_verified() {
    let (etcd, other) = (Etcd::start_tls(), Etcd::start_tls());
    let (cert, key) = etcd.identity();
    let known = MetadataTarget {
        etcd_ca: Some(etcd.ca()),
        etcd_cert: Some(cert),
        etcd_key: Some(key),
        ..target(&etcd, "c")
    };
    let store = connect(&known);
    commit(&*store, "1").await;
    assert_eq!(value(&store.read("").await.expect("it can be read")), "1");
    let misled = MetadataTarget { address: other.address(), ..known.clone() };
    let error = connect(&misled).read("").await.expect_err("its certificate is of another authority");
    assert!(error.to_string().contains("certificate"), "{error}");
    let unknown = MetadataTarget { etcd_cert: None, etcd_key: None, ..known };
    connect(&unknown).read("").await.expect_err("etcd does not know who asks");
}
