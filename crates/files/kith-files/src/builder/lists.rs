//! The second half of a build: writes sorted records to the files of one partition after another.

use super::postings::{ListTail, PartitionTail};
use super::record::{EdgeRecord, ListTag, list_tag};
use super::{BuildError, BuildOptions, BuildProgress, BuildSummary, PAIR_SHARE, sort_options};
use crate::{ExternalSorter, SortError, SortedRecords};
use kith_engine::{ChunkSetWriter, FileEntry, KeyType, encode_list, lists_of};
use kith_schema::KindRole;
use kith_types::{Direction, PartitionId};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;

/// The files of all partitions together.
#[derive(Default)]
pub(super) struct WrittenLists {
    pub(super) files: Vec<FileEntry>,
    /// All counts except bytes and self loops.
    pub(super) counts: BuildSummary,
}

/// Takes the tails of partitions in order. `Break` means that it has failed and reports its error elsewhere.
type TailSink<'a> = dyn FnMut(PartitionTail) -> Result<ControlFlow<()>, BuildError> + 'a;

/// Writes every partition into `dir`.
pub(super) fn write<const N: usize>(
    records: SortedRecords<EdgeRecord<N>>,
    members: SortedRecords<[u64; 2]>,
    options: &BuildOptions,
    dir: &Path,
    progress: &mut dyn FnMut(BuildProgress),
) -> Result<WrittenLists, BuildError> {
    let spilled_runs = records.spilled_runs() + members.spilled_runs();
    let mut lists = Lists {
        records: Peekable::new(records)?,
        members: Peekable::new(members)?,
        options,
        dir,
        list: List::new(options.columns.len()),
        written: WrittenLists {
            counts: BuildSummary { spilled_runs, ..BuildSummary::default() },
            files: Vec::new(),
        },
    };
    let mut tails = if options.threads < 2 {
        lists.write_in_turn(progress)?
    } else {
        lists.write_in_parallel(progress)?
    };
    lists.written.files.append(&mut tails);
    Ok(lists.written)
}

struct Lists<'a, const N: usize> {
    records: Peekable<EdgeRecord<N>>,
    members: Peekable<[u64; 2]>,
    options: &'a BuildOptions,
    dir: &'a Path,
    /// The current list.
    list: List,
    written: WrittenLists,
}

impl<const N: usize> Lists<'_, N> {
    /// Writes every partition completely before the next one. Returns the files of their tails.
    fn write_in_turn(
        &mut self,
        progress: &mut dyn FnMut(BuildProgress),
    ) -> Result<Vec<FileEntry>, BuildError> {
        let (dir, mut files) = (self.dir, Vec::new());
        self.write_all(progress, &mut |tail| {
            files.extend(tail.write(dir)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(files)
    }

    /// Writes partitions like [`Lists::write_in_turn`], but a thread writes the tail of a partition while the next one is
    /// read.
    fn write_in_parallel(
        &mut self,
        progress: &mut dyn FnMut(BuildProgress),
    ) -> Result<Vec<FileEntry>, BuildError> {
        let dir = self.dir;
        thread::scope(|scope| {
            // A rendezvous channel: one partition is read while one is written, and no third one waits.
            let (send, receive) = sync_channel::<PartitionTail>(0);
            let worker = scope.spawn(move || {
                let mut files = Vec::new();
                for tail in receive {
                    files.extend(tail.write(dir)?);
                }
                Ok::<_, BuildError>(files)
            });
            let read = self.write_all(progress, &mut |tail| {
                Ok(send.send(tail).map_or(ControlFlow::Break(()), ControlFlow::Continue))
            });
            drop(send);
            let files = worker.join().expect("the thread that writes postings does not panic")?;
            read.map(|()| files)
        })
    }

    fn write_all(
        &mut self,
        progress: &mut dyn FnMut(BuildProgress),
        tails: &mut TailSink<'_>,
    ) -> Result<(), BuildError> {
        let partitions = self.options.partitions;
        for partition in partitions.iter() {
            let tail = self.write_partition(partition)?;
            if tails(tail)?.is_break() {
                return Ok(());
            }
            let (partitions_done, partitions_total) = (partition.0 + 1, partitions.get());
            progress(BuildProgress { partitions_done, partitions_total });
        }
        debug_assert!(self.records.head.is_none() && self.members.head.is_none(), "all is written");
        Ok(())
    }

    /// Writes the adjacency lists of a partition, and gathers the data of its other files.
    fn write_partition(&mut self, partition: PartitionId) -> Result<PartitionTail, BuildError> {
        let mut tail = PartitionTail { partition, members: Vec::new(), lists: Vec::new() };
        while let Some([_, id]) = self.members.next_if(|&[at, _]| at == u64::from(partition.0))? {
            tail.members.push(id);
        }
        for (index, &list) in lists_of(self.options.role).iter().enumerate() {
            let (mut keys, pairs) = self.write_lists(partition, index, list)?;
            let mut own_keys = None;
            if self.options.role == KindRole::Entity && list == Direction::In {
                keys.sort_unstable();
                self.written.counts.entities += keys.len() as u64;
                own_keys = Some(keys);
            } else {
                tail.members.append(&mut keys);
            }
            tail.lists.push(ListTail { list, own_keys, pairs });
        }
        tail.members.sort_unstable();
        tail.members.dedup();
        self.written.counts.members += tail.members.len() as u64;
        Ok(tail)
    }

    /// Writes all lists of one direction. Returns their keys, and the pairs for their postings.
    fn write_lists(
        &mut self,
        partition: PartitionId,
        index: usize,
        list: Direction,
    ) -> Result<(Vec<u64>, ExternalSorter<[u64; 2]>), BuildError> {
        let mut sort = sort_options(self.options, PAIR_SHARE, 1);
        // Two partitions are processed at a time, each with all its lists.
        sort.memory_bytes /= 2 * lists_of(self.options.role).len();
        let (mut keys, mut pairs) = (Vec::new(), ExternalSorter::new(sort));
        let mut chunks = ChunkSetWriter::create(self.dir, partition, Some(list), KeyType::Id)?;
        let tag = list_tag(partition.0, index);
        let mut value = Vec::new();
        while let Some(key) = self.read_list(tag)? {
            keys.push(key);
            for &neighbour in &self.list.ids {
                pairs.push([neighbour, key])?;
            }
            value.clear();
            let columns: Vec<&[u64]> = self.list.columns.iter().map(Vec::as_slice).collect();
            encode_list(&self.list.ids, &columns, &mut value);
            chunks.append(&key.to_le_bytes(), &value)?;
        }
        self.written.files.extend(chunks.finish()?.files);
        Ok((keys, pairs))
    }

    /// Reads the next list with this tag into `self.list`; `None` if there is none left.
    fn read_list(&mut self, tag: ListTag) -> Result<Option<u64>, SortError> {
        let Some(first) = self.records.next_if(|record| record.tag() == tag)? else { return Ok(None) };
        let key = first.key;
        self.list.clear();
        let mut record = Some(first);
        while let Some(entry) = record {
            // Each edge is counted at one of its two ends.
            let counted = match self.options.role {
                KindRole::Undirected => key < entry.neighbour,
                _ => tag & 1 == 0,
            };
            let is_new = self.list.add(entry.neighbour, &entry.columns, entry.is_reversed());
            if counted {
                let counts = &mut self.written.counts;
                match is_new {
                    Entry::New => counts.edges += 1,
                    Entry::Duplicate => counts.duplicates += 1,
                    Entry::OtherOrder => counts.both_orders += 1,
                }
            }
            record = self.records.next_if(|next| next.key == key && next.tag() == tag)?;
        }
        Ok(Some(key))
    }
}

/// The effect of a record on its list.
enum Entry {
    New,
    Duplicate,
    OtherOrder,
}

/// One adjacency list.
struct List {
    ids: Vec<u64>,
    columns: Vec<Vec<u64>>,
    /// Whether the last id's edge occurred in its own and in reversed order.
    orders: [bool; 2],
}

impl List {
    fn new(column_count: usize) -> Self {
        List { ids: Vec::new(), columns: vec![Vec::new(); column_count], orders: [false; 2] }
    }

    fn clear(&mut self) {
        self.ids.clear();
        self.columns.iter_mut().for_each(Vec::clear);
    }

    /// Adds an entry, which must not be before the last one. Of equal edges the last one, which has the greatest columns,
    /// is kept.
    fn add(&mut self, neighbour: u64, columns: &[u64], reversed: bool) -> Entry {
        let is_new = self.ids.last() != Some(&neighbour);
        if is_new {
            self.ids.push(neighbour);
            self.orders = [false; 2];
        }
        for (column, &value) in self.columns.iter_mut().zip(columns) {
            column.truncate(self.ids.len() - 1);
            column.push(value);
        }
        let seen = std::mem::replace(&mut self.orders[usize::from(reversed)], true);
        match (is_new, seen) {
            (true, _) => Entry::New,
            (false, true) => Entry::Duplicate,
            (false, false) => Entry::OtherOrder,
        }
    }
}

/// Sorted records, with access to the next one.
struct Peekable<R> {
    sorted: SortedRecords<R>,
    head: Option<R>,
}

impl<R: crate::SortRecord> Peekable<R> {
    fn new(mut sorted: SortedRecords<R>) -> Result<Self, SortError> {
        Ok(Peekable { head: sorted.next()?, sorted })
    }

    #[inline]
    fn next_if(&mut self, wanted: impl FnOnce(&R) -> bool) -> Result<Option<R>, SortError> {
        if !self.head.as_ref().is_some_and(wanted) {
            return Ok(None);
        }
        Ok(std::mem::replace(&mut self.head, self.sorted.next()?))
    }
}
