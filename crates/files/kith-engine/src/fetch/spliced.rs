//! One version from several sources: peers have some partitions completely, and the rest comes from the place where the
//! version was built.

use crate::files::{FileKind, MANIFEST_NAME};
use crate::manifest::{FileEntry, Manifest};
use crate::pack::pack_name;
use crate::patch::PATCH_NAME;
use crate::source::{ObjectError, Source};
use kith_types::PartitionId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// A [`Source`] that asks peers for the partitions that they have, and `rest` for the other wanted ones. A peer that cannot
/// be read is not asked again; the next peer that has the partition is asked instead, and `rest` after the last one.
/// Unwanted files read as zeros, which a fetch does not use.
pub struct SplicedSource<'a> {
    manifest: Manifest,
    encoded: Vec<u8>,
    peers: Vec<PartialSource<'a>>,
    rest: &'a dyn Source,
    wanted: BTreeSet<PartitionId>,
    /// The number and size of each pack, by name.
    packs: BTreeMap<String, (u32, u64)>,
}

struct PartialSource<'a> {
    source: &'a dyn Source,
    partitions: BTreeSet<PartitionId>,
    failed: AtomicBool,
}

/// The source of a part of a pack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    PartialSource(usize),
    Rest,
    Nobody,
}

impl<'a> SplicedSource<'a> {
    /// A source for the version that `manifest` describes. Nothing is read yet.
    pub fn new(
        manifest: Manifest,
        peers: Vec<(&'a dyn Source, BTreeSet<PartitionId>)>,
        rest: &'a dyn Source,
        wanted: BTreeSet<PartitionId>,
    ) -> Self {
        let packs = (0u32..).zip(manifest.packs());
        let packs = packs.map(|(number, pack)| (pack_name(number), (number, pack.bytes))).collect();
        let peers = peers.into_iter();
        let peers = peers.map(|(source, partitions)| PartialSource {
            source,
            partitions,
            failed: AtomicBool::new(false),
        });
        Self { encoded: manifest.encode(), peers: peers.collect(), manifest, rest, wanted, packs }
    }

    /// The indexes of the peers that could not be read.
    pub fn failed(&self) -> Vec<usize> {
        let peers = self.peers.iter().enumerate();
        peers.filter(|(_, peer)| peer.failed.load(Ordering::Relaxed)).map(|(index, _)| index).collect()
    }

    /// The working peer that has a file, if the file is wanted. Dictionaries belong to all partitions.
    fn has(&self, entry: &FileEntry) -> From {
        let Some(id) = entry.id() else { return From::Rest };
        let of = |partitions: &BTreeSet<PartitionId>| {
            id.kind == FileKind::Dictionary || partitions.contains(&id.partition)
        };
        if !of(&self.wanted) {
            return From::Nobody;
        }
        let has = |peer: &PartialSource<'_>| of(&peer.partitions) && !peer.failed.load(Ordering::Relaxed);
        self.peers.iter().position(has).map_or(From::Rest, From::PartialSource)
    }

    /// Divides a range of a pack by source. Bytes between two files go with the file before them.
    fn parts(&self, number: u32, range: Range<u64>) -> Vec<(From, Range<u64>)> {
        let files = &self.manifest.files;
        // Files lie end to end, in the order of their names.
        let first =
            files.partition_point(|file| (file.pack, file.offset + file.bytes) <= (number, range.start));
        let touched = files[first..].iter().take_while(|file| file.pack == number && file.offset < range.end);
        let mut parts: Vec<(From, Range<u64>)> = Vec::new();
        for entry in touched {
            let (from, start) = (self.has(entry), entry.offset.max(range.start));
            match parts.last_mut() {
                Some((last, _)) if *last == from => {}
                Some((_, before)) => {
                    before.end = start;
                    parts.push((from, start..range.end));
                }
                None => parts.push((from, range.clone())),
            }
        }
        if parts.is_empty() {
            parts.push((From::Nobody, range));
        }
        parts
    }

    /// Reads a range of a pack from the sources of its parts. Returns the number of bytes read.
    fn read_range(
        &self,
        object: &str,
        number: u32,
        range: Range<u64>,
        into: &mut [u8],
    ) -> Result<usize, ObjectError> {
        let mut done = 0;
        for (from, part) in self.parts(number, range) {
            let wanted = (part.end - part.start) as usize;
            let got = self.read_part(from, object, number, part, &mut into[done..done + wanted])?;
            done += got;
            if got < wanted {
                break;
            }
        }
        Ok(done)
    }

    fn read_part(
        &self,
        from: From,
        object: &str,
        number: u32,
        part: Range<u64>,
        into: &mut [u8],
    ) -> Result<usize, ObjectError> {
        match from {
            From::Nobody => {
                into.fill(0);
                Ok(into.len())
            }
            From::Rest => self.rest.read(object, part.start, into),
            From::PartialSource(index) => {
                let peer = &self.peers[index];
                match peer.source.read(object, part.start, into) {
                    Ok(count) if count == into.len() => Ok(count),
                    // The peer failed, or its object is too short. Each further attempt has one working peer fewer.
                    Ok(_) | Err(_) => {
                        peer.failed.store(true, Ordering::Relaxed);
                        self.read_range(object, number, part, into)
                    }
                }
            }
        }
    }
}

impl Source for SplicedSource<'_> {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        if object == MANIFEST_NAME {
            let start = self.encoded.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
            let bytes = &self.encoded[start..];
            let count = bytes.len().min(into.len());
            into[..count].copy_from_slice(&bytes[..count]);
            return Ok(count);
        }
        if object == PATCH_NAME {
            // Nodes hold the result of a patch, not the patch.
            return self.rest.read(object, offset, into);
        }
        let Some(&(number, bytes)) = self.packs.get(object) else {
            return Err(ObjectError::Missing { object: object.to_owned() });
        };
        let count = (into.len() as u64).min(bytes.saturating_sub(offset));
        self.read_range(object, number, offset..offset + count, &mut into[..count as usize])
    }
}
