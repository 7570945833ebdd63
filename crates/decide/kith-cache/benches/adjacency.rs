//! Benchmarks of the sorted adjacency of one partition: lists at the newest point and at an earlier point, changes, and
//! changes of a hub.
//!
//! The graph has 20,000 members with 100 connections each, which makes 2 million associations. The hub has a million.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use kith_cache::adjacency::{Adjacency, AdjacencyOptions, AdjacencyReader};
use kith_live::{Association, AssociationKey, Change, Effect, GraphTypes, ListKey, TypeId};
use kith_schema::{EdgeSelector, NeighbourSource};
use kith_types::{Direction, LogPoint, PartitionCount, PartitionId, Timestamp, fmix64};
use std::ops::ControlFlow;

const MEMBERS: u64 = 20_000;
const DEGREE: u64 = 100;
const HUB: u64 = MEMBERS + 1;
const HUB_DEGREE: u64 = 1_000_000;
const KEYS: usize = 500;
const HERE: PartitionId = PartitionId(0);

fn main() {
    divan::main();
}

fn key(id1: u64, id2: u64) -> AssociationKey {
    ListKey { id1, kind: TypeId(2) }.to(id2)
}

/// Returns the id of a neighbour that may lie in any partition.
fn other(number: u64) -> u64 {
    (fmix64(number) >> 24) | 1 << 62
}

fn graph() -> Adjacency {
    let declared =
        "[object.person]\n[association.friend]\nsymmetric = true".parse().expect("the declaration is valid");
    let types = GraphTypes::new(1, &declared).expect("the types are valid");
    assert_eq!(types.association("friend").map(|(kind, _)| kind), Some(TypeId(2)));
    let one = PartitionCount::new(1).expect("1 is a valid count");
    let graph = Adjacency::new(one, &types, AdjacencyOptions::default());
    let mut build = graph.open(HERE);
    let members: Vec<u64> = (1..=HUB).collect();
    build.objects(LogPoint::new(1, 0), &members, true).expect("the page is the first one");
    for member in members {
        let degree = if member == HUB { HUB_DEGREE } else { DEGREE };
        let ids = (0..degree).map(|number| other(member * HUB_DEGREE + number));
        let mut keys: Vec<AssociationKey> = ids.map(|id2| key(member, id2)).collect();
        keys.sort_unstable();
        keys.dedup();
        build.associations(LogPoint::new(1, 0), &keys, member == HUB).expect("the page is the next one");
    }
    graph.install(build).expect("the build is complete");
    graph
}

/// Adds and removes associations of the members that `member` chooses, at consecutive positions.
struct Writer {
    position: u64,
    member: fn(u64) -> u64,
}

impl Writer {
    fn write(&mut self, graph: &Adjacency) {
        self.position += 1;
        // Each association is removed by the next change.
        let number = self.position.div_ceil(2);
        let (member, id2) = ((self.member)(number), other(u64::MAX - number));
        let (list, count) = (key(member, id2).list, DEGREE);
        let stamp = LogPoint::new(1, self.position);
        let now = Association { id2, time: 0, stamp, data: Default::default() };
        let effect = match self.position % 2 {
            1 => Effect::Association { list, now, was: None, count },
            _ => Effect::NoAssociation { list, id2, was: 0, count },
        };
        let applied = graph.apply(HERE, stamp, &Change { effects: vec![effect] }, Timestamp::ZERO);
        black_box(applied);
    }
}

fn friends() -> EdgeSelector {
    EdgeSelector { kind: "friend".to_owned(), direction: Direction::Both, filter: None }
}

fn read(reader: &AdjacencyReader, keys: &[u64]) -> usize {
    let mut ids = 0;
    let each = &mut |_, list: Option<&[u64]>| {
        ids += list.map_or(0, <[u64]>::len);
        ControlFlow::Continue(())
    };
    reader.lists(&friends(), keys, each).expect("the point is available");
    ids
}

fn keys() -> Vec<u64> {
    (0..KEYS as u64).map(|number| 1 + fmix64(number) % MEMBERS).collect()
}

fn reader(graph: &Adjacency) -> AdjacencyReader {
    graph.reader([(HERE, None)]).expect("the partition is built")
}

#[divan::bench]
fn lists_at_the_newest_point(bencher: Bencher<'_, '_>) {
    let (graph, keys) = (graph(), keys());
    let reader = reader(&graph);
    bencher.counter(ItemsCount::new(KEYS)).bench(|| read(&reader, &keys));
}

/// Since that point, 8,000 changes of other members or of the same members were applied.
#[divan::bench]
fn lists_at_a_point_of_the_past(bencher: Bencher<'_, '_>) {
    let (graph, keys) = (graph(), keys());
    let reader = reader(&graph);
    let mut writer = Writer { position: 0, member: |number| 1 + fmix64(number / 2) % MEMBERS };
    (0..8_000).for_each(|_| writer.write(&graph));
    bencher.counter(ItemsCount::new(KEYS)).bench(|| read(&reader, &keys));
}

#[divan::bench]
fn postings(bencher: Bencher<'_, '_>) {
    let graph = graph();
    let reader = reader(&graph);
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(KEYS)).bench_local(|| {
        out.clear();
        for number in 0..KEYS as u64 {
            let read = reader.postings(&friends(), HERE, other(HUB_DEGREE + number), &mut out);
            read.expect("the point is available");
        }
        out.len()
    });
}

#[divan::bench]
fn apply(bencher: Bencher<'_, '_>) {
    let graph = graph();
    let mut writer = Writer { position: 0, member: |number| 1 + fmix64(number) % MEMBERS };
    bencher.counter(ItemsCount::new(1_000u32)).bench_local(|| (0..1_000).for_each(|_| writer.write(&graph)));
}

#[divan::bench]
fn apply_to_a_hub(bencher: Bencher<'_, '_>) {
    let graph = graph();
    let mut writer = Writer { position: 0, member: |_| HUB };
    bencher.counter(ItemsCount::new(1_000u32)).bench_local(|| (0..1_000).for_each(|_| writer.write(&graph)));
}

#[divan::bench]
fn read_a_hub(bencher: Bencher<'_, '_>) {
    let graph = graph();
    let reader = reader(&graph);
    bencher.bench(|| read(&reader, &[HUB]));
}
