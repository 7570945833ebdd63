//! Partitions that tasks build one by one, before they are assembled into a version.
//!
//! In a bucket, the folder of a partition is named by its number and the beginning of its seal. A task that runs twice
//! writes the same bytes under the same names, whether one run fails or is killed, and another outcome of the same
//! partition never touches them. The summary is written last, so a folder without one is not a partition. Only
//! [`PartitionObjects::remove_all`] removes anything.

use crate::objects::remote::block_on;
use crate::objects::upload::{PACKS_AT_A_TIME, SharedProgress, upload_pack};
use crate::objects::{Objects, ObjectsError, Upload};
use crate::{PartitionSummary, SUMMARY_NAME};
use futures::{StreamExt, TryStreamExt};
use kith_engine::{PackEntry, Source};
use std::fs;
use std::io;
use std::path::Path;
use std::thread;

/// The number of digits of a partition's number in the name of its folder.
const NUMBER_DIGITS: usize = 5;
/// The number of digits of a partition's seal in the name of its folder in a bucket.
const SEAL_DIGITS: usize = 16;
/// The number of summaries that are read at a time.
const READS_AT_A_TIME: usize = 8;
/// Prefixes of folders that killed tasks leave behind on this machine.
const LEFT_OVER: [&str; 2] = [".partition-", ".scratch-"];

/// The partitions in a place.
#[derive(Clone, Copy, Debug)]
pub struct PartitionObjects<'a> {
    pub(crate) objects: &'a Objects,
}

impl PartitionObjects<'_> {
    /// Uploads the partition in `folder` to a new folder below this place, and returns the name of that folder. Does
    /// not work for folders of this machine, where tasks build in place. After an error there is no partition, unless
    /// another task has written it.
    ///
    /// # Errors
    /// [`ObjectsError::Taken`] if another outcome of the partition exists; if files cannot be read, or the store fails.
    pub fn upload(
        &self,
        folder: &Path,
        summary: &PartitionSummary,
        on_progress: &mut Upload<'_>,
    ) -> Result<String, ObjectsError> {
        let local = |path: &Path, source| ObjectsError::Local { path: path.to_owned(), source };
        let path = folder.join(SUMMARY_NAME);
        let bytes = fs::read(&path).map_err(|source| local(&path, source))?;
        let number = format!("p{:0width$}", summary.partition, width = NUMBER_DIGITS);
        let seal: String = summary.seal.chars().take(SEAL_DIGITS).collect();
        let name = format!("{number}-{seal}");
        let target = self.objects.join(&name);
        let Some(remote) = &target.remote else {
            let source = io::Error::new(io::ErrorKind::Unsupported, "it is a folder on this machine");
            return Err(local(folder, source));
        };
        for other in self.objects.children()? {
            let is_other = other != name && other.starts_with(&format!("{number}-"));
            if is_other && self.objects.join(&other).size(SUMMARY_NAME)?.is_some() {
                return Err(ObjectsError::Taken { object: self.objects.join(&other).location().to_string() });
            }
        }
        let file = |name: &str, bytes| PackEntry { name: name.to_owned(), bytes };
        let files: Vec<_> = summary.files.iter().map(|entry| file(&entry.name, entry.bytes)).collect();
        let progress = SharedProgress::new(files.iter().map(|file| file.bytes).sum(), on_progress);
        block_on(async {
            let uploads =
                futures::stream::iter(&files).map(|file| upload_pack(remote, folder, file, &progress));
            uploads.buffer_unordered(PACKS_AT_A_TIME).try_for_each(async |()| Ok(())).await
        })?;
        match target.put_new(SUMMARY_NAME, bytes.clone()) {
            Err(ObjectsError::Taken { object }) => {
                let mut found = vec![0; bytes.len() + 1];
                let count = target.read(SUMMARY_NAME, 0, &mut found);
                let is_same = count.is_ok_and(|count| found[..count] == bytes);
                if is_same { Ok(name) } else { Err(ObjectsError::Taken { object }) }
            }
            put => put.map(|()| name),
        }
    }

    /// Returns the partitions below this place: the names of their folders and the bytes of their summaries.
    ///
    /// # Errors
    /// If the place cannot be read.
    pub fn summaries(&self) -> Result<Vec<(String, Vec<u8>)>, ObjectsError> {
        let mut found = Vec::new();
        for listed in self.objects.list()? {
            let Some((folder, SUMMARY_NAME)) = listed.name.rsplit_once('/') else { continue };
            if is_partition(folder) {
                found.push((folder.to_owned(), listed.bytes));
            }
        }
        let read = |(folder, bytes): &(String, u64)| {
            let object = format!("{folder}/{SUMMARY_NAME}");
            let mut summary = vec![0; usize::try_from(*bytes).unwrap_or_default()];
            let count = self.objects.read(&object, 0, &mut summary).map_err(|error| {
                let object = self.objects.join(&object).location().to_string();
                ObjectsError::Failed { object, source: Box::new(error) }
            })?;
            summary.truncate(count);
            Ok((folder.clone(), summary))
        };
        let share = found.len().div_ceil(READS_AT_A_TIME).max(1);
        thread::scope(|scope| {
            let shares: Vec<_> = found
                .chunks(share)
                .map(|share| scope.spawn(move || share.iter().map(read).collect::<Result<Vec<_>, _>>()))
                .collect();
            let mut all = Vec::with_capacity(found.len());
            for share in shares {
                all.extend(share.join().expect("reading does not panic")?);
            }
            Ok(all)
        })
    }

    /// Copies the files and the summary of a partition below this place to `folder`. The files are not proven.
    ///
    /// # Errors
    /// If the files cannot be read or written.
    pub fn download(
        &self,
        name: &str,
        summary: &PartitionSummary,
        folder: &Path,
        on_progress: &mut dyn FnMut(u64),
    ) -> Result<(), ObjectsError> {
        let local = |path: &Path, source| ObjectsError::Local { path: path.to_owned(), source };
        fs::create_dir_all(folder).map_err(|source| local(folder, source))?;
        let files = summary.files.iter().map(|file| (file.name.as_str(), file.bytes));
        for (file, bytes) in files.chain([(SUMMARY_NAME, 0)]) {
            let path = folder.join(file);
            let mut reader = self.objects.reader(&format!("{name}/{file}"));
            let copied = fs::File::create(&path).and_then(|mut to| io::copy(&mut reader, &mut to));
            copied.map_err(|source| local(&path, source))?;
            on_progress(bytes);
        }
        Ok(())
    }

    /// Removes all partitions below this place, complete or not, and nothing else. Returns how many there were. Also
    /// removes the folder of this place if it is then empty.
    ///
    /// # Errors
    /// If the place cannot be read, or something cannot be removed.
    pub fn remove_all(&self) -> Result<usize, ObjectsError> {
        let is_left_over = |name: &str| LEFT_OVER.iter().any(|prefix| name.starts_with(prefix));
        let mut removed = 0;
        for name in self.objects.children()? {
            let is_partition = is_partition(&name);
            if is_partition || (self.objects.folder().is_some() && is_left_over(&name)) {
                self.objects.join(&name).remove_all()?;
                removed += usize::from(is_partition);
            }
        }
        if let Some(folder) = self.objects.folder() {
            // The folder may contain other files, and then remains.
            let _ = fs::remove_dir(folder);
        }
        Ok(removed)
    }
}

/// Whether a folder has the name of a partition, on this machine or in a bucket.
fn is_partition(name: &str) -> bool {
    let is_seal = |seal: &str| seal.len() == SEAL_DIGITS && seal.bytes().all(|it| it.is_ascii_hexdigit());
    let Some(rest) = name.strip_prefix('p') else { return false };
    let (number, seal) = rest.split_once('-').map_or((rest, None), |(number, seal)| (number, Some(seal)));
    let is_number = NUMBER_DIGITS <= number.len() && number.bytes().all(|it| it.is_ascii_digit());
    is_number && seal.is_none_or(is_seal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_partitions_are_called_so() {
        for name in ["p00000", "p00012-0123456789abcdef", "p123456"] {
            assert!(is_partition(name), "{name}");
        }
        for name in ["p", "p1", "p0000x", "people", "p00000-", "p00000-0123", "p00000-0123456789abcdeg", "7"]
        {
            assert!(!is_partition(name), "{name}");
        }
    }
}
