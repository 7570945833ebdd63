//! Malicious member tables and postings, with valid checksums.

use super::sealed::{Sealed, graph, members as table, postings as inverted, version};
use super::{PARTITION, folder};
use crate::properties::{Seed, take, take_word};
use kith_engine::{MemberTableReader, PostingsKeys, PostingsReader, VersionFolder};
use kith_schema::KindRole;
use kith_types::Direction;
use std::sync::LazyLock;

static EMPTY: LazyLock<Sealed> = LazyLock::new(|| table(&[]));
static MEMBERS: LazyLock<Sealed> = LazyLock::new(|| table(&IDS));
static POSTINGS: LazyLock<Sealed> =
    LazyLock::new(|| inverted(Direction::In, PostingsKeys::Members(IDS.len() as u32), &[]));
const IDS: [u64; 5] = [3, 1_005, 9_043, 1 << 40, u64::MAX];

/// Input: the number of ids, then the ids.
pub fn check(mut input: &[u8]) {
    let records = take_word::<4>(&mut input);
    let file = EMPTY.with(input, records, [0; 4]);
    let dir = folder();
    version(dir.path(), graph(KindRole::MembersOnly), &[&file]);
    let opened = VersionFolder::open(dir.path()).expect("the manifest is whole");
    let Ok(members) = MemberTableReader::open(&opened, PARTITION) else { return };
    let ids = members.ids().expect("every block is whole");
    assert_eq!(ids.len(), members.count() as usize);
    let is_sorted = ids.is_sorted_by(|a, b| a < b);
    let asked = ids.iter().copied().take(200).flat_map(|id| [id, id.wrapping_add(1)]).chain([0, 5, u64::MAX]);
    for id in asked {
        match members.ordinal(id) {
            Ok(Some(ordinal)) => assert_eq!(ids[ordinal as usize], id),
            Ok(None) => assert!(!is_sorted || ids.binary_search(&id).is_err(), "{id} is in the table"),
            Err(error) => assert!(!is_sorted, "{error}"),
        }
    }
    let mut resolved = Vec::new();
    let ordinals: Vec<u32> = (0..members.count()).collect();
    members.resolve(&ordinals, &mut resolved).expect("every ordinal is one of the table");
    assert_eq!(resolved, ids);
    assert!(members.resolve(&[members.count()], &mut resolved).is_err());
}

/// Input: whether keys have a table of their own, the number of pairs, two fields of the trailer, a neighbour to look up, and the body.
pub fn postings(mut input: &[u8]) {
    let own = take(&mut input);
    let pairs = take_word::<4>(&mut input);
    let [blocks, count] = [(); 2].map(|()| take_word::<4>(&mut input));
    let neighbour = take_word::<8>(&mut input);
    let file = POSTINGS.with(input, pairs, [blocks, u64::from(own), count, 0]);
    let dir = folder();
    version(dir.path(), graph(KindRole::Entity), &[&file, &MEMBERS]);
    let opened = VersionFolder::open(dir.path()).expect("the manifest is whole");
    let members = MemberTableReader::open(&opened, PARTITION).expect("the member table is whole");
    let Ok(postings) = PostingsReader::open(&opened, PARTITION, Direction::In) else { return };
    assert_eq!(postings.pairs(), pairs);
    for neighbour in [neighbour, neighbour.wrapping_add(1), 0, 7, 700, u64::MAX] {
        let mut keys = Vec::new();
        if postings.keys_of(neighbour, &members, &mut keys).is_ok() {
            assert!(keys.len() <= input.len(), "no more keys than bytes");
            if own == 0 {
                assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
                assert!(keys.iter().all(|key| IDS.contains(key)));
            }
        }
    }
}

pub fn seeds() -> Vec<Seed> {
    let of = |file: Sealed| [&(file.entry.records as u32).to_le_bytes()[..], file.body()].concat();
    let many: Vec<u64> = (0..300).map(|id| id * 7).collect();
    vec![
        ("none", of(table(&[]))),
        ("few", of(table(&IDS))),
        ("several-blocks", of(table(&many))),
        ("out-of-order", [&3u32.to_le_bytes()[..], &[9u64, 3, 7].map(u64::to_le_bytes).concat()].concat()),
        ("not-as-many", [&4u32.to_le_bytes()[..], &[3u64, 7].map(u64::to_le_bytes).concat()].concat()),
    ]
}

pub fn postings_seeds() -> Vec<Seed> {
    let of = |file: Sealed, neighbour: u64| {
        let [blocks, own, count, _] = file.fields();
        let mut input = vec![own as u8];
        for word in [file.entry.records, blocks, count] {
            input.extend_from_slice(&(word as u32).to_le_bytes());
        }
        [&input[..], &neighbour.to_le_bytes(), file.body()].concat()
    };
    let members = || PostingsKeys::Members(IDS.len() as u32);
    let pairs = [(0, 0), (7, 1), (7, 4), (700, 0), (700, 2), (u64::MAX, 3)];
    let many: Vec<(u64, u32)> = (0..120).flat_map(|id| [(id * 3, 0), (id * 3, 4)]).collect();
    let own = PostingsKeys::Own(vec![5, 6, 1 << 50]);
    let wide: Vec<u64> = (0..900).map(|id| id * 5).collect();
    let crowd: Vec<(u64, u32)> = (0..900).map(|ordinal| (7, ordinal)).collect();
    vec![
        ("none", of(inverted(Direction::In, members(), &[]), 7)),
        ("few", of(inverted(Direction::In, members(), &pairs), 7)),
        ("several-blocks", of(inverted(Direction::In, members(), &many), 30)),
        ("keys-of-its-own", of(inverted(Direction::In, own, &[(1, 2), (7, 0)]), 1)),
        ("one-neighbour-of-everybody", of(inverted(Direction::In, PostingsKeys::Own(wide), &crowd), 7)),
    ]
}
