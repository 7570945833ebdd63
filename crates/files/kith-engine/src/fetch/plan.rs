//! Plans a fetch: the local packs of the missing files, and the requests that bring them.

use crate::manifest::{FileEntry, PackEntry};
use crate::pack::{PackPlace, local_pack_name, pack_name, place};

/// Files above this size are pulled in pieces; smaller ones whole, several at a time.
pub(super) const WHOLE_BYTES_MAX: u64 = 4 << 20;

/// The most unwanted bytes between two wanted files that are read with them, instead of a separate request. Some stores
/// take longer to begin an answer than to send this many bytes.
const GAP_BYTES_MAX: u64 = 64 << 10;

/// The packs to lay out.
pub(super) struct Plan {
    /// The packs, with their final names.
    pub(super) packs: Vec<PackEntry>,
    /// The name and place of each file. Packs are numbered from the first of the plan.
    pub(super) packed: Vec<(String, PackPlace)>,
}

/// A wanted file, with its place in the staged packs.
#[derive(Clone, Debug)]
pub(super) struct WantedFile<'a> {
    pub(super) entry: &'a FileEntry,
    /// The name of the local pack.
    pub(super) pack: String,
    pub(super) offset: u64,
}

/// One or more requests, made by one thread.
#[derive(Clone, Debug)]
pub(super) enum Work<'a> {
    /// One file, in pieces.
    Large(WantedFile<'a>),
    /// Adjacent files of one pack of the source, in one request.
    Span(Vec<WantedFile<'a>>),
}

impl Plan {
    /// Lays out files, given in the order of their names, by the rule for packs.
    pub(super) fn new(missing: &[&FileEntry], first_pack: u32) -> Self {
        let sizes: Vec<_> =
            missing.iter().map(|entry| (entry.id().map(|id| id.partition), entry.bytes)).collect();
        let (packed, bytes) = place(&sizes);
        let packs = (first_pack..).zip(bytes);
        let packs = packs.map(|(number, bytes)| PackEntry { name: local_pack_name(number), bytes });
        let names = missing.iter().map(|entry| entry.name.clone());
        Self { packs: packs.collect(), packed: names.zip(packed).collect() }
    }

    /// The files with their places.
    pub(super) fn files<'a>(&self, missing: &[&'a FileEntry]) -> Vec<WantedFile<'a>> {
        let wanted = missing.iter().zip(&self.packed);
        wanted
            .map(|(&entry, (_, position))| WantedFile {
                entry,
                pack: self.packs[position.pack as usize].name.clone(),
                offset: position.offset,
            })
            .collect()
    }
}

impl WantedFile<'_> {
    /// The object of the source that holds the file.
    pub(super) fn object(&self) -> String {
        pack_name(self.entry.pack)
    }
}

/// Divides files, in the order of the source, into work: data first, large indexes last.
pub(super) fn works<'a>(files: &[WantedFile<'a>]) -> Vec<Work<'a>> {
    let (mut works, mut indexes) = (Vec::new(), Vec::new());
    let mut span: Vec<WantedFile<'a>> = Vec::new();
    for file in files {
        if file.entry.bytes > WHOLE_BYTES_MAX {
            let is_index = file.entry.id().is_some_and(|id| id.kind.is_index());
            if is_index { &mut indexes } else { &mut works }.push(Work::Large(file.clone()));
            continue;
        }
        if span.first().is_some_and(|first| !joins(first, &span[span.len() - 1], file)) {
            works.push(Work::Span(std::mem::take(&mut span)));
        }
        span.push(file.clone());
    }
    if !span.is_empty() {
        works.push(Work::Span(span));
    }
    works.append(&mut indexes);
    works
}

/// Whether the same request can bring `next` too.
fn joins(first: &WantedFile<'_>, last: &WantedFile<'_>, next: &WantedFile<'_>) -> bool {
    let (first, last, next) = (first.entry, last.entry, next.entry);
    let gap = next.offset.checked_sub(last.offset + last.bytes);
    let bytes = (next.offset + next.bytes).saturating_sub(first.offset);
    first.pack == next.pack && gap.is_some_and(|gap| gap <= GAP_BYTES_MAX) && bytes <= 2 * WHOLE_BYTES_MAX
}
