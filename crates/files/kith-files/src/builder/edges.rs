//! The first half of a build: turns edges into records of the lists that they belong to.
//!
//! The number of columns is part of the record's type, so that an edge without columns takes 24 bytes. It is rounded up to
//! one of a few widths; the additional columns are zeros.

use super::lists::{self, WrittenLists};
use super::record::{EdgeRecord, prefix_of};
use super::{BuildError, BuildOptions, BuildProgress, EDGE_SHARE, sort_options};
use crate::{ExternalSorter, SortError, SortedRecords};
use kith_schema::KindRole;
use kith_types::PartitionCount;
use std::path::Path;

/// Takes edges, and then writes the files.
pub(super) trait EdgeSink: Send {
    /// Adds an edge to its lists.
    fn push(&mut self, src: u64, dst: u64, columns: &[u64]) -> Result<(), SortError>;

    /// Writes the files of every partition into `dir`.
    fn write(
        self: Box<Self>,
        options: &BuildOptions,
        dir: &Path,
        members: SortedRecords<[u64; 2]>,
        progress: &mut dyn FnMut(BuildProgress),
    ) -> Result<WrittenLists, BuildError>;
}

/// The sink for the options' number of columns.
pub(super) fn sink(options: &BuildOptions) -> Box<dyn EdgeSink> {
    match options.columns.len() {
        0 => Box::new(Edges::<0>::new(options)),
        1 => Box::new(Edges::<1>::new(options)),
        2 => Box::new(Edges::<2>::new(options)),
        3..=4 => Box::new(Edges::<4>::new(options)),
        _ => Box::new(Edges::<8>::new(options)),
    }
}

struct Edges<const N: usize> {
    role: KindRole,
    partitions: PartitionCount,
    column_count: usize,
    sorter: ExternalSorter<EdgeRecord<N>>,
}

impl<const N: usize> Edges<N> {
    fn new(options: &BuildOptions) -> Self {
        Edges {
            role: options.role,
            partitions: options.partitions,
            column_count: options.columns.len(),
            sorter: ExternalSorter::new(sort_options(options, EDGE_SHARE, options.threads)),
        }
    }
}

impl<const N: usize> EdgeSink for Edges<N> {
    fn push(&mut self, src: u64, dst: u64, columns: &[u64]) -> Result<(), SortError> {
        assert_eq!(columns.len(), self.column_count, "an edge has one value per column");
        let mut values = [0; N];
        values[..columns.len()].copy_from_slice(columns);
        let (in_list, reversed) = match self.role {
            KindRole::Undirected => (0, dst < src),
            KindRole::Directed | KindRole::Entity => (1, false),
            KindRole::MembersOnly => panic!("a list of members has no edges"),
        };
        let from_src = prefix_of(src, 0, self.partitions);
        let from_dst = prefix_of(dst, in_list, self.partitions);
        self.sorter.push(EdgeRecord::new(from_src, src, dst, values, reversed))?;
        self.sorter.push(EdgeRecord::new(from_dst, dst, src, values, reversed))
    }

    fn write(
        self: Box<Self>,
        options: &BuildOptions,
        dir: &Path,
        members: SortedRecords<[u64; 2]>,
        progress: &mut dyn FnMut(BuildProgress),
    ) -> Result<WrittenLists, BuildError> {
        lists::write(self.sorter.finish()?, members, options, dir, progress)
    }
}
