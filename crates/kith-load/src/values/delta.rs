//! A version from another and what changed: the future work of Voldemort §7, done on whole partitions.
//!
//! Only partitions with a change are written; files of the others are those of the base, byte for byte, and packs of
//! such files alone are linked. The outcome is the version that a build of all rows, with the base's dictionary, would give: the
//! same manifest. The patch beside it says what changed, record by record: nodes that hold the base fetch that and nothing else.

use super::options::{Duplicates, ValuesOptions, ValuesProgress, ZstdOptions, shown};
use super::writer::ValuesWriter;
use super::{ValuesBuildError, manifest, sort_options};
use crate::builder::Staging;
use crate::rows::{RowSorter, SortedRows};
use crate::{BuildError, MEMORY_BYTES_DEFAULT};
use kith_engine::writing::Found;
use kith_engine::writing::{Merging, PatchWriter, merge};
use kith_engine::writing::{Piece, pack_name, write_packs};
use kith_engine::writing::{frame_value_bytes, read_dictionary};
use kith_engine::{ChunkSetReader, FileKind, VersionFolder};
use kith_engine::{Compression, FileEntry, KeyType, Manifest, ValueCounts};
use kith_types::{PartitionId, StoreVersion, position_of_key};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How to apply changes.
#[derive(Clone, Debug)]
pub struct DeltaOptions {
    /// The number of the new version.
    pub version: StoreVersion,
    /// What to do about two changes of one key.
    pub duplicates: Duplicates,
    /// The most bytes that buffers may take.
    pub memory_bytes: usize,
    /// Where sorted runs go that do not fit in memory.
    pub scratch_dir: PathBuf,
    /// The store's folder.
    pub out_dir: PathBuf,
    /// 1, or 2 and more to sort beside the caller's thread.
    pub threads: usize,
}

impl DeltaOptions {
    /// Two changes of one key refused, scratch files in the store's folder.
    pub fn new(version: StoreVersion, out_dir: PathBuf) -> Self {
        Self {
            version,
            duplicates: Duplicates::Refuse,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            scratch_dir: out_dir.join(".scratch"),
            out_dir,
            threads: 1,
        }
    }
}

/// What a delta did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeltaSummary {
    /// Keys that were not there before.
    pub added: u64,
    /// Keys with a new value.
    pub replaced: u64,
    /// Keys that are gone.
    pub deleted: u64,
    /// Keys to delete that were not there.
    pub absent: u64,
    /// Partitions written anew.
    pub partitions: u32,
    /// Bytes of logical files that the base does not have.
    pub bytes_changed: u64,
    /// What a replica with all of the base must move: the patch, and files that the patch does not make.
    pub bytes_moved: u64,
}

/// Changes to a version being gathered.
pub struct DeltaBuilder {
    base: VersionFolder,
    options: ValuesOptions,
    staging: Staging,
    changes: RowSorter,
    touched: BTreeSet<PartitionId>,
}

/// What the value of a change begins with.
const DELETE: u8 = 0;
const PUT: u8 = 1;

impl DeltaBuilder {
    /// Starts from a version with all its partitions: its folder in the object store.
    ///
    /// # Errors
    /// If the base cannot be opened or holds a graph, or folders cannot be made.
    pub fn new(base: &Path, options: DeltaOptions) -> Result<Self, ValuesBuildError> {
        let base = VersionFolder::open(base)?;
        let manifest = base.manifest();
        let Some(values) = manifest.values() else {
            let (component, got) = (manifest.component.clone(), manifest.content.name());
            return Err(kith_engine::OpenError::OtherContent { component, expected: "values", got }.into());
        };
        let compression = match values.compression {
            Some(Compression::Zstd(level)) => {
                Some(ZstdOptions { level, dictionary: Some(read_dictionary(&base)?) })
            }
            None => None,
        };
        let options = ValuesOptions {
            name: manifest.component.clone(),
            version: options.version,
            partitions: manifest.partition_count,
            key: values.key,
            value: values.value,
            schema: values.schema.clone(),
            compression,
            duplicates: options.duplicates,
            memory_bytes: options.memory_bytes,
            scratch_dir: options.scratch_dir,
            out_dir: options.out_dir,
            threads: options.threads,
        };
        options.check()?;
        let staging = Staging::create(&options.out_dir, options.version)?;
        let changes = RowSorter::new(sort_options(&options)?);
        Ok(Self { base, options, staging, changes, touched: BTreeSet::new() })
    }

    /// Adds a key or gives it a new value.
    ///
    /// # Errors
    /// If the row cannot be one of the store, or sorted runs cannot be written.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), ValuesBuildError> {
        self.options.check_row(key, value)?;
        self.change(key, &[&[PUT], value].concat())
    }

    /// Removes a key, which need not be there.
    ///
    /// # Errors
    /// As [`DeltaBuilder::put`].
    pub fn delete(&mut self, key: &[u8]) -> Result<(), ValuesBuildError> {
        self.change(key, &[DELETE])
    }

    fn change(&mut self, key: &[u8], change: &[u8]) -> Result<(), ValuesBuildError> {
        let partition = self.options.check_row(key, &[])?;
        self.touched.insert(partition);
        Ok(self.changes.push(partition, key, change)?)
    }

    /// Writes the new version. `progress` is called once per partition that changed.
    ///
    /// # Errors
    /// See [`ValuesBuildError`]; nothing of the new version is left then, and the base is as before.
    pub fn finish(
        self,
        progress: &mut dyn FnMut(ValuesProgress),
    ) -> Result<(Manifest, DeltaSummary), ValuesBuildError> {
        let Self { base, options, staging, changes, touched } = self;
        let (dir, total) = (staging.dir(), changes.rows());
        let mut changes = Changes::new(changes.finish()?, options.key, options.duplicates)?;
        let mut summary = DeltaSummary { partitions: touched.len() as u32, ..DeltaSummary::default() };
        let mut writer = ValuesWriter::new(&dir, &options, touched.iter().copied())?;
        let mut patch = PatchWriter::new(&dir)?;
        let mut removed = ValueCounts::default();
        for &partition in &touched {
            let records = ChunkSetReader::open(&base, partition, None)?;
            patch.begin(partition);
            let mut merging = Merge {
                writer: &mut writer,
                patch: &mut patch,
                changes: &mut changes,
                summary: &mut summary,
                partition,
                compressed: options.compression.is_some(),
                removed: &mut removed,
            };
            merge(&records, &mut merging)?;
            progress(ValuesProgress { rows_done: changes.done, rows_total: total });
        }
        let written = writer.finish()?;
        let counts = counts(&base, &written.counts, &removed);
        let kept = |entry: &&FileEntry| {
            entry.id().is_some_and(|id| id.kind == FileKind::Dictionary || !touched.contains(&id.partition))
        };
        let mut files: Vec<FileEntry> = base.manifest().files.iter().filter(kept).cloned().collect();
        files.extend(written.files);
        let manifest = manifest(&options, counts, files);
        let patched = patch.finish(base.manifest(), &manifest)?;
        summary.bytes_changed = changed_bytes(base.manifest(), &manifest, &|_| true);
        let is_pulled = |partition| !patched.partitions.contains(&partition);
        summary.bytes_moved = patched.bytes + changed_bytes(base.manifest(), &manifest, &is_pulled);
        let linked = link_packs(&base, &manifest, &dir)?;
        write_packs(&dir, &manifest, &|pack| linked.contains(&pack), &mut |entry| {
            let loose = dir.join(&entry.name);
            match entry.id().and_then(|id| base.place_of(id)) {
                Some((path, offset)) if !loose.exists() => Piece::Copy { path, offset },
                _ => Piece::Loose(loose),
            }
        })?;
        // Partitions whose changes changed nothing: the base's pack is the same.
        for entry in manifest.files.iter().filter(|entry| linked.contains(&entry.pack)) {
            let loose = dir.join(&entry.name);
            if loose.exists() {
                fs::remove_file(&loose).map_err(BuildError::folder("remove", &loose))?;
            }
        }
        manifest.write(&dir)?;
        staging.commit()?;
        Ok((manifest, summary))
    }
}

/// Totals of the new version: the base's, without what was read from partitions that changed, with what was written.
fn counts(base: &VersionFolder, written: &ValueCounts, removed: &ValueCounts) -> ValueCounts {
    let before = base.manifest().values().map(|values| values.counts).unwrap_or_default();
    let change = |before: u64, removed: u64, written: u64| before.saturating_sub(removed) + written;
    ValueCounts {
        records: change(before.records, removed.records, written.records),
        key_bytes: change(before.key_bytes, removed.key_bytes, written.key_bytes),
        value_bytes: change(before.value_bytes, removed.value_bytes, written.value_bytes),
    }
}

/// Bytes of the files of some partitions that the base does not have.
fn changed_bytes(base: &Manifest, new: &Manifest, of: &dyn Fn(PartitionId) -> bool) -> u64 {
    let held: BTreeSet<(&str, u64)> =
        base.files.iter().map(|entry| (entry.blake3.as_str(), entry.bytes)).collect();
    let changed = new.files.iter().filter(|entry| {
        !held.contains(&(entry.blake3.as_str(), entry.bytes)) && entry.id().is_some_and(|id| of(id.partition))
    });
    changed.map(|entry| entry.bytes).sum()
}

/// Links packs of the base that hold just the files of a new pack at the same places; gives the numbers of these.
fn link_packs(base: &VersionFolder, new: &Manifest, dir: &Path) -> Result<BTreeSet<u32>, ValuesBuildError> {
    let common = new.packs_in_common(base.manifest());
    let mut linked = BTreeSet::new();
    for files in new.files.chunk_by(|a, b| a.pack == b.pack) {
        let Some(pack) = common.get(&files[0].pack) else { continue };
        let (from, to) = (base.dir().join(pack_name(*pack)), dir.join(pack_name(files[0].pack)));
        // Another file system, or a folder that was fetched: then the files are copied one by one.
        if fs::hard_link(&from, &to).is_ok() {
            let fault =
                files.iter().find_map(|file| kith_engine::writing::prove_at(&to, file.offset, file).err());
            if let Some(fault) = fault {
                return Err(fault.into_open_error(&from).into());
            }
            linked.insert(files[0].pack);
        }
    }
    Ok(linked)
}

/// Sorted changes, one per key.
struct Changes {
    rows: SortedRows,
    kind: KeyType,
    duplicates: Duplicates,
    /// The next one: partition, position, key, change.
    head: Option<Change>,
    done: u64,
    /// What comes behind the head.
    ahead: Option<Change>,
}

struct Change {
    partition: PartitionId,
    position: u64,
    key: Vec<u8>,
    change: Vec<u8>,
}

impl Changes {
    fn new(rows: SortedRows, kind: KeyType, duplicates: Duplicates) -> Result<Self, ValuesBuildError> {
        let mut changes = Self { rows, kind, duplicates, head: None, done: 0, ahead: None };
        changes.ahead = changes.read()?;
        changes.advance()?;
        Ok(changes)
    }

    fn read(&mut self) -> Result<Option<Change>, ValuesBuildError> {
        let Some(row) = self.rows.next()? else { return Ok(None) };
        self.done += 1;
        Ok(Some(Change {
            partition: row.partition,
            position: position_of_key(row.key),
            key: row.key.to_vec(),
            change: row.value.to_vec(),
        }))
    }

    /// Goes to the next key.
    fn advance(&mut self) -> Result<(), ValuesBuildError> {
        self.head = self.ahead.take();
        self.ahead = self.read()?;
        while let (Some(head), Some(ahead)) = (&self.head, &self.ahead)
            && head.key == ahead.key
        {
            match self.duplicates {
                Duplicates::Refuse => {
                    return Err(ValuesBuildError::Duplicate { key: shown(self.kind, &head.key) });
                }
                Duplicates::First => {}
                Duplicates::Last => self.head = self.ahead.take(),
            }
            self.ahead = self.read()?;
        }
        Ok(())
    }
}

/// One partition of the base and its changes: into files, and into the patch.
struct Merge<'m, 'd, P> {
    writer: &'m mut ValuesWriter<'d, P>,
    patch: &'m mut PatchWriter,
    changes: &'m mut Changes,
    summary: &'m mut DeltaSummary,
    partition: PartitionId,
    /// Whether the base's values are.
    compressed: bool,
    removed: &'m mut ValueCounts,
}

impl<P> Merge<'_, '_, P> {
    /// Counts a record of the base; gives the bytes of its value.
    fn count(&mut self, key: &[u8], found: &Found<'_>) -> Result<usize, ValuesBuildError> {
        let stored = found.value();
        let bytes = match self.compressed {
            true => frame_value_bytes(stored).ok_or_else(|| found.malformed("compressed value"))?,
            false => stored.len(),
        };
        self.removed.add(&ValueCounts { records: 1, key_bytes: key.len() as u64, value_bytes: bytes as u64 });
        Ok(bytes)
    }
}

impl<P: Iterator<Item = PartitionId>> Merging for Merge<'_, '_, P> {
    type Error = ValuesBuildError;

    fn head(&self) -> Option<(u64, &[u8])> {
        let head = self.changes.head.as_ref().filter(|head| head.partition == self.partition);
        head.map(|head| (head.position, head.key.as_slice()))
    }

    fn take(&mut self, before: Option<&Found<'_>>) -> Result<(), ValuesBuildError> {
        let Some(Change { key, change, .. }) = self.changes.head.take() else { return Ok(()) };
        if let Some(found) = before {
            self.count(&key, found)?;
        }
        let count = match (change.split_first(), before) {
            (Some((&PUT, value)), _) => {
                let stored = self.writer.stored(value)?;
                if before.is_none_or(|found| found.value() != &*stored) {
                    self.patch.put(&key, &stored)?;
                }
                self.writer.stored_row(self.partition, &key, &stored, value.len())?;
                if before.is_some() { &mut self.summary.replaced } else { &mut self.summary.added }
            }
            (_, Some(_)) => {
                self.patch.delete(&key)?;
                &mut self.summary.deleted
            }
            (_, None) => &mut self.summary.absent,
        };
        *count += 1;
        self.changes.advance()
    }

    fn keep(&mut self, key: &[u8], found: &Found<'_>) -> Result<(), ValuesBuildError> {
        let bytes = self.count(key, found)?;
        self.writer.stored_row(self.partition, key, found.value(), bytes)
    }
}
