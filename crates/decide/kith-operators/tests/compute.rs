//! Read compute over many records: compares nodes, merge and fallback with a slow twin.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use kith_operators::{
    BatchRead, Groups, MissingKeyRule, Operator, Part, Record, RecordError, Records, Room, Value, aggregate,
    aggregate_fetched, best, compute, compute_fetched, lookup, sets::Scratch,
};
use kith_schema::compute::{
    AggregatePlan, Aggregation, Bucket, Comparison, Computation, ComputeFault, ComputeFunction, ComputePlan,
    GroupBy, Operand, Predicate,
};
use kith_schema::{LookupKeys, RecordView, RecordWriter, Scalar, Schema, SourceError, ValueSource};
use kith_types::{ByteKeys, ErrorCode};
use proptest::prelude::*;
use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

const BYTES_MAX: usize = 64 << 20;

fn schema() -> Schema {
    r#"{"fields":[{"name":"t","type":"text"},{"name":"v","type":"list<f64>","nullable":true}]}"#.parse().unwrap()
}

/// A read of all keys, however large the answer.
fn whole(ids: &[u64]) -> BatchRead<'_> {
    BatchRead { keys: LookupKeys::Ids(ids), room: Room::for_all(BYTES_MAX), proofs: false }
}

/// Records by key. The value `[13]` is damaged.
struct Node(BTreeMap<Vec<u8>, Vec<u8>>);

impl ValueSource for Node {
    fn values(
        &self,
        keys: LookupKeys<'_>,
        each: &mut dyn FnMut(usize, Result<Option<&[u8]>, SourceError>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let keys: Vec<Vec<u8>> = match keys {
            LookupKeys::Ids(ids) => ids.iter().map(|id| id.to_le_bytes().to_vec()).collect(),
            LookupKeys::Bytes(keys) => keys.iter().map(<[u8]>::to_vec).collect(),
        };
        for (index, key) in keys.iter().enumerate() {
            let value = match self.0.get(key) {
                Some(value) if value == b"damaged" => {
                    Err(SourceError::Damaged { file: "f".into(), detail: "d".into() })
                }
                value => Ok(value.map(Vec::as_slice)),
            };
            if each(index, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The content of a key's record, if there is one.
#[derive(Clone, Debug)]
enum Row {
    Vector(Option<Vec<i8>>),
    Damaged,
    Absent,
}

fn node(rows: &[Row], key: impl Fn(usize) -> Vec<u8>) -> Node {
    let (schema, mut node) = (schema(), BTreeMap::new());
    let mut writer = RecordWriter::new(&schema);
    for (index, row) in rows.iter().enumerate() {
        let value = match row {
            Row::Absent => continue,
            Row::Damaged => b"damaged".to_vec(),
            Row::Vector(vector) => {
                let json = serde_json::json!({"t": format!("row {index}"), "v": vector}).to_string();
                let mut value = Vec::new();
                writer.write_json(&json, &mut value).unwrap();
                value
            }
        };
        node.insert(key(index), value);
    }
    Node(node)
}

fn plan(k: Option<u32>) -> ComputePlan {
    let dot = ComputeFunction::Dot(vec![1.0, -2.0]);
    let plan = ComputePlan::new().project("t").operator(dot, "v", Some("s".into()));
    match k {
        Some(k) => plan.top_k("s", k),
        None => plan,
    }
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = prop_oneof![
        8 => prop::collection::vec(-3i8..3, 2).prop_map(|vector| Row::Vector(Some(vector))),
        1 => prop::collection::vec(-3i8..3, 0..4).prop_map(|vector| Row::Vector(Some(vector))),
        1 => Just(Row::Vector(None)),
        1 => Just(Row::Absent),
    ];
    prop::collection::vec(row, 1..60)
}

/// The expected result of each key, by the plain definition.
#[derive(Clone, Debug, PartialEq)]
enum Expected {
    Score(Option<f64>),
    Fault(u32),
    Absent,
}

fn expected(row: &Row) -> Expected {
    match row {
        Row::Absent | Row::Damaged => Expected::Absent,
        Row::Vector(None) => Expected::Score(None),
        Row::Vector(Some(vector)) => match vector.as_slice() {
            [] => Expected::Score(None),
            [a, b] => Expected::Score(Some(f64::from(*a) - 2.0 * f64::from(*b))),
            other => Expected::Fault(other.len() as u32),
        },
    }
}

/// The nodes' parts of a fan-out of `plan` over `ids`, merged and cut as a caller does it.
fn over_nodes(ids: &[u64], shares: &[Vec<u32>], source: &Node, plan: &ComputePlan) -> (Records, Vec<u32>) {
    let schema = schema();
    let computation = Computation::new(plan, &schema).unwrap();
    let over = computation.over(&schema).unwrap();
    let parts = shares.iter().filter(|share| !share.is_empty()).map(|share| {
        let keys: Vec<u64> = share.iter().map(|&index| ids[index as usize]).collect();
        let value =
            compute(LookupKeys::Ids(&keys), source, &over, Room::for_all(BYTES_MAX), &|| false).unwrap();
        if let Some(k) = computation.k() {
            assert!(value.iter().filter(|record| matches!(record, Record::Found(_))).count() <= k);
        }
        Part { positions: share.clone(), value: Value::Records(value) }
    });
    let operator = Operator::Compute(Arc::new(plan.clone()));
    let merged =
        Value::merge(&operator, ids.len(), parts.collect(), MissingKeyRule::Refuse, &mut Scratch::new());
    let Ok(Value::Records(mut records)) = merged else { panic!("{merged:?}") };
    let best = if plan.top_k.is_some() {
        best(LookupKeys::Ids(ids), &mut records, &computation).unwrap()
    } else {
        Vec::new()
    };
    (records, best)
}

fn json(plan: &ComputePlan, record: &[u8]) -> serde_json::Value {
    let computation = Computation::new(plan, &schema()).unwrap();
    let text = RecordView::new(computation.result(), record).unwrap().to_json().unwrap();
    serde_json::from_str(&text).unwrap()
}

proptest! {
    #[test]
    fn any_split_over_nodes_and_the_fallback_give_what_the_twin_does(
        rows in rows(),
        asked in prop::collection::vec((0u64..70, 0usize..4), 1..80),
        k in prop::option::of(1u32..12),
    ) {
        let ids: Vec<u64> = asked.iter().map(|(id, _)| *id).collect();
        let shares: Vec<Vec<u32>> = (0..4).map(|node| {
            (0..).zip(&asked).filter(|(_, (_, of))| *of == node).map(|(index, _)| index).collect()
        }).collect();
        let source = node(&rows, |index| (index as u64).to_le_bytes().to_vec());
        let plan = plan(k);
        let (records, indexes) = over_nodes(&ids, &shares, &source, &plan);

        let fetched = lookup(&whole(&ids), &source, &|| false).unwrap();
        let schema = schema();
        let computation = Computation::new(&plan, &schema).unwrap();
        let fallback = compute_fetched(LookupKeys::Ids(&ids), &fetched, &computation.over(&schema).unwrap(), BYTES_MAX);
        prop_assert!(fallback.unwrap().iter().eq(records.iter()));

        let of = |id: u64| rows.get(id as usize).map_or(Expected::Absent, expected);
        let mut ranked: Vec<(f64, u64, u32)> = (0..).zip(&ids).filter_map(|(index, &id)| match of(id) {
            Expected::Score(Some(score)) => Some((score, id, index)),
            _ => None,
        }).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        ranked.truncate(k.map_or(0, |k| k as usize));
        prop_assert_eq!(&indexes, &ranked.iter().map(|ranked| ranked.2).collect::<Vec<_>>());

        for (index, &id) in (0..).zip(&ids) {
            match (of(id), records.get(index as usize).unwrap()) {
                (Expected::Absent, got) => prop_assert_eq!(got, Record::Absent),
                (Expected::Fault(got), record) => {
                    let fault = ComputeFault { operator: 0, want: 2, got };
                    prop_assert_eq!(record, Record::Error(RecordError::Dimensions(fault)));
                }
                (Expected::Score(score), Record::Found(value)) => {
                    prop_assert!(k.is_none() || indexes.contains(&index));
                    prop_assert_eq!(json(&plan, value), serde_json::json!({"t": format!("row {id}"), "s": score}));
                }
                (Expected::Score(_), got) => {
                    prop_assert_eq!(got, Record::Unsent);
                    prop_assert!(k.is_some() && !indexes.contains(&index));
                }
            }
        }
        let counts = records.counts();
        prop_assert_eq!(counts.found + counts.absent + counts.error + counts.unanswered, ids.len() as u64);
    }
}

#[test]
fn ties_go_to_the_lesser_key_and_bytes_are_compared_as_bytes() {
    let rows = vec![Row::Vector(Some(vec![1, 0])); 4];
    let names: [&[u8]; 4] = [b"b", b"a", b"ab", b"\xff"];
    let source = node(&rows, |index| names[index].to_vec());
    let keys: ByteKeys = names.iter().collect();
    let (schema, plan) = (schema(), plan(Some(3)));
    let computation = Computation::new(&plan, &schema).unwrap();
    let mut records = compute(
        LookupKeys::Bytes(&keys),
        &source,
        &computation.over(&schema).unwrap(),
        Room::for_all(BYTES_MAX),
        &|| false,
    )
    .unwrap();
    assert_eq!(records.get(3), Some(Record::Unsent));
    assert_eq!(best(LookupKeys::Bytes(&keys), &mut records, &computation), Ok(vec![1, 2, 0]));
}

#[test]
fn damage_is_an_error_of_its_key_and_too_much_of_the_request() {
    let rows = [Row::Damaged, Row::Vector(Some(vec![1, 2]))];
    let source = node(&rows, |index| (index as u64).to_le_bytes().to_vec());
    let schema = schema();
    for k in [None, Some(5)] {
        let plan = plan(k);
        let computation = Computation::new(&plan, &schema).unwrap();
        let over = computation.over(&schema).unwrap();
        let run = |bytes_max| {
            compute(LookupKeys::Ids(&[0, 1, 1]), &source, &over, Room::for_all(bytes_max), &|| false)
        };
        let records = run(BYTES_MAX).unwrap();
        assert_eq!(records.get(0), Some(Record::Error(RecordError::Damaged)));
        assert!(matches!(records.get(1), Some(Record::Found(_))));
        assert_eq!(
            run(20).unwrap_err().to_string(),
            "the answer, or what it is made from, is more than 20 bytes: ask for less at once"
        );
        let gone = compute(LookupKeys::Ids(&[1]), &source, &over, Room::for_all(BYTES_MAX), &|| true);
        assert_eq!(gone, Err(kith_operators::EvaluateError::Cancelled));
    }
}

/// The schema of people with an age and tags.
fn people() -> Schema {
    r#"{"fields":[{"name":"age","type":"i32","nullable":true},{"name":"tags","type":"list<text>"},{"name":"w","type":"f64"}]}"#
        .parse()
        .unwrap()
}

fn people_node(rows: &[(Option<i32>, Vec<u8>)]) -> Node {
    let schema = people();
    let mut writer = RecordWriter::new(&schema);
    let rows = rows.iter().enumerate().map(|(index, (age, tags))| {
        let tags: Vec<String> = tags.iter().map(|tag| format!("tag {tag}")).collect();
        let json = serde_json::json!({"age": age, "tags": tags, "w": -0.0 * index as f64}).to_string();
        let mut value = Vec::new();
        writer.write_json(&json, &mut value).unwrap();
        ((index as u64).to_le_bytes().to_vec(), value)
    });
    Node(rows.collect())
}

/// The merged counts of the nodes' shares, and the counts over fetched records.
fn counted(ids: &[u64], nodes: usize, source: &Node, plan: &AggregatePlan) -> (Groups, Groups) {
    let schema = people();
    let aggregation = Aggregation::new(plan, &schema).unwrap();
    let over = aggregation.over(&schema).unwrap();
    let share = |node: usize| (0..ids.len() as u32).filter(move |index| *index as usize % nodes == node);
    let parts = (0..nodes).map(|node| {
        let keys: Vec<u64> = share(node).map(|index| ids[index as usize]).collect();
        let value = aggregate(LookupKeys::Ids(&keys), source, &over, &|| false).unwrap();
        Part { positions: share(node).collect(), value: Value::Groups(value) }
    });
    let operator = Operator::Aggregate(Arc::new(plan.clone()));
    let merged =
        Value::merge(&operator, ids.len(), parts.collect(), MissingKeyRule::Refuse, &mut Scratch::new())
            .unwrap();
    let Value::Groups(merged) = merged else { panic!("{merged:?}") };
    let fetched = lookup(&whole(ids), source, &|| false).unwrap();
    (merged, aggregate_fetched(&fetched, &over))
}

proptest! {
    #[test]
    fn counts_of_any_split_are_those_of_the_twin(
        rows in prop::collection::vec((prop::option::of(-5i32..5), prop::collection::vec(0u8..6, 0..4)), 1..40),
        ids in prop::collection::vec(0u64..50, 1..80),
        nodes in 1usize..5,
        top in 1u32..8,
    ) {
        let source = people_node(&rows);
        let found = || ids.iter().filter_map(|id| rows.get(*id as usize));
        for field in ["age", "tags"] {
            let plan = AggregatePlan { field: field.into(), by: GroupBy::Value { top }, reader: None };
            let (merged, fetched) = counted(&ids, nodes, &source, &plan);
            prop_assert_eq!(&merged, &fetched);
            let aggregation = Aggregation::new(&plan, &people()).unwrap();
            let got: Vec<(String, u64)> = merged.top(&aggregation).unwrap().into_iter().map(|(value, count)| (match value {
                Scalar::I32(age) => format!("{age:+03}"),
                Scalar::Text(tag) => tag.to_owned(),
                other => panic!("{other:?}"),
            }, count)).collect();
            let mut expected: BTreeMap<(i32, String), u64> = BTreeMap::new();
            for (age, tags) in found() {
                match field {
                    "age" => if let Some(age) = age { *expected.entry((*age, format!("{age:+03}"))).or_default() += 1 },
                    _ => for tag in tags { *expected.entry((0, format!("tag {tag}"))).or_default() += 1 },
                }
            }
            let mut expected: Vec<((i32, String), u64)> = expected.into_iter().collect();
            expected.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            expected.truncate(top as usize);
            let expected: Vec<(String, u64)> = expected.into_iter().map(|((_, value), count)| (value, count)).collect();
            prop_assert_eq!(got, expected);
            prop_assert!(!merged.truncated);
            prop_assert_eq!(merged.records.counts().found, found().count() as u64);
        }
        let at_least = |age: i128| Predicate::Compare(Comparison::Ge, Operand::Whole(age));
        let buckets = [-100, 0, 3].map(|age| Bucket { name: age.to_string(), predicate: at_least(age) });
        let plan = AggregatePlan { field: "age".into(), by: GroupBy::Bucket(buckets.to_vec()), reader: None };
        let (merged, fetched) = counted(&ids, nodes, &source, &plan);
        prop_assert_eq!(&merged, &fetched);
        let expected = [-100, 0, 3].map(|least| found().filter(|(age, _)| age.is_some_and(|age| least <= age)).count() as u64);
        prop_assert_eq!(merged.counts, expected);
    }
}

#[test]
fn more_values_than_are_kept_are_reported() {
    let rows: Vec<(Option<i32>, Vec<u8>)> =
        (0..Groups::VALUES_MAX as i32 + 2).map(|age| (Some(age), vec![])).collect();
    let source = people_node(&rows);
    let plan = AggregatePlan { field: "age".into(), by: GroupBy::Value { top: 1 }, reader: None };
    let ids: Vec<u64> = (0..rows.len() as u64).chain([3]).collect();
    let (merged, fetched) = counted(&ids, 2, &source, &plan);
    assert!(merged.truncated && fetched.truncated);
    assert_eq!(merged.values.len(), Groups::VALUES_MAX);
    let aggregation = Aggregation::new(&plan, &people()).unwrap();
    assert_eq!(merged.top(&aggregation), Ok(vec![(Scalar::I32(3), 2)]));
}

#[test]
fn zeros_are_one_value_and_wrong_plans_are_refused() {
    let source = people_node(&[(None, vec![]), (None, vec![])]);
    let by = |field: &str, by| AggregatePlan { field: field.into(), by, reader: None };
    let (merged, _) = counted(&[0, 1], 2, &source, &by("w", GroupBy::Value { top: 9 }));
    assert_eq!(merged.counts, [2]);
    let code = |plan: AggregatePlan| Aggregation::new(&plan, &people()).map(|_| ()).unwrap_err().code();
    assert_eq!(code(by("agee", GroupBy::Value { top: 9 })), ErrorCode::UnknownField);
    assert_eq!(code(by("age", GroupBy::Value { top: 0 })), ErrorCode::OutOfRange);
    assert_eq!(code(by("age", GroupBy::Bucket(vec![]))), ErrorCode::OutOfRange);
    let bucket = |operand| Bucket { name: "x".into(), predicate: Predicate::AnyOf(vec![operand]) };
    assert_eq!(
        code(by("age", GroupBy::Bucket(vec![bucket(Operand::Text("7".into()))]))),
        ErrorCode::WrongFieldType
    );
    assert_eq!(code(by("tags", GroupBy::Bucket(vec![bucket(Operand::Whole(7))]))), ErrorCode::WrongFieldType);
    let nan =
        Aggregation::new(&by("age", GroupBy::Bucket(vec![bucket(Operand::Float(f64::NAN))])), &people());
    let nan = nan.map(|_| ()).unwrap_err();
    assert_eq!(nan.code(), ErrorCode::BadRequest);
    let expected = "a condition on field \"age\" compares with NaN, but must compare with a finite number";
    assert_eq!(nan.to_string(), expected);
    let twice = vec![bucket(Operand::Whole(7)); 2];
    assert_eq!(code(by("age", GroupBy::Bucket(twice))), ErrorCode::BadRequest);
    let mut deep = Predicate::And(vec![]);
    for _ in 0..Predicate::DEPTH_MAX {
        deep = Predicate::Or(vec![deep]);
    }
    assert_eq!(
        code(by("age", GroupBy::Bucket(vec![Bucket { name: "x".into(), predicate: deep }]))),
        ErrorCode::BadRequest
    );
}

#[test]
fn a_node_that_sends_groups_of_another_plan_is_refused() {
    let plan = AggregatePlan { field: "age".into(), by: GroupBy::Value { top: 1 }, reader: None };
    let groups = |values: &[&[u8]], counts: Vec<u64>| {
        let values = values.iter().collect();
        let part = Value::Groups(Groups { records: Records::default(), values, counts, truncated: false });
        let operator = Operator::Aggregate(Arc::new(plan.clone()));
        let parts = vec![Part { positions: vec![], value: part }];
        Value::merge(&operator, 0, parts, MissingKeyRule::Refuse, &mut Scratch::new()).map(|_| ())
    };
    assert_eq!(groups(&[b"a", b"b"], vec![1, 2]), Ok(()));
    assert!(groups(&[b"b", b"a"], vec![1, 2]).is_err());
    assert!(groups(&[b"a"], vec![1, 2]).is_err());
}
