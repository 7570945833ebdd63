//! Golden bytes of the messages that carry reads. Also tests that fields which a newer peer adds are ignored.

use bytes::Bytes;
use kith_sim::golden;
use kith_wire::body::{encode_keys, encode_set};
use kith_wire::{Message, v1};
use std::fmt::Debug;

const COMMENT: &str = "Messages of kith.v1: crates/words/kith-wire/proto/kith.proto. The test is \
                       crates/words/kith-wire/tests/formats/messages.rs.";

/// Checks that bytes decode to the expected message.
type Check = Box<dyn Fn(&[u8])>;

/// Encoded messages, and the check of each golden encoding.
struct Messages {
    made: Vec<(String, Vec<u8>)>,
    checks: Vec<Check>,
}

impl Messages {
    fn add<M: Message + Default + PartialEq + Debug + 'static>(&mut self, what: &str, message: M) {
        self.made.push((what.to_owned(), message.encode_to_vec()));
        self.checks.push(Box::new(move |bytes| assert_eq!(M::decode(bytes).unwrap(), message)));
    }
}

fn header() -> v1::RequestHeader {
    v1::RequestHeader {
        epoch: 3,
        deadline_us: 250_000,
        client: 77,
        trace_id: "t1".to_owned(),
        workflow: v1::Workflow::Background.into(),
        admitted: true,
        ..Default::default()
    }
}

fn options() -> v1::QueryOptions {
    v1::QueryOptions {
        edge_type: "follows".to_owned(),
        direction: v1::Direction::Out.into(),
        workflow: v1::Workflow::Background.into(),
        fan_out: "groups=1,sync-union=max".to_owned(),
        policy: "borrow".to_owned(),
        cache: v1::CacheMode::Refresh.into(),
        deadline_ms: 250,
        profile: true,
        partial: true,
        page: Some(v1::Page { after: Some(9), limit: Some(10) }),
        trace_id: "t1".to_owned(),
        forwarded: true,
        hedge: "table".to_owned(),
        proofs: v1::Proofs::Checked.into(),
        tickets: vec!["AQ".to_owned()],
        critical: true,
        group: Some(2),
    }
}

fn served() -> Vec<v1::Served> {
    vec![v1::Served::of_version("people".to_owned(), 7)]
}

fn plan() -> v1::ComputePlan {
    let dot = v1::ComputeFunction::Dot.into();
    let operator = v1::ComputeOperator {
        name: "d".to_owned(),
        field: "embed".to_owned(),
        function: dot,
        query: vec![0.5, -1.0],
    };
    v1::ComputePlan {
        project: vec!["title".to_owned()],
        operators: vec![operator],
        top_k: Some(v1::TopK { by: "d".to_owned(), k: 2 }),
        reader_schema: String::new(),
    }
}

fn keys() -> Bytes {
    encode_keys(&["ada", "bob"].iter().collect())
}

fn evaluation(messages: &mut Messages) {
    let edge = v1::EdgeSelector {
        kind: "follows".to_owned(),
        direction: v1::Direction::Out.into(),
        filter: Some(v1::ColumnRange { column: "time".to_owned(), low: 1, high: 9 }),
    };
    let keys_operator = v1::Operator { op: Some(v1::operator::Op::Keys(v1::KeysOperator {})) };
    let expand =
        v1::ExpandOperator { input: Some(Box::new(keys_operator)), edge: Some(edge), longest: Some(100) };
    let expand = v1::Operator { op: Some(v1::operator::Op::Expand(Box::new(expand))) };
    let union = v1::Operator { op: Some(v1::operator::Op::Union(Box::new(expand))) };
    messages.add(
        "EvaluateRequest",
        v1::EvaluateRequest {
            header: Some(header()),
            name: "people".to_owned(),
            version: 7,
            keys: vec![5, 133],
            partitions: vec![0, 3],
            plan: Some(union),
            byte_keys: Bytes::new(),
            in_slices: true,
            proofs: true,
            reservation: Some(v1::Reservation { id: 4, step: v1::ReservationStep::Reserve.into(), keys: 2 }),
            critical: true,
            pinned: Bytes::from_static(b"p"),
        },
    );
    let load = v1::NodeLoad { requests_per_second: 1.5, clients: 2, in_flight: 3, leaving: true };
    let set = v1::value::Value::Set(encode_set(&[5, 133]));
    let reply = v1::EvaluateReply {
        value: Some(v1::Value { value: Some(set) }),
        load: Some(load),
        served: served(),
        service_us: 40,
        slices: vec![],
        quota_left: v1::QuotaLeft::QuotaCalm.into(),
    };
    messages.add("EvaluateReply", reply);
    messages.add(
        "PingRequest",
        v1::PingRequest { header: Some(header()), counters: true, disk: true, waits: vec![0, 2], live: true },
    );
    messages.add(
        "PingReply",
        v1::PingReply {
            node: 1,
            load: Some(load),
            served: served(),
            epoch: 3,
            disk_free: Some(9),
            live: vec![v1::AppliedLogs {
                graph: "social".to_owned(),
                partitions: vec![0, 3],
                positions: vec![7, 0],
                error: "down".to_owned(),
                unbuilt: 1,
            }],
            ..Default::default()
        },
    );
}

fn queries(messages: &mut Messages) {
    let network = v1::NetworkOperand { id: 42, want: v1::Want::Ids.into() };
    messages.add(
        "QueryRequest",
        v1::QueryRequest {
            graph: "people".to_owned(),
            options: Some(options()),
            operand: Some(v1::query_request::Operand::Network(network)),
        },
    );
    let network = v1::NetworkReply {
        id: 42,
        degree: 1,
        n2: 2,
        net: 3,
        fof: 4,
        first: vec![7],
        second: vec![8, 9],
        fof_near: vec![42],
    };
    messages.add(
        "QueryReply",
        v1::QueryReply {
            complete: true,
            missing_partitions: vec![2],
            profile: Some(v1::Profile { requests: 3, cache: "miss".to_owned(), ..Default::default() }),
            served: served(),
            answer: Some(v1::query_reply::Answer::Network(network)),
        },
    );
}

fn batches(messages: &mut Messages) {
    let store = || "people".to_owned();
    messages.add(
        "MultiGetRequest",
        v1::MultiGetRequest { store: store(), ids: vec![], byte_keys: keys(), options: Some(options()) },
    );
    let records = Bytes::from_static(&[2, 0x01, 1, 0x76]);
    messages.add(
        "MultiGetReply",
        v1::MultiGetReply {
            records: records.clone(),
            complete: true,
            served: served(),
            schema: "0e58".to_owned(),
            ..Default::default()
        },
    );
    let footer = v1::StreamFooter {
        status: v1::StreamStatus::Ok.into(),
        found: 1,
        absent: 1,
        crc32c: 0x45a7_76c8,
        total_us: 9,
        service_us: 5,
        ..Default::default()
    };
    messages.add(
        "MultiGetPiece",
        v1::MultiGetPiece {
            positions: encode_set(&[0, 1]),
            records,
            served: served().pop(),
            schema: "0e58".to_owned(),
            footer: Some(footer),
            result_schema: "{}".to_owned(),
        },
    );
}

fn computations(messages: &mut Messages) {
    let store = || "people".to_owned();
    let records = Bytes::from_static(&[2, 0x01, 1, 0x76]);
    messages.add(
        "ComputeRequest",
        v1::ComputeRequest { store: store(), ids: vec![5, 133], plan: Some(plan()), ..Default::default() },
    );
    messages.add(
        "ComputeReply",
        v1::ComputeReply {
            records,
            best: vec![1, 0],
            complete: true,
            served: served(),
            ..Default::default()
        },
    );
    let at_least = |whole| v1::Predicate {
        predicate: Some(v1::predicate::Predicate::Ge(v1::Operand {
            operand: Some(v1::operand::Operand::Whole(whole)),
        })),
    };
    let bucket = v1::Bucket { name: "old".to_owned(), predicate: Some(at_least(-18)) };
    let by = v1::aggregate_plan::By::Buckets(v1::Buckets { buckets: vec![bucket] });
    let plan = v1::AggregatePlan { field: "age".to_owned(), by: Some(by), reader_schema: String::new() };
    messages.add(
        "AggregateRequest",
        v1::AggregateRequest { store: store(), ids: vec![5], plan: Some(plan), ..Default::default() },
    );
    let groups = v1::Groups { counts: vec![3], truncated: true, ..Default::default() };
    messages.add(
        "AggregateReply",
        v1::AggregateReply { groups: Some(groups), complete: true, served: served(), ..Default::default() },
    );
    messages.add(
        "ErrorDetail",
        v1::ErrorDetail {
            code: "quota_exceeded".to_owned(),
            help: "wait".to_owned(),
            epoch: 3,
            partitions: vec![1, 2],
            retry_after_ms: 20,
        },
    );
}

fn messages() -> Messages {
    let mut messages = Messages { made: Vec::new(), checks: Vec::new() };
    evaluation(&mut messages);
    queries(&mut messages);
    batches(&mut messages);
    computations(&mut messages);
    messages
}

#[test]
fn messages_of_reads() {
    let Messages { made, checks } = messages();
    let golden = golden::hex("messages.txt", COMMENT, &made);
    assert_eq!(golden.len(), checks.len());
    golden.iter().zip(checks).for_each(|((_, bytes), check)| check(bytes));
}

#[test]
fn fields_that_a_newer_peer_adds_are_ignored() {
    let Messages { made, checks } = messages();
    for ((_, mut bytes), check) in made.into_iter().zip(checks) {
        // Field 1000 is a varint, 1001 has eight bytes, 1002 is text, and 1003 has four bytes.
        prost::encoding::uint64::encode(1_000, &u64::MAX, &mut bytes);
        prost::encoding::fixed64::encode(1_001, &7, &mut bytes);
        prost::encoding::string::encode(1_002, &"what nobody here knows".to_owned(), &mut bytes);
        prost::encoding::fixed32::encode(1_003, &7, &mut bytes);
        check(&bytes);
    }
}
