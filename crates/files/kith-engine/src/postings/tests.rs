//! Compares postings with a sorted set of pairs.

use super::{PostingsKeys, PostingsReader, PostingsWriter};
use crate::errors::WriteError;
use crate::manifest::{Content, Counts, GraphContent, Manifest};
use crate::members::{MemberTableReader, MemberTableWriter};
use crate::pack::{VersionFolder, seal_version};
use kith_schema::KindRole;
use kith_types::{Direction, PartitionCount, PartitionId, StoreVersion};
use proptest::prelude::*;
use std::collections::BTreeSet;

const PARTITION: PartitionId = PartitionId(0);

/// Writes pairs of (neighbour, ordinal) over a table, and looks up each neighbour and some absent ones.
fn check(table: &[u64], pairs: &BTreeSet<(u64, u32)>, own: bool) {
    let dir = tempfile::tempdir().unwrap();
    let keys =
        if own { PostingsKeys::Own(table.to_vec()) } else { PostingsKeys::Members(table.len() as u32) };
    let mut writer = PostingsWriter::create(dir.path(), PARTITION, Direction::In, keys).unwrap();
    pairs.iter().for_each(|&(neighbour, ordinal)| writer.append(neighbour, ordinal).unwrap());
    let mut members = MemberTableWriter::create(dir.path(), PARTITION).unwrap();
    table.iter().for_each(|&id| members.append(id).unwrap());
    let files = vec![writer.finish().unwrap(), members.finish().unwrap()];
    let (role, count) = (KindRole::Entity, PartitionCount::new(1).unwrap());
    let content = Content::Graph(GraphContent {
        graph: "people".to_owned(),
        role,
        columns: Vec::new(),
        counts: Counts::default(),
    });
    let manifest = Manifest::new("school".to_owned(), StoreVersion(1), count, content, files);
    seal_version(dir.path(), &manifest).unwrap();
    let folder = VersionFolder::open(dir.path()).unwrap();
    let members = MemberTableReader::open(&folder, PARTITION).unwrap();
    assert_eq!(members.ids().unwrap(), table);
    let reader = PostingsReader::open(&folder, PARTITION, Direction::In).unwrap();
    assert_eq!(reader.pairs(), pairs.len() as u64);
    let mut asked: BTreeSet<u64> = pairs.iter().map(|pair| pair.0).collect();
    let near: Vec<u64> = asked.iter().flat_map(|&id| [id.wrapping_sub(1), id.wrapping_add(1)]).collect();
    asked.extend(near);
    asked.extend([0, u64::MAX]);
    for neighbour in asked {
        let mut got = Vec::new();
        reader.keys_of(neighbour, &members, &mut got).unwrap();
        let of_neighbour = pairs.range((neighbour, 0)..=(neighbour, u32::MAX));
        let expected: Vec<u64> = of_neighbour.map(|&(_, ordinal)| table[ordinal as usize]).collect();
        assert_eq!(got, expected, "{neighbour}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn postings_answer_as_a_set_of_pairs_does(
        table in prop::collection::btree_set(any::<u64>(), 1..400),
        raw in prop::collection::vec((any::<u64>(), any::<prop::sample::Index>()), 0..3_000),
        narrow in 0u32..64,
        own: bool,
    ) {
        let table: Vec<u64> = table.into_iter().collect();
        let pairs = raw.iter().map(|(id, index)| (id >> narrow, index.index(table.len()) as u32)).collect();
        check(&table, &pairs, own);
    }
}

#[test]
fn gaps_beyond_half_of_all_ids_are_kept() {
    let pairs = BTreeSet::from([(0, 0), (1 << 63, 1), (u64::MAX, 0), (u64::MAX, 2)]);
    check(&[5, 6, 7], &pairs, false);
    check(&[5, 6, 7], &BTreeSet::from([(0, 2), (u64::MAX, 2)]), true);
    check(&[], &BTreeSet::new(), true);
}

#[test]
fn one_neighbour_of_everybody_fills_many_blocks() {
    let table: Vec<u64> = (0..20_000).map(|index| index * 3).collect();
    // Every second ordinal, so that gaps are not minimal, with pairs of a smaller and a greater neighbour around them.
    let mut pairs: BTreeSet<(u64, u32)> = (0..20_000).step_by(2).map(|ordinal| (9, ordinal)).collect();
    pairs.extend([(8, 19_999), (10, 0), (10, 19_999)]);
    check(&table, &pairs, false);
}

#[test]
fn a_hundred_keys_and_many_neighbours_cost_less_than_three_bytes_per_pair() {
    let dir = tempfile::tempdir().unwrap();
    let keys = PostingsKeys::Members(130);
    let mut writer = PostingsWriter::create(dir.path(), PARTITION, Direction::Both, keys).unwrap();
    // Resembles one of 1,536 partitions of kith-metro: 9,100 pairs over ids up to 701,582.
    let pairs: BTreeSet<(u64, u32)> = (0..9_100u64)
        .map(|index| (kith_types::fmix64(index) % 701_582, kith_types::fmix64(!index) as u32 % 130))
        .collect();
    pairs.iter().for_each(|&(neighbour, ordinal)| writer.append(neighbour, ordinal).unwrap());
    let entry = writer.finish().unwrap();
    let per_pair = entry.bytes as f64 / pairs.len() as f64;
    assert!(per_pair < 3.0, "{per_pair} bytes per pair");
}

#[test]
fn the_writer_refuses_disorder_repeats_and_strangers() {
    let dir = tempfile::tempdir().unwrap();
    let create = |list, keys| PostingsWriter::create(dir.path(), PARTITION, list, keys);
    let mut writer = create(Direction::Out, PostingsKeys::Members(3)).unwrap();
    writer.append(5, 1).unwrap();
    assert!(matches!(writer.append(5, 1), Err(WriteError::Duplicate { record: 1, .. })));
    assert!(matches!(writer.append(5, 0), Err(WriteError::OutOfOrder { .. })));
    assert!(matches!(writer.append(4, 2), Err(WriteError::OutOfOrder { .. })));
    assert!(matches!(writer.append(6, 3), Err(WriteError::OrdinalOutOfRange { got: 3, count: 3, .. })));
    let unsorted = PostingsKeys::Own(vec![4, 4]);
    assert!(matches!(create(Direction::In, unsorted), Err(WriteError::OutOfOrder { record: 1, .. })));
    let mut table = MemberTableWriter::create(dir.path(), PARTITION).unwrap();
    table.append(7).unwrap();
    assert!(matches!(table.append(7), Err(WriteError::Duplicate { .. })));
    assert!(matches!(table.append(6), Err(WriteError::OutOfOrder { .. })));
}
