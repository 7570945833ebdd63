//! What goes where: the local packs of the files that are missing, and the requests that bring them.

use crate::manifest::{FileEntry, PackEntry};
use crate::pack::{PackPlace, local_pack_name, pack_name, place};

/// Files beyond this size are pulled in pieces; smaller ones whole, several at a time.
pub(super) const WHOLE_BYTES_MAX: u64 = 4 << 20;

/// Between two wanted files, so many unwanted bytes are read rather than a request made of its own: some stores
/// take longer to begin an answer than to send so much.
const GAP_BYTES_MAX: u64 = 64 << 10;

/// The packs to lay out.
pub(super) struct Plan {
    /// With their final names.
    pub(super) packs: Vec<PackEntry>,
    /// Name and place of each file; packs are numbered from the first of the plan.
    pub(super) places: Vec<(String, PackPlace)>,
}

/// A file that is to come, with its place in the staged packs.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) entry: &'a FileEntry,
    /// Name of the local pack.
    pub(super) pack: String,
    pub(super) offset: u64,
}

/// One or more requests, done by one thread.
#[derive(Clone, Debug)]
pub(super) enum Work<'a> {
    /// A file by itself, in pieces.
    Large(Wanted<'a>),
    /// Neighbours in one pack of the source, in one request.
    Span(Vec<Wanted<'a>>),
}

impl Plan {
    /// Lays out files, given in the order of their names, by the rule of packs.
    pub(super) fn new(missing: &[&FileEntry], first_pack: u32) -> Self {
        let sizes: Vec<_> =
            missing.iter().map(|entry| (entry.id().map(|id| id.partition), entry.bytes)).collect();
        let (places, bytes) = place(&sizes);
        let packs = (first_pack..).zip(bytes);
        let packs = packs.map(|(number, bytes)| PackEntry { name: local_pack_name(number), bytes });
        let names = missing.iter().map(|entry| entry.name.clone());
        Self { packs: packs.collect(), places: names.zip(places).collect() }
    }

    /// The files with their places.
    pub(super) fn files<'a>(&self, missing: &[&'a FileEntry]) -> Vec<Wanted<'a>> {
        let wanted = missing.iter().zip(&self.places);
        wanted
            .map(|(&entry, (_, place))| Wanted {
                entry,
                pack: self.packs[place.pack as usize].name.clone(),
                offset: place.offset,
            })
            .collect()
    }
}

impl Wanted<'_> {
    /// The object that holds it in the source.
    pub(super) fn object(&self) -> String {
        pack_name(self.entry.pack)
    }
}

/// Divides files, in the order of the source, into work: data first, large indexes last.
pub(super) fn works<'a>(files: &[Wanted<'a>]) -> Vec<Work<'a>> {
    let (mut works, mut indexes) = (Vec::new(), Vec::new());
    let mut span: Vec<Wanted<'a>> = Vec::new();
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

/// Whether one request may bring `next` as well.
fn joins(first: &Wanted<'_>, last: &Wanted<'_>, next: &Wanted<'_>) -> bool {
    let (first, last, next) = (first.entry, last.entry, next.entry);
    let gap = next.offset.checked_sub(last.offset + last.bytes);
    let bytes = (next.offset + next.bytes).saturating_sub(first.offset);
    first.pack == next.pack && gap.is_some_and(|gap| gap <= GAP_BYTES_MAX) && bytes <= 2 * WHOLE_BYTES_MAX
}
