//! Messages whose bytes are contiguous, or spread over several buffers.

use crate::properties::{Seed, take};
use bytes::Bytes;
use kith_wire::{Message, Rope, etcd, v1};

type Check = fn(&[u8], &[usize]);

const MESSAGES: &[Check] = &[
    message::<v1::EvaluateRequest>,
    message::<v1::EvaluateReply>,
    message::<v1::QueryRequest>,
    message::<v1::QueryReply>,
    message::<v1::MultiGetRequest>,
    message::<v1::MultiGetReply>,
    message::<v1::MultiGetPiece>,
    message::<v1::ComputeRequest>,
    message::<v1::AggregateRequest>,
    message::<v1::AggregateReply>,
    message::<v1::PingReply>,
    message::<v1::StoreRequest>,
    message::<v1::PushRequest>,
    message::<v1::Buckets>,
    message::<etcd::RangeResponse>,
    message::<etcd::TxnResponse>,
    message::<etcd::WatchResponse>,
];

/// Input: the number of a message type, two places to split the bytes at, the bytes.
pub fn check(mut input: &[u8]) {
    let check = MESSAGES[usize::from(take(&mut input)) % MESSAGES.len()];
    let mut cuts = [take(&mut input), take(&mut input)].map(|cut| usize::from(cut).min(input.len()));
    cuts.sort_unstable();
    check(input, &cuts);
}

fn message<M: Message + Default>(input: &[u8], cuts: &[usize]) {
    let bytes = Bytes::copy_from_slice(input);
    let whole = Rope::from(bytes.clone()).decode::<M>();
    let (mut rope, mut start) = (Rope::default(), 0);
    for &cut in cuts.iter().chain([&input.len()]) {
        rope.push(bytes.slice(start..cut));
        start = cut;
    }
    let torn = rope.decode::<M>();
    // Encodings are compared, because a message with a NaN does not equal itself.
    assert_eq!(torn.is_ok(), whole.is_ok());
    let (Ok(whole), Ok(torn)) = (whole, torn) else { return };
    let again = whole.encode_to_vec();
    assert_eq!(torn.encode_to_vec(), again);
    assert_eq!(again.len(), kith_wire::encoded_len(&whole));
    let decoded = M::decode(&again[..]).expect("a message that was encoded");
    assert_eq!(decoded.encode_to_vec(), again);
}

pub fn seeds() -> Vec<Seed> {
    let of = |kind: u8, message: Vec<u8>| [&[kind, 3, 20][..], &message].concat();
    let served = vec![v1::Served::of_version("village".to_owned(), u64::MAX)];
    let slices = vec![Bytes::from_static(b"one slice"), Bytes::from_static(b""), Bytes::from_static(b"two")];
    let reply = v1::EvaluateReply { slices, served, service_us: 300, ..Default::default() };
    let network = v1::NetworkOperand { id: 9_043, want: 1 };
    let operand = Some(v1::query_request::Operand::Network(network));
    let query = v1::QueryRequest { graph: "village".to_owned(), operand, ..Default::default() };
    let mut plan = v1::Operator { op: Some(v1::operator::Op::Ids(Bytes::from_static(&[2, 5, 9]))) };
    for _ in 0..5 {
        let limit = v1::LimitOperator { input: Some(Box::new(plan)), count: 3 };
        plan = v1::Operator { op: Some(v1::operator::Op::Limit(Box::new(limit))) };
    }
    let evaluate = v1::EvaluateRequest { plan: Some(plan), keys: vec![1, 300], ..Default::default() };
    let text = v1::operand::Operand::Text("title".to_owned());
    let mut predicate = v1::predicate::Predicate::Eq(v1::Operand { operand: Some(text) });
    for _ in 0..4 {
        let predicates = vec![v1::Predicate { predicate: Some(predicate) }];
        predicate = v1::predicate::Predicate::And(v1::Predicates { predicates });
    }
    let bucket =
        v1::Bucket { name: "all".to_owned(), predicate: Some(v1::Predicate { predicate: Some(predicate) }) };
    let buckets = v1::Buckets { buckets: vec![bucket] }.encode_to_vec();
    vec![
        ("evaluate", of(0, evaluate.encode_to_vec())),
        ("evaluated", of(1, reply.encode_to_vec())),
        ("query", of(2, query.encode_to_vec())),
        ("condition", of(13, buckets)),
        ("nested-too-deep", of(0, [0x0a, 0x7f].repeat(60))),
    ]
}
