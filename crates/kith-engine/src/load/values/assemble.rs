//! Partitions that were built one by one become a version.

use super::options::ValuesOptions;
use super::partition::{PartitionSummary, identity};
use super::writer::write_dictionary;
use super::{ValuesBuildError, manifest};
use crate::Manifest;
use crate::load::builder::Staging;
use crate::manifest::ValueCounts;
use crate::pack::{Piece, write_packs};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Makes a version of the folders of all its partitions, in [`version_dir`](crate::load::version_dir) of
/// `options.out_dir`: proves and joins their files into packs. The manifest equals that of one builder of all rows. The
/// folders stay; of two folders with the same outcome of one partition, either is taken.
///
/// # Errors
/// If a partition is missing, damaged, built with other options, or there twice with different rows.
pub fn assemble(options: &ValuesOptions, folders: &[PathBuf]) -> Result<Manifest, ValuesBuildError> {
    options.check()?;
    let mut partitions: BTreeMap<u32, (PathBuf, PartitionSummary)> = BTreeMap::new();
    let expected = identity(options);
    for folder in folders {
        let summary = PartitionSummary::read(folder)?;
        let fault = |fault: String| ValuesBuildError::Partition { path: folder.clone(), fault };
        if summary.options != expected {
            return Err(fault("the partition was built with other options or another dictionary".to_owned()));
        }
        if summary.partition >= options.partitions.get() {
            return Err(fault(format!("there is no partition {}", summary.partition)));
        }
        let kept = partitions.entry(summary.partition).or_insert_with(|| (folder.clone(), summary.clone()));
        if kept.1 != summary {
            let other = kept.0.display();
            let partition = summary.partition;
            return Err(fault(format!("partition {partition} is also in {other}, with other rows")));
        }
    }
    if let Some(missing) = options.partitions.iter().find(|id| !partitions.contains_key(&id.0)) {
        let fault = format!("partition {} is missing", missing.0);
        return Err(ValuesBuildError::Partition { path: options.out_dir.clone(), fault });
    }
    let staging = Staging::create(&options.out_dir, options.version)?;
    let dir = staging.dir();
    let mut counts = ValueCounts::default();
    let mut files = Vec::new();
    let mut places = BTreeMap::new();
    for (folder, summary) in partitions.into_values() {
        counts.add(&summary.counts);
        places.extend(summary.files.iter().map(|file| (file.name.clone(), folder.join(&file.name))));
        files.extend(summary.files);
    }
    files.extend(write_dictionary(&dir, options)?);
    let manifest = manifest(options, counts, files);
    write_packs(&dir, &manifest, &|_| false, &mut |entry| match places.get(&entry.name) {
        Some(path) => Piece::Copy { path: path.clone(), offset: 0 },
        None => Piece::Loose(dir.join(&entry.name)),
    })?;
    manifest.write(&dir)?;
    staging.commit()?;
    Ok(manifest)
}
