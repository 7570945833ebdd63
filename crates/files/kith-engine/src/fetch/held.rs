//! Presents a version that a node holds as the built version that it came from, so that peers can fetch from it.
//!
//! A node lays its partitions out in packs of its own. A fetch asks for packs of the built version, so their bytes are
//! assembled from the logical files that are present. Absent files read as zeros, which is safe because a fetch checks
//! every byte.

use crate::errors::OpenError;
use crate::files::{FileKind, MANIFEST_NAME};
use crate::manifest::Manifest;
use crate::pack::{Layout, pack_name};
use crate::source::{FolderSource, ObjectError, Source};
use kith_types::PartitionId;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The folder of a built or fetched version as a [`Source`]. It keeps the layout that it read when it was opened: open it
/// again after partitions were added or removed.
#[derive(Debug)]
pub struct HeldSource {
    dir: PathBuf,
    manifest: Manifest,
    layout: Layout,
    /// The number and size of each pack of the built version, by name.
    packs: BTreeMap<String, (u32, u64)>,
}

impl HeldSource {
    /// Reads the manifest and layout of a folder and checks their seals.
    ///
    /// # Errors
    /// If the folder holds no version, or its manifest or layout is damaged.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let manifest = Manifest::read(dir)?;
        let layout = Layout::read(dir, &manifest)?;
        let packs = (0u32..).zip(manifest.packs());
        let packs = packs.map(|(number, pack)| (pack_name(number), (number, pack.bytes))).collect();
        Ok(Self { dir: dir.to_owned(), manifest, layout, packs })
    }

    /// The manifest of the version.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The partitions whose files are all laid out here in complete packs; ascending. O(files).
    pub fn partitions(&self) -> Vec<PartitionId> {
        let is_whole = |pack: &crate::manifest::PackEntry| {
            fs::metadata(self.dir.join(&pack.name))
                .is_ok_and(|found| found.is_file() && found.len() == pack.bytes)
        };
        let whole: BTreeSet<&str> =
            self.layout.packs.iter().filter(|pack| is_whole(pack)).map(|pack| pack.name.as_str()).collect();
        let mut held: BTreeMap<PartitionId, bool> = BTreeMap::new();
        for entry in &self.manifest.files {
            let Some(id) = entry.id().filter(|id| id.kind != FileKind::Dictionary) else { continue };
            let here =
                self.layout.find(&entry.name).is_some_and(|(pack, _)| whole.contains(pack.name.as_str()));
            *held.entry(id.partition).or_insert(true) &= here;
        }
        held.into_iter().filter(|(_, here)| *here).map(|(partition, _)| partition).collect()
    }

    /// Fills `into` with the bytes of a built pack from `offset` on. Absent bytes become zeros.
    fn read_pack(&self, object: &str, number: u32, offset: u64, into: &mut [u8]) -> Result<(), ObjectError> {
        into.fill(0);
        let end = offset + into.len() as u64;
        let files = &self.manifest.files;
        // Files lie end to end, in the order of their names.
        let first = files.partition_point(|file| (file.pack, file.offset + file.bytes) <= (number, offset));
        let touched = files[first..].iter().take_while(|file| file.pack == number && file.offset < end);
        let (mut any, mut here) = (false, false);
        let mut open: Option<(&str, File)> = None;
        for entry in touched {
            let (from, to) = (entry.offset.max(offset), (entry.offset + entry.bytes).min(end));
            any |= from < to;
            let Some((pack, position)) = self.layout.find(&entry.name) else { continue };
            let failed = |error: io::Error| failed(object, error);
            if open.as_ref().is_none_or(|(name, _)| *name != pack.name) {
                open = Some((&pack.name, File::open(self.dir.join(&pack.name)).map_err(failed)?));
            }
            if let Some((_, file)) = &open {
                let piece = &mut into[(from - offset) as usize..(to - offset) as usize];
                file.read_exact_at(piece, position.offset + (from - entry.offset)).map_err(failed)?;
                here = true;
            }
        }
        if any && !here { Err(ObjectError::Missing { object: object.to_owned() }) } else { Ok(()) }
    }
}

impl Source for HeldSource {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        if object == MANIFEST_NAME {
            return FolderSource::new(&self.dir).read(object, offset, into);
        }
        let Some(&(number, bytes)) = self.packs.get(object) else {
            return Err(ObjectError::Missing { object: object.to_owned() });
        };
        let count = (into.len() as u64).min(bytes.saturating_sub(offset)) as usize;
        if 0 < count {
            self.read_pack(object, number, offset, &mut into[..count])?;
        }
        Ok(count)
    }
}

/// A pack that was removed meanwhile is missing, like one that was never here.
fn failed(object: &str, error: io::Error) -> ObjectError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => {
            ObjectError::Missing { object: object.to_owned() }
        }
        _ => ObjectError::Failed { object: object.to_owned(), source: error.into() },
    }
}
