//! Never a bad read: pushes, swaps, rollbacks and nodes that die under readers that do not pause. An answer is right, and
//! of one version. `KITH_TEST_FULL=1` does as many as the goals name: 100 swaps and 20 rollbacks, 76 swaps over 123 stores.

use crate::support;
use serde_json::Value;
use support::{
    cluster::{Cluster, signal},
    is_full,
    stream::Stream,
    values::create,
    words::{WORDS, current, judge, mget, push_version, read_on},
};

const PEOPLE: u64 = 5_000;
/// Keys of a large read.
const MANY: u64 = 1_000;

/// Single keys and a thousand at a time.
fn readers(cluster: &Cluster, store: &str) -> [Stream; 2] {
    let single = (0..500).map(|turn| mget(store, [turn * 7 % PEOPLE].into_iter())).collect();
    let many = (0..10).map(|turn| mget(store, (0..MANY).map(move |key| (key * 5 + turn) % PEOPLE))).collect();
    [Stream::start(cluster, single, 4, judge), Stream::start(cluster, many, 2, judge)]
}

/// The versions of `words` that can be swapped to.
fn kept_versions(cluster: &Cluster) -> Vec<u64> {
    let output = cluster.must(&["store", "versions", "words", "-o", "json"]);
    let versions: Vec<Value> = serde_json::from_str(&output).expect("JSON");
    versions.iter().map(|version| version["version"].as_u64().expect("a number")).collect()
}

/// Rolls `words` back from its newest version, which it swaps to first unless that is served.
fn roll_back(cluster: &mut Cluster, newest: u64, readers: &[Stream]) {
    // The last swap may have been a push; a swap to what is served is refused.
    if current(cluster, "words") != newest {
        cluster.must(&["store", "swap", "words", &newest.to_string(), "--force"]);
        read_on(cluster, readers);
    }
    cluster.must(&["store", "rollback", "words"]);
    assert_ne!(current(cluster, "words"), newest);
    read_on(cluster, readers);
}

#[test]
fn no_read_sees_a_swap_a_rollback_or_a_node_that_dies() {
    let (swaps, rollbacks) = if is_full() { (100, 20) } else { (14, 4) };
    let mut cluster = Cluster::start(&["--processes", "--groups", "2", "--nodes", "2"]);
    create(&cluster, "words", WORDS.0, WORDS.1);
    for version in 1..=3 {
        push_version(&cluster, "words", PEOPLE, version);
    }
    let readers = readers(&cluster, "words");
    let mut newest = 3;
    let mut kept = vec![1, 2, 3];
    for swap in 0..swaps {
        // Every fifth swap is a push; the others go from one kept version to the next.
        if swap % 5 == 4 {
            newest += 1;
            push_version(&cluster, "words", PEOPLE, newest);
            kept = kept_versions(&cluster);
        } else {
            let serves = current(&cluster, "words");
            let next = *kept.iter().cycle().skip_while(|it| **it != serves).nth(1).expect("some are kept");
            cluster.must(&["store", "swap", "words", &next.to_string()]);
            assert_eq!(current(&cluster, "words"), next);
        }
        if swap % 10 == 7 {
            signal(cluster.node_pids(swap / 10 % 2)[0], "KILL");
        }
        read_on(&mut cluster, &readers);
    }
    let newest = *kept.iter().max().expect("some are kept");
    for _ in 0..rollbacks {
        roll_back(&mut cluster, newest, &readers);
    }
    let answers = readers.map(Stream::end);
    eprintln!(
        "{swaps} swaps, {rollbacks} rollbacks: {} single reads, {} of {MANY} keys",
        answers[0], answers[1]
    );
}

#[test]
fn many_small_stores_swap_while_they_are_read_and_cost_few_mappings() {
    let (stores, swaps) = if is_full() { (123, 76) } else { (4, 3) };
    let mut cluster =
        Cluster::start(&["--processes", "--groups", "2", "--nodes", "2", "--partitions", "1024"]);
    let names: Vec<String> = (0..stores).map(|store| format!("store-{store:03}")).collect();
    for name in &names {
        create(&cluster, name, WORDS.0, WORDS.1);
        // About 700 KB, as the smallest of the paper.
        push_version(&cluster, name, PEOPLE, 1);
    }
    let single = |name: &String| mget(name, [17, 4_711].into_iter());
    let many = |name: &String| mget(name, (0..MANY).map(|key| key * 3));
    let readers = [
        Stream::start(&cluster, names.iter().map(single).collect(), 4, judge),
        Stream::start(&cluster, names.iter().map(many).collect(), 2, judge),
    ];
    for name in names.iter().take(swaps) {
        push_version(&cluster, name, PEOPLE, 2);
        read_on(&mut cluster, &readers);
    }
    for pid in [0, 1].iter().flat_map(|group| cluster.node_pids(*group)) {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("a process of this test");
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("a process of this test").count();
        let versions = stores + swaps;
        let packs = maps.lines().filter(|line| line.contains(".pack")).count();
        // A store costs a few mappings, not one a partition; of files none stays open.
        assert!(packs <= 4 * versions, "{packs} mapped packs for {versions} versions");
        assert!(files < 256 && maps.lines().count() < packs + 1_000, "{files} open files");
    }
    let answers = readers.map(Stream::end);
    eprintln!("{swaps} swaps over {stores} stores: {} reads of 2 keys, {} of {MANY}", answers[0], answers[1]);
}
