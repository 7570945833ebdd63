//! Builds files from a held version and the patch of the source, so that a version with few changes moves few bytes,
//! however the changes are spread.

use super::FetchError;
use super::error::IoContext;
use super::plan::WantedFile;
use super::pull::Pull;
use super::reuse::copy_proven;
use super::space::Space;
use super::staging::Staging;
use crate::chunk::{ChunkSetReader, ChunkSetWriter, FoundRecord};
use crate::errors::{Damage, OpenError, ReadError, WriteError};
use crate::files::{FileId, FileKind};
use crate::manifest::{FileEntry, KeyType, Manifest};
use crate::pack::VersionFolder;
use crate::patch::{Change, MergeSink, PatchBytes, SectionReader, UnusablePatch, merge};
use crate::proof::{TURN_BYTES, give_way, prove_at};
use kith_types::PartitionId;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// The number of bytes that are built between two checks whether the fetch was cancelled.
const BYTES_PER_REPORT: usize = 4 << 20;

/// Stages the files that can be built, with every file verified, and removes them from `left`. The others stay there, to be
/// pulled.
pub(super) fn rebuild(
    manifest: &Manifest,
    held: &[PathBuf],
    staging: &Staging<'_>,
    space: &Space,
    left: &mut Vec<WantedFile<'_>>,
    pull: &mut Pull<'_, '_>,
) -> Result<(), FetchError> {
    let Some(key) = manifest.values().map(|values| values.key) else { return Ok(()) };
    if held.is_empty() || left.is_empty() {
        return Ok(());
    }
    let source = pull.source;
    let Ok((head, mut bytes)) = PatchBytes::open(source, manifest) else { return Ok(()) };
    pull.state.bytes_copied += bytes.take_read();
    let Some(base) = held.iter().find_map(|dir| VersionFolder::open_version(dir, &head.base).ok()) else {
        return pull.report();
    };
    let wanted: BTreeSet<PartitionId> =
        left.iter().filter_map(|file| file.entry.id()).map(|id| id.partition).collect();
    let sections = bytes.want(&head, &|partition| wanted.contains(&partition) && is_held(&base, partition));
    let workbench = Workbench { base: &base, key, staging, space };
    for (section, at) in sections {
        let partition = section.partition;
        let is_of_partition =
            |file: &&WantedFile<'_>| file.entry.id().is_some_and(|id| id.partition == partition);
        let files: Vec<WantedFile<'_>> = left.iter().filter(is_of_partition).cloned().collect();
        let is_staged = pull.resumes && files.iter().all(|file| is_staged(staging, file));
        if !is_staged {
            let changes = SectionReader::open(&mut bytes, section, at);
            let placed = workbench.stage(partition, changes, &files, &mut || pull.report())?;
            pull.state.bytes_copied += bytes.take_read();
            if !placed {
                continue;
            }
        }
        left.retain(|file| file.entry.id().is_none_or(|id| id.partition != partition));
        for file in &files {
            pull.done(file.entry.bytes, file.entry.bytes)?;
        }
    }
    pull.report()
}

/// The inputs and the destination of built partitions.
struct Workbench<'w> {
    /// The held version that the patch applies to.
    base: &'w VersionFolder,
    key: KeyType,
    staging: &'w Staging<'w>,
    space: &'w Space,
}

impl Workbench<'_> {
    /// Builds a partition and puts its files in their places. Returns `false` if it cannot be built.
    fn stage(
        &self,
        partition: PartitionId,
        changes: Result<SectionReader<'_, '_>, UnusablePatch>,
        files: &[WantedFile<'_>],
        report: &mut dyn FnMut() -> Result<(), FetchError>,
    ) -> Result<bool, FetchError> {
        let made = changes.map_err(Stop::from).and_then(|changes| self.make(partition, changes, report));
        let placed = match made {
            Ok(made) => place(self.staging, self.space, files, &made),
            Err(Stop::Unusable) => Ok(false),
            Err(Stop::Failed(error)) => Err(error),
        };
        remove_loose(self.staging, partition)?;
        placed
    }

    /// Writes the files of a partition next to the staged packs. Returns the written files.
    fn make(
        &self,
        partition: PartitionId,
        changes: SectionReader<'_, '_>,
        report: &mut dyn FnMut() -> Result<(), FetchError>,
    ) -> Result<Vec<FileEntry>, Stop> {
        let records = ChunkSetReader::open(self.base, partition, None)?;
        let writer = ChunkSetWriter::create(&self.staging.path(""), partition, None, self.key)?;
        let mut making = Making { writer, changes, turn: 0, unreported: 0, report };
        merge(&records, &mut making)?;
        Ok(making.writer.finish()?.files)
    }
}

/// Whether the node holds data and indexes of a partition of a version.
fn is_held(base: &VersionFolder, partition: PartitionId) -> bool {
    base.place_of(FileId { partition, list: None, kind: FileKind::Data, set: 0 }).is_some()
}

/// Whether an earlier attempt left an intact file.
fn is_staged(staging: &Staging<'_>, file: &WantedFile<'_>) -> bool {
    prove_at(&staging.path(&file.pack), file.offset, file.entry).is_ok()
}

/// The reason why a partition is not built.
enum Stop {
    /// The patch or the held version is damaged. The partition is pulled instead.
    Unusable,
    /// The fetch fails.
    Failed(FetchError),
}

impl From<UnusablePatch> for Stop {
    fn from(_: UnusablePatch) -> Self {
        Stop::Unusable
    }
}

impl From<Damage> for Stop {
    fn from(_: Damage) -> Self {
        Stop::Unusable
    }
}

impl From<ReadError> for Stop {
    fn from(_: ReadError) -> Self {
        Stop::Unusable
    }
}

impl From<OpenError> for Stop {
    fn from(_: OpenError) -> Self {
        Stop::Unusable
    }
}

impl From<WriteError> for Stop {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Io { path, source } => Stop::Failed(FetchError::Io { path, source }),
            // These changes belong to no partition.
            _ => Stop::Unusable,
        }
    }
}

/// A partition that is being built.
struct Making<'m, 'p, 's> {
    writer: ChunkSetWriter,
    changes: SectionReader<'p, 's>,
    /// The number of bytes since the last yield to other threads.
    turn: usize,
    unreported: usize,
    report: &'m mut dyn FnMut() -> Result<(), FetchError>,
}

impl Making<'_, '_, '_> {
    fn wrote(&mut self, bytes: usize) -> Result<(), Stop> {
        self.turn += bytes;
        if TURN_BYTES <= self.turn {
            self.unreported += std::mem::take(&mut self.turn);
            give_way();
        }
        if BYTES_PER_REPORT <= self.unreported {
            self.unreported = 0;
            (self.report)().map_err(Stop::Failed)?;
        }
        Ok(())
    }
}

impl MergeSink for Making<'_, '_, '_> {
    type Error = Stop;

    fn head(&self) -> Option<(u64, &[u8])> {
        self.changes.change().map(|change| (change.position, change.key.as_slice()))
    }

    fn take(&mut self, _: Option<&FoundRecord<'_>>) -> Result<(), Stop> {
        if let Some(Change { key, stored, is_put: true, .. }) = self.changes.change() {
            self.writer.append(key, stored)?;
            let bytes = key.len() + stored.len();
            self.wrote(bytes)?;
        }
        Ok(self.changes.advance()?)
    }

    fn keep(&mut self, key: &[u8], found: &FoundRecord<'_>) -> Result<(), Stop> {
        self.writer.append(key, found.value())?;
        self.wrote(key.len() + found.value().len())
    }
}

/// Puts built files in their places if all match the manifest. They are verified again on the way, as all staged files are.
fn place(
    staging: &Staging<'_>,
    space: &Space,
    files: &[WantedFile<'_>],
    made: &[FileEntry],
) -> Result<bool, FetchError> {
    let is_made = |file: &WantedFile<'_>| {
        made.iter().any(|made| made.name == file.entry.name && made.is_same_content(file.entry))
    };
    if !files.iter().all(is_made) {
        return Ok(false);
    }
    for file in files {
        let loose = staging.path(&file.entry.name);
        let pack = staging.open_pack(&file.pack)?;
        if !copy_proven(&loose, 0, file, &pack).at(&loose)? {
            return Ok(false);
        }
        space.written(file.entry.bytes);
    }
    Ok(true)
}

/// Removes the files that were built, even partly.
fn remove_loose(staging: &Staging<'_>, partition: PartitionId) -> Result<(), FetchError> {
    let loose = |kind, set| staging.path(&FileId { partition, list: None, kind, set }.to_string());
    for set in 0.. {
        let (data, index) = (loose(FileKind::Data, set), loose(FileKind::Index, set));
        if !data.exists() && !index.exists() {
            return Ok(());
        }
        for path in [data, index].iter().filter(|path| path.exists()) {
            fs::remove_file(path).at(path)?;
        }
    }
    Ok(())
}
