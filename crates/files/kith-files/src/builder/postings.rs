//! The second half of a partition: its member table, and the postings of its lists.
//!
//! Both need all sorted keys of the partition, so they are written after its adjacency lists, by a separate thread while
//! the lists of the next partition are read. Memory: the sort budget of the pairs, and twelve to sixteen bytes per key of
//! one partition (the table that ordinals refer to, and a hash table of it).

use super::BuildError;
use crate::sort::ExternalSorter;
use kith_engine::{FileEntry, MemberTableWriter, PostingsKeys, PostingsWriter};
use kith_types::{Direction, PartitionId, fmix64};
use std::path::Path;

/// All data of a partition that are still to be written.
pub(super) struct PartitionTail {
    pub(super) partition: PartitionId,
    /// The members, sorted and distinct.
    pub(super) members: Vec<u64>,
    pub(super) lists: Vec<ListTail>,
}

/// The data of one list that are still to be written.
pub(super) struct ListTail {
    pub(super) list: Direction,
    /// The sorted, distinct keys of the lists if they are not members.
    pub(super) own_keys: Option<Vec<u64>>,
    /// (neighbour, key) of every list entry.
    pub(super) pairs: ExternalSorter<[u64; 2]>,
}

impl PartitionTail {
    /// Writes the files into `dir`.
    pub(super) fn write(self, dir: &Path) -> Result<Vec<FileEntry>, BuildError> {
        let mut table = MemberTableWriter::create(dir, self.partition)?;
        for &id in &self.members {
            table.append(id)?;
        }
        let mut files = vec![table.finish()?];
        let members = Ordinals::new(&self.members);
        for list in self.lists {
            files.push(list.write(dir, self.partition, &members)?);
        }
        Ok(files)
    }
}

impl ListTail {
    fn write(
        self,
        dir: &Path,
        partition: PartitionId,
        members: &Ordinals<'_>,
    ) -> Result<FileEntry, BuildError> {
        let own = self.own_keys.as_deref().map(Ordinals::new);
        let ordinals = own.as_ref().unwrap_or(members);
        let keys = match &self.own_keys {
            Some(keys) => PostingsKeys::Own(keys.clone()),
            // A member table never has more ids, because its writer would have refused them.
            None => PostingsKeys::Members(members.ids.len() as u32),
        };
        let mut postings = PostingsWriter::create(dir, partition, self.list, keys)?;
        let mut pairs = self.pairs.finish()?;
        while let Some([neighbour, key]) = pairs.next()? {
            postings.append(neighbour, ordinals.of(key))?;
        }
        Ok(postings.finish()?)
    }
}

/// Finds the ordinal of an id in a sorted table, in constant time.
struct Ordinals<'a> {
    ids: &'a [u64],
    /// The ordinal + 1 of an id, at the slot of its hash or the next free one; 0 is empty. At most half full.
    slots: Vec<u32>,
}

impl<'a> Ordinals<'a> {
    fn new(ids: &'a [u64]) -> Self {
        let mut table = Ordinals { ids, slots: vec![0; (ids.len() * 2).next_power_of_two()] };
        for (ordinal, &id) in ids.iter().enumerate() {
            let slot = table.slots(id).find(|&slot| table.slots[slot] == 0);
            let slot = slot.expect("the table is at most half full");
            table.slots[slot] = ordinal as u32 + 1;
        }
        table
    }

    /// The slots to examine for `id`. The lower bits of the hash are used, because the upper ones select the partition.
    fn slots(&self, id: u64) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len() - 1;
        let home = fmix64(id) as usize;
        (0..=mask).map(move |step| (home + step) & mask)
    }

    /// The ordinal of `id`, which is in the table.
    #[inline]
    fn of(&self, id: u64) -> u32 {
        self.slots(id)
            .map(|slot| self.slots[slot].wrapping_sub(1))
            .find(|&ordinal| self.ids[ordinal as usize] == id)
            .expect("every key of a list is in the table of its partition")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_of_a_table_is_found_at_its_place() {
        for count in [1u64, 2, 3, 1_000] {
            let mut ids: Vec<u64> = (0..count).map(|i| fmix64(i) | 1 << 63).collect();
            ids.sort();
            let ordinals = Ordinals::new(&ids);
            for (index, &id) in ids.iter().enumerate() {
                assert_eq!(ordinals.of(id), index as u32);
            }
        }
    }
}
