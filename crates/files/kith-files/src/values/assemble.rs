//! Assembles a version from partitions that were built one by one.

use super::options::ValuesOptions;
use super::summary::{PartitionSummary, identity};
use super::writer::write_dictionary;
use super::{ValuesBuildError, manifest};
use crate::builder::Staging;
use kith_engine::ValueCounts;
use kith_engine::writing::{Piece, pack_name, write_packs};
use kith_engine::{FileEntry, Manifest, ObjectError, Source};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Assembles a version from the folders of all its partitions, in [`version_dir`](crate::version_dir) of `options.out_dir`:
/// verifies their files and joins them into packs. The manifest equals that of a single builder of all rows. The folders
/// stay. If two folders hold the same result for one partition, either is used.
///
/// # Errors
/// If a partition is missing, damaged, built with other options, or given twice with different rows.
pub fn assemble(options: &ValuesOptions, folders: &[PathBuf]) -> Result<Manifest, ValuesBuildError> {
    options.check()?;
    let read = folders.iter().map(|folder| Ok((folder.clone(), PartitionSummary::read(folder)?)));
    let partitions = read.collect::<Result<Vec<_>, ValuesBuildError>>()?;
    let chosen = choose(options, &partitions)?;
    let staging = Staging::create(&options.out_dir, options.version)?;
    let dir = staging.dir();
    let Assembly { manifest, sources } =
        Assembly::join(options, &partitions, &chosen, write_dictionary(&dir, options)?);
    write_packs(&dir, &manifest, &|_| false, &mut |entry| match sources.get(&entry.name) {
        Some(&index) => Piece::Copy { path: folders[index].join(&entry.name), offset: 0 },
        None => Piece::Loose(dir.join(&entry.name)),
    })?;
    manifest.write(&dir)?;
    staging.commit()?;
    Ok(manifest)
}

/// The version that separately built partitions form, for callers that write it to something other than a folder.
#[derive(Clone, Debug)]
pub struct Assembly {
    manifest: Manifest,
    /// The index of the partition that holds each file, by file name.
    sources: BTreeMap<String, usize>,
}

impl Assembly {
    /// Assembles a version from the summaries of all partitions, with the names of their folders for messages. Of two with
    /// the same result, either is used. Only the summaries are read.
    ///
    /// # Errors
    /// Those of [`assemble`], except for damaged files; [`ValuesBuildError::NoDictionary`] if values are compressed.
    pub fn new(
        options: &ValuesOptions,
        partitions: &[(PathBuf, PartitionSummary)],
    ) -> Result<Self, ValuesBuildError> {
        options.check()?;
        if options.compression.is_some() {
            return Err(ValuesBuildError::NoDictionary);
        }
        Ok(Self::join(options, partitions, &choose(options, partitions)?, None))
    }

    fn join(
        options: &ValuesOptions,
        partitions: &[(PathBuf, PartitionSummary)],
        chosen: &[usize],
        dictionary: Option<FileEntry>,
    ) -> Self {
        let mut counts = ValueCounts::default();
        let mut files = Vec::from_iter(dictionary);
        let mut sources = BTreeMap::new();
        for &index in chosen {
            let summary = &partitions[index].1;
            counts.add(&summary.counts);
            sources.extend(summary.files.iter().map(|file| (file.name.clone(), index)));
            files.extend(summary.files.iter().cloned());
        }
        Self { manifest: manifest(options, counts, files), sources }
    }

    /// The manifest of the version, which equals that of a single builder of all rows.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The packs of the version, read from the partitions. The files of the given partition `i` lie in `parts` below
    /// `folders[i]`. Nothing is verified.
    pub fn source<'a>(&'a self, parts: &'a dyn Source, folders: &'a [String]) -> AssembledSource<'a> {
        AssembledSource { assembly: self, parts, folders }
    }
}

/// Packs that were not written yet. Their content is read from the partitions' own files. See [`Assembly::source`].
pub struct AssembledSource<'a> {
    assembly: &'a Assembly,
    parts: &'a dyn Source,
    folders: &'a [String],
}

impl Source for AssembledSource<'_> {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        let missing = || ObjectError::Missing { object: object.to_owned() };
        let number = object.strip_suffix(".pack").and_then(|number| number.parse().ok());
        let number: u32 = number.filter(|&number| pack_name(number) == object).ok_or_else(missing)?;
        let files = self.assembly.manifest.files_in_pack(number);
        let end_of = |file: &FileEntry| file.offset.saturating_add(file.bytes);
        let end = files.last().map(end_of).ok_or_else(missing)?;
        let count = (into.len() as u64).min(end.saturating_sub(offset)) as usize;
        let (into, stop) = (&mut into[..count], offset + count as u64);
        // The gaps between files are filled with zeros.
        into.fill(0);
        let first = files.partition_point(|file| end_of(file) <= offset);
        for entry in files[first..].iter().take_while(|file| file.offset < stop) {
            let (from, to) = (entry.offset.max(offset), end_of(entry).min(stop));
            let target = &mut into[(from - offset) as usize..(to - offset) as usize];
            self.read_file(entry, from - entry.offset, target)?;
        }
        Ok(count)
    }

    fn piece_bytes(&self) -> usize {
        self.parts.piece_bytes()
    }
}

impl AssembledSource<'_> {
    fn read_file(&self, entry: &FileEntry, offset: u64, into: &mut [u8]) -> Result<(), ObjectError> {
        let folder = self.assembly.sources.get(&entry.name).and_then(|&index| self.folders.get(index));
        let object = format!("{}/{}", folder.map_or("", String::as_str), entry.name);
        let failed = |why: &str| ObjectError::Failed { object: object.clone(), source: why.into() };
        match self.parts.read(&object, offset, into) {
            Ok(got) if got == into.len() => Ok(()),
            Ok(_) => Err(failed("it is shorter than the summary of its partition says")),
            Err(ObjectError::Missing { .. }) => Err(failed("its partition has lost it")),
            Err(error) => Err(error),
        }
    }
}

/// Chooses one result for each partition, by its index in `partitions`.
fn choose(
    options: &ValuesOptions,
    partitions: &[(PathBuf, PartitionSummary)],
) -> Result<Vec<usize>, ValuesBuildError> {
    let mut chosen: BTreeMap<u32, usize> = BTreeMap::new();
    let expected = identity(options);
    for (index, (folder, summary)) in partitions.iter().enumerate() {
        let fault = |fault: String| ValuesBuildError::Partition { path: folder.clone(), fault };
        if summary.options != expected {
            return Err(fault("the partition was built with other options or another dictionary".to_owned()));
        }
        if summary.partition >= options.partitions.get() {
            return Err(fault(format!("there is no partition {}", summary.partition)));
        }
        let (other, kept) = &partitions[*chosen.entry(summary.partition).or_insert(index)];
        if kept != summary {
            let (other, partition) = (other.display(), summary.partition);
            return Err(fault(format!("partition {partition} is also in {other}, with other rows")));
        }
    }
    if let Some(missing) = options.partitions.iter().find(|id| !chosen.contains_key(&id.0)) {
        let fault = format!("partition {} is missing", missing.0);
        return Err(ValuesBuildError::Partition { path: options.out_dir.clone(), fault });
    }
    Ok(chosen.into_values().collect())
}
