//! Compares decisions with a model of TAO's operations that has no partitions, logs or pairs.

mod text_ids;

use super::*;
use crate::testing::Model;
use crate::twin::{Twin, ids_in};
use crate::{Batch, BatchPart, Conditions, EdgeKeys, Mutation, Write, fixture};
use kith_types::{PartitionId, Term};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Applies writes one after another, each until it is complete.
struct Runner {
    twin: Twin,
    now: u64,
}

impl Runner {
    fn new(partitions: u32) -> Self {
        let mut twin = Twin::new(partitions);
        let count = twin.count;
        for partition in count.iter() {
            twin.begin_term(partition, Term(1)).unwrap();
        }
        Self { twin, now: 1_000 }
    }

    fn rows(&self, partition: PartitionId, queries: Vec<crate::RowQuery>) -> Rows {
        let answers = self.twin.read(partition, &queries).answers;
        Rows::new(queries, answers)
    }

    fn context(&self, partition: PartitionId) -> DecisionContext<'_> {
        let end = self.twin.end(partition);
        let point = LogPoint { position: end.position.next(), ..end };
        let guards = Guards::default();
        DecisionContext { types: &self.twin.types, count: self.twin.count, point, now: self.now, guards }
    }

    fn commit(&mut self, partition: PartitionId, change: LoggedChange) {
        let part = BatchPart { partition, expected: self.twin.end(partition), changes: vec![change] };
        self.twin.commit(&Batch { parts: vec![part], requires: Vec::new() }).unwrap();
        assert_eq!(self.twin.faults, [""; 0]);
    }

    fn decide(&self, write: &Write) -> (PartitionId, Decision) {
        let write = ResolvedWrite::new(write, &self.twin.types, self.twin.count).unwrap();
        let rows = self.rows(write.partition, write.queries(self.twin.count));
        (write.partition, decide(&write, &rows, self.context(write.partition)).unwrap())
    }

    fn run(&mut self, write: &Write) -> Outcome {
        self.now += 1;
        match self.decide(write) {
            (_, Decision::Nothing(outcome)) => outcome,
            (_, Decision::Repeated(recorded)) => recorded.outcome,
            (partition, Decision::Changed(outcome, change)) => {
                self.commit(partition, change);
                outcome
            }
            (partition, Decision::Begun(intent, change)) => {
                self.commit(partition, change);
                self.finish(&intent);
                Outcome::Done(intent.done)
            }
            (_, Decision::IdTaken | Decision::Invalid(_)) => panic!("the programs contain no such writes"),
        }
    }

    /// Delivers an intent, and completes it.
    fn finish(&mut self, intent: &Intent) {
        let (here, there) = intent.pair.partitions(self.twin.count);
        let rows = self.rows(there, delivery_queries(intent, self.twin.count));
        let change = deliver(intent, intent.stamp, &rows, self.context(there)).unwrap();
        self.commit(there, change.expect("the other end has not applied the intent yet"));
        let again = self.rows(there, delivery_queries(intent, self.twin.count));
        assert_eq!(deliver(intent, intent.stamp, &again, self.context(there)), Ok(None));
        let rows = self.rows(here, completion_queries(intent, self.twin.count));
        let change = complete(intent, self.twin.end(there), &rows, self.context(here)).unwrap();
        self.commit(here, change);
    }
}

/// Returns ids in two partitions, so that some pairs are split and others are not.
fn ids() -> Vec<u64> {
    let count = kith_types::PartitionCount::new(2).unwrap();
    (0..2).flat_map(|partition| ids_in(PartitionId(partition), count).take(2)).collect()
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let id = || proptest::sample::select(ids());
    let kind = || proptest::sample::select(fixture::NAMES.to_vec()).prop_map(str::to_owned);
    let object = proptest::sample::select(vec!["{}", r#"{"a":1}"#, r#"{"b":2}"#, r#"{"a":null,"b":3}"#]);
    let object = object.prop_map(str::to_owned);
    let number = proptest::option::of((0..3i64).prop_map(|n| format!(r#"{{"n":{n}}}"#)));
    let add = (id(), kind(), id(), proptest::option::of(0..5u64), number);
    prop_oneof![
        1 => (id(), proptest::option::of(object.clone()))
            .prop_map(|(id, data)| Mutation::AddObject { kind: "user".to_owned(), data, id: Some(id), near: None, text_id: None }),
        1 => (id(), object).prop_map(|(id, data)| Mutation::UpdateObject { id, data }),
        1 => id().prop_map(|id| Mutation::DeleteObject { id }),
        6 => add.prop_map(|(id1, kind, id2, time, data)| Mutation::AddAssociation { id1, kind, id2, time, data }),
        4 => (id(), kind(), id()).prop_map(|(id1, kind, id2)| Mutation::DeleteAssociation { id1, kind, id2 }),
        4 => (id(), kind(), id(), kind())
            .prop_map(|(id1, kind, id2, new_kind)| Mutation::ChangeType { id1, kind, id2, new_kind }),
    ]
}

/// Programs of writes: each has a mutation, a number that chooses its conditions, and perhaps a number for its write id.
fn program() -> impl Strategy<Value = Vec<(Mutation, u8, Option<u8>)>> {
    proptest::collection::vec((mutation(), 0..8u8, proptest::option::of(0..6u8)), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn writes_do_what_tao_says(program in program(), partitions in 1..3u32) {
        let mut runner = Runner::new(partitions);
        let mut model = Model::default();
        // A write id names one write: a later write of the program with the same id becomes a repeat of it.
        let mut named: BTreeMap<u8, Write> = BTreeMap::new();
        for (mutation, condition, name) in program {
            let found = model.found(&mutation).1.unwrap_or(0);
            let conditions = match condition {
                0 => Conditions { if_exists: Some(true), ..Conditions::default() },
                1 => Conditions { if_exists: Some(false), ..Conditions::default() },
                2 => Conditions { if_version: Some(found), ..Conditions::default() },
                3 => Conditions { if_version: Some(found + 1), if_exists: Some(true) },
                _ => Conditions::default(),
            };
            let write_id = name.map(|name| format!("w{name}").parse().unwrap());
            let mut write = Write { mutation, conditions, write_id };
            if let Some(name) = name {
                write = named.entry(name).or_insert(write).clone();
            }
            if ResolvedWrite::new(&write, &runner.twin.types, runner.twin.count).is_err() {
                named.retain(|_, known| *known != write);
                continue;
            }
            let before: Vec<_> = runner.twin.count.iter().map(|it| runner.twin.end(it)).collect();
            let outcome = runner.run(&write);
            let version = if let Outcome::Done(done) = outcome { done.version } else { 0 };
            prop_assert_eq!(outcome, model.run(&write, version, runner.now), "{:?}", write);
            if write.write_id.is_none() && version == 0 {
                let after: Vec<_> = runner.twin.count.iter().map(|it| runner.twin.end(it)).collect();
                prop_assert_eq!(before, after, "nothing was written");
            }
            same_state(&runner.twin, &model)?;
        }
        prop_assert_eq!(runner.twin.open_intents(), 0);
    }
}

fn same_state(twin: &Twin, model: &Model) -> Result<(), TestCaseError> {
    let json = |kind: crate::TypeId, data: &crate::Data| {
        serde_json::from_str::<serde_json::Value>(&twin.types.decode(kind, data).unwrap()).unwrap()
    };
    let objects: BTreeMap<_, _> = twin
        .objects()
        .into_iter()
        .map(|(id, object)| {
            let fields = json(object.kind, &object.data);
            (id, (object.stamp.position.0, [fields["a"].as_i64(), fields["b"].as_i64()]))
        })
        .collect();
    prop_assert_eq!(&objects, &model.objects);
    let edges: BTreeMap<_, _> = twin
        .associations()
        .into_iter()
        .map(|(key, row)| {
            let name = twin.types.associations[&key.list.kind].name.clone();
            let number = json(key.list.kind, &row.data)["n"].as_i64();
            ((key.list.id1, name, key.id2), (row.stamp.position.0, row.time, number))
        })
        .collect();
    prop_assert_eq!(&edges, &model.edges);
    Ok(())
}

fn add(id1: u64, kind: &str, id2: u64, name: Option<&str>) -> Write {
    let mutation = Mutation::AddAssociation { id1, kind: kind.to_owned(), id2, time: Some(1), data: None };
    let write_id = name.map(|name| name.parse().unwrap());
    Write { mutation, conditions: Conditions::default(), write_id }
}

#[test]
fn another_write_under_a_known_id_is_refused() {
    let mut runner = Runner::new(1);
    runner.run(&add(1, "likes", 2, Some("w")));
    assert!(matches!(runner.decide(&add(1, "likes", 2, Some("w"))).1, Decision::Repeated(_)));
    assert_eq!(runner.decide(&add(1, "likes", 3, Some("w"))).1, Decision::IdTaken);
}

#[test]
fn fields_that_an_object_cannot_have_are_found_when_its_type_is_known() {
    let mut runner = Runner::new(1);
    let write = |mutation| Write { mutation, conditions: Conditions::default(), write_id: None };
    let update = write(Mutation::UpdateObject { id: 5, data: r#"{"c":1}"#.to_owned() });
    assert_eq!(runner.run(&update), nothing_to_do(5));
    let kind = "user".to_owned();
    runner.run(&write(Mutation::AddObject { kind, data: None, id: Some(5), near: None, text_id: None }));
    assert!(matches!(runner.decide(&update).1, Decision::Invalid(_)));
}

#[test]
fn an_edge_that_becomes_its_own_inverse_keeps_both_rows() {
    let mut runner = Runner::new(1);
    runner.run(&add(9, "follows", 9, None));
    let mutation = Mutation::ChangeType {
        id1: 9,
        kind: "follows".to_owned(),
        id2: 9,
        new_kind: "followed_by".to_owned(),
    };
    runner.run(&Write { mutation, conditions: Conditions::default(), write_id: None });
    let rows = runner.twin.associations();
    let keys = EdgeKeys::of(&runner.twin.types, 9, "follows", 9).unwrap();
    assert!(keys.rows().all(|key| rows[&key].stamp.position.0 == 2));
}
