//! The writes and reads of clients.

use super::config::LiveConfig;
use kith_cache::live::{Query, Start};
use kith_live::testing::fixture;
use kith_live::{Conditions, GraphTypes, ListKey, Mutation, TypeId, Write};
use kith_types::{PartitionCount, PartitionId, partition_of_id};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The indexes in `fixture::NAMES` of the types whose associations have an inverse.
const TWO_SIDED: std::ops::Range<usize> = 2..6;

/// The ids and types that a run uses. There are few of them, so that operations conflict with each other.
pub(super) struct Universe {
    count: PartitionCount,
    pub(super) pairs: Vec<(u64, u64)>,
    kinds: Vec<&'static str>,
    is_narrow: bool,
}

/// Returns the write id of the write with the given number. A write without a write id is recognised by the time of its
/// association.
pub(super) fn id_of(number: usize) -> String {
    format!("w{number}")
}

impl Universe {
    pub(super) fn new(config: &LiveConfig) -> Self {
        let count = PartitionCount::new(config.partitions).expect("a cluster has partitions");
        let mut random = StdRng::seed_from_u64(config.seed ^ 0x7061_6972);
        let ids = |partition: u32| -> Vec<u64> {
            (1..).filter(|id| partition_of_id(*id, count) == PartitionId(partition)).take(40).collect()
        };
        let (a, b) = (ids(0), ids(1));
        let after = |ids: &[u64], low: u64| ids.iter().copied().find(|id| low < *id).unwrap_or(ids[0]);
        // The pairs are two across partitions 0 and 1 that partition 0 orders, one that partition 1 orders, one within a
        // partition, and one of an object with itself.
        let mut pairs = vec![(a[0], after(&b, a[0])), (a[1], after(&b, a[1]))];
        pairs.extend([(b[0], after(&a, b[0])), (a[0], a[1]), (a[0], a[0])]);
        pairs.truncate(if config.narrow { 2 } else { 5 });
        let kinds = match config.narrow {
            true => vec![fixture::NAMES[random.random_range(TWO_SIDED)]],
            false => fixture::NAMES[..6].to_vec(),
        };
        Self { count, pairs, kinds, is_narrow: config.narrow }
    }

    /// Draws the write with the given number. Only additions of associations may lack a write id; they are recognised by
    /// their time.
    pub(super) fn write(&self, number: usize, random: &mut StdRng) -> Write {
        let (one, other) = self.pairs[random.random_range(0..self.pairs.len())];
        let is_forward = self.is_narrow || random.random_ratio(1, 2);
        let (id1, id2) = if is_forward { (one, other) } else { (other, one) };
        let kind = self.kinds[random.random_range(0..self.kinds.len())].to_owned();
        // Accounts have few unique values, so that they are often taken.
        let value = if number.is_multiple_of(3) { "null".to_owned() } else { (number % 2).to_string() };
        let data = format!(r#"{{"a":{number},"b":{value}}}"#);
        let choice = if self.is_narrow { random.random_range(3..11) } else { random.random_range(0..13) };
        let mutation = match choice {
            0 => {
                let kind = if number.is_multiple_of(2) { "user" } else { "account" };
                let (kind, data) = (kind.to_owned(), Some(data));
                Mutation::AddObject { kind, data, id: Some(id1), near: None, text_id: None }
            }
            1 => Mutation::UpdateObject { id: id1, data },
            2 => Mutation::DeleteObject { id: id1 },
            3..8 => Mutation::AddAssociation { id1, kind, id2, time: Some(number as u64 + 1), data: None },
            8..11 => Mutation::DeleteAssociation { id1, kind, id2 },
            _ => {
                let is_two_sided = fixture::NAMES[TWO_SIDED].contains(&&*kind);
                let kinds = if is_two_sided { TWO_SIDED } else { 0..2 };
                let new_kind = fixture::NAMES[random.random_range(kinds)].to_owned();
                Mutation::ChangeType { id1, kind, id2, new_kind }
            }
        };
        let if_exists = [None, None, Some(true), Some(false)][random.random_range(0..4)];
        let is_addition = matches!(mutation, Mutation::AddAssociation { .. });
        let is_unnamed = is_addition && if_exists.is_none() && random.random_ratio(1, 4);
        let write_id = (!is_unnamed).then(|| id_of(number).parse().expect("the id is short and printable"));
        Write { mutation, conditions: Conditions { if_exists, if_version: None }, write_id }
    }

    /// Returns a write to the given partition, for the end of the run.
    pub(super) fn last_write(&self, number: usize, partition: PartitionId) -> Write {
        let id1 = (1..).find(|id| partition_of_id(*id, self.count) == partition).unwrap_or(1);
        let (kind, time) = ("likes".to_owned(), Some(number as u64 + 1));
        Write {
            mutation: Mutation::AddAssociation { id1, kind, id2: id1, time, data: None },
            conditions: Conditions::default(),
            write_id: id_of(number).parse().ok(),
        }
    }

    /// Draws a read. Returns it with the partition that answers it.
    pub(super) fn read(&self, types: &GraphTypes, random: &mut StdRng) -> (PartitionId, Query) {
        let (one, other) = self.pairs[random.random_range(0..self.pairs.len())];
        let (id1, id2) = if random.random_ratio(1, 2) { (one, other) } else { (other, one) };
        let kind = self.kinds[random.random_range(0..self.kinds.len())];
        let list = ListKey { id1, kind: types.association_named(kind).map_or(TypeId(0), |found| found.0) };
        let query = match random.random_range(0..6) {
            0 => Query::Objects(vec![id1]),
            1 => Query::Count(list),
            2 => Query::Get { list, ids: vec![id2], high: u64::MAX, low: 0 },
            3 => Query::TimeRange { list, high: u64::MAX, low: random.random_range(0..9), limit: 3 },
            _ => Query::Range { list, start: Start::Index(0), limit: random.random_range(1..6) },
        };
        (partition_of_id(id1, self.count), query)
    }

    /// Returns reads that together cover all objects and associations of the universe.
    pub(super) fn everything(&self, types: &GraphTypes) -> Vec<(PartitionId, Query)> {
        let mut ids: Vec<u64> = self.pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut reads = Vec::new();
        for id in ids {
            let partition = partition_of_id(id, self.count);
            reads.push((partition, Query::Objects(vec![id])));
            for &kind in types.associations.keys() {
                let list = ListKey { id1: id, kind };
                reads.push((partition, Query::Count(list)));
                reads.push((partition, Query::Range { list, start: Start::Index(0), limit: 64 }));
            }
        }
        reads
    }
}
