//! Answers in slices of a node that is asked itself.

use super::{PEOPLE, started, value, word};
use crate::support::cluster::{Cluster, metric_at};
use kith_client::{RouterClient, TransportKind, security::Dialer};
use kith_operators::{Operator, Record, Value};
use kith_query::convert::{operator_to_wire, value_of_reply};
use kith_types::ByteKeys;
use kith_wire::{body::encode_keys, v1};

/// A node that is asked for words itself.
struct AskedNode {
    runtime: tokio::runtime::Runtime,
    addr: String,
    http: String,
}

impl AskedNode {
    /// The first node that the cluster's router knows.
    fn first_of(cluster: &Cluster) -> Self {
        let router = cluster.ready()["router"].as_str().expect("an address").to_owned();
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let node = runtime.block_on(async {
            let router = RouterClient::connect(&[router]).await.expect("the router is up");
            router.topology().await.expect("it knows the nodes").nodes[0].clone()
        });
        Self { runtime, addr: node.addr.clone(), http: node.http.clone() }
    }

    /// Looks up words, and lets the node answer in slices if it wants to.
    fn look_up(
        &self,
        kind: TransportKind,
        asked: impl Iterator<Item = u64>,
        in_slices: bool,
    ) -> v1::EvaluateReply {
        let mut keys = ByteKeys::default();
        asked.for_each(|key| keys.push(word(key).as_bytes()));
        let request = v1::EvaluateRequest {
            name: "words".to_owned(),
            version: 1,
            byte_keys: encode_keys(&keys),
            plan: Some(operator_to_wire(&Operator::Lookup)),
            in_slices,
            ..Default::default()
        };
        let transport = kind.build(&Dialer::default());
        self.runtime.block_on(async { transport.evaluate(&self.addr, request).await }).expect("an answer")
    }

    /// Bytes that it has handed over in memory that it shares with whoever asked.
    fn shared_bytes(&self) -> f64 {
        metric_at(&self.http, "kith_server_shared_bytes_total").unwrap_or_default()
    }
}

/// Checks records against what version 1 holds of the keys that were asked for.
fn assert_records(mut reply: v1::EvaluateReply, asked: impl Iterator<Item = u64>, count: u64) {
    let Value::Records(records) = value_of_reply(&mut reply, count as usize).expect("a value") else {
        panic!("records")
    };
    assert_eq!(records.len() as u64, count);
    for (key, record) in asked.zip(records.iter()) {
        let expected = value(key, 1);
        match record {
            Record::Found(found) => assert!(key < PEOPLE && found == expected.as_bytes(), "{key}"),
            other => assert!(other == Record::Absent && PEOPLE <= key, "{key}: {other:?}"),
        }
    }
}

#[test]
fn a_warm_node_answers_a_long_read_in_slices_and_a_short_one_whole() {
    let cluster = started(&["--processes", "--groups", "1", "--nodes", "1"]);
    let node = AskedNode::first_of(&cluster);
    // About a tenth is nobody's.
    let asked = |count: u64| (0..count).map(|index| index * 10 % (PEOPLE + PEOPLE / 10));
    for (kind, count, in_slices, is_sliced) in [
        (TransportKind::Framed, 5_000, true, true),
        (TransportKind::FramedTcp, 5_000, true, true),
        (TransportKind::Framed, 5_000, false, false),
        (TransportKind::Framed, 64, true, false),
        (TransportKind::Grpc, 5_000, true, false),
    ] {
        let before = node.shared_bytes();
        let reply = node.look_up(kind, asked(count), in_slices);
        let is_shared = matches!(kind, TransportKind::Framed) && 64 < count;
        assert_eq!(before < node.shared_bytes(), is_shared, "{kind:?}, {count} keys");
        assert_eq!(
            1 < reply.slices.len(),
            is_sliced,
            "{kind:?}, {count} keys: {} slices",
            reply.slices.len()
        );
        assert!(reply.served.len() == 1 && reply.load.is_some(), "{reply:?}");
        assert_records(reply, asked(count), count);
    }
}
