//! Pseudo-random numbers that depend only on the seed.

use super::truth::{Op, index_key, list};
use crate::live::query::{Query, Start};
use kith_live::ListPlace;
use kith_types::fmix64;

pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        fmix64(self.0) % bound
    }

    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(super) fn ids(&mut self) -> Vec<u64> {
        (0..self.below(4)).map(|_| self.below(9)).collect()
    }

    pub(super) fn op(&mut self) -> Op {
        let list = list(self.below(2));
        match self.below(16) {
            0 => Op::Object(self.below(4)),
            1..4 => Op::Indexed(self.below(4), [self.below(3), self.below(3)]),
            4 => Op::LargeObject(self.below(4)),
            5 | 6 => Op::NoObject(self.below(4)),
            7 => Op::NewType(self.below(4), self.below(3)),
            8 => Op::Nothing,
            9..14 => Op::Put(list, self.below(12), self.below(6)),
            _ => Op::Remove(list, self.below(9)),
        }
    }

    fn entries_query(&mut self) -> Query {
        let (index, key) = index_key(1 + self.below(3) as u32, self.below(3));
        let after = if self.once_in(4) { Some(self.below(4)) } else { None };
        Query::Entries {
            index,
            key,
            after,
            limit: if self.once_in(2) { 100 } else { 1 + self.below(3) as u32 },
        }
    }

    pub(super) fn query(&mut self) -> Query {
        let list = list(self.below(3));
        let (one, other) = (self.below(7), self.below(7));
        let (low, high) = if self.once_in(3) { (0, u64::MAX) } else { (one, other) };
        let limit = if self.once_in(3) { 100 } else { self.below(6) } as u32;
        match self.below(7) {
            5 | 6 => self.entries_query(),
            0 => Query::Objects((0..self.below(3)).map(|_| self.below(5)).collect()),
            1 => Query::Count(list),
            2 => Query::Get { list, ids: self.ids(), high, low },
            3 => Query::TimeRange { list, high, low, limit },
            _ if self.once_in(2) => Query::Range { list, start: Start::Index(self.below(9) as u32), limit },
            _ => {
                let position = ListPlace { time: one, id2: self.below(9) };
                Query::Range { list, start: Start::After(position), limit }
            }
        }
    }
}
