//! The summary of a partition that was built separately, in a file of its folder.

use super::ValuesBuildError;
use super::options::ValuesOptions;
use kith_engine::writing::{json_text, seal_of};
use kith_engine::{FileEntry, KeyType, ValueCounts, ValueType};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The name of a partition's summary in its folder.
pub const SUMMARY_NAME: &str = "partition.json";

/// The format version of summaries.
pub(super) const SUMMARY_FORMAT: u32 = 1;

/// The beginning of a summary of any format version.
#[derive(Deserialize)]
struct Preamble {
    kith_partition: u32,
}

/// The content of a built partition. Two runs of one task write the same summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionSummary {
    /// The format version.
    pub kith_partition: u32,
    /// The number of the partition.
    pub partition: u32,
    /// A hash of everything that all partitions of the version must share.
    pub options: String,
    /// The number of keys, and the size of keys and values.
    pub counts: ValueCounts,
    /// The logical files in the partition's folder.
    pub files: Vec<FileEntry>,
    /// BLAKE3 of the summary with this field empty.
    pub seal: String,
}

impl PartitionSummary {
    /// Reads the summary of a partition's folder and checks its seal.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub fn read(folder: &Path) -> Result<Self, ValuesBuildError> {
        let bytes = fs::read(folder.join(SUMMARY_NAME)).map_err(|error| {
            let fault = format!("{SUMMARY_NAME} cannot be read: {error}");
            ValuesBuildError::Partition { path: folder.to_owned(), fault }
        })?;
        Self::decode(&bytes, folder)
    }

    /// Decodes a summary from the bytes of its file, like [`PartitionSummary::read`]; `folder` is the name of its folder in
    /// messages.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn decode(bytes: &[u8], folder: &Path) -> Result<Self, ValuesBuildError> {
        let fault = |fault: String| ValuesBuildError::Partition { path: folder.to_owned(), fault };
        if let Ok(Preamble { kith_partition: got }) = serde_json::from_slice(bytes)
            && got != SUMMARY_FORMAT
        {
            let reads = format!("but this release reads version {SUMMARY_FORMAT}");
            return Err(fault(format!("{SUMMARY_NAME} has format version {got}, {reads}")));
        }
        let summary: Self = serde_json::from_slice(bytes)
            .map_err(|error| fault(format!("{SUMMARY_NAME} is damaged: {error}")))?;
        let sealed = summary.clone().sealed();
        if sealed != summary || summary.encode() != bytes {
            return Err(fault(format!("{SUMMARY_NAME} is damaged: its seal does not match")));
        }
        let ours = |file: &FileEntry| file.id().is_some_and(|id| id.partition.0 == summary.partition);
        if !summary.files.iter().all(ours) {
            return Err(fault(format!("{SUMMARY_NAME} names files of another partition")));
        }
        if !summary.files.is_sorted_by(|a, b| a.name < b.name) {
            return Err(fault(format!("{SUMMARY_NAME} names its files out of order, or one of them twice")));
        }
        if let Some(what) = summary.files.iter().find_map(|file| file.check().err()) {
            return Err(fault(format!("{SUMMARY_NAME} is damaged: its {what} is impossible")));
        }
        Ok(summary)
    }

    /// Sets the seal.
    pub(super) fn sealed(mut self) -> Self {
        self.seal.clear();
        self.seal = seal_of(&self);
        self
    }

    /// Encodes the summary for its file.
    pub(super) fn encode(&self) -> Vec<u8> {
        json_text(self)
    }
}

/// A hash of everything that all partitions of a version must share.
pub(super) fn identity(options: &ValuesOptions) -> String {
    #[derive(Serialize)]
    struct Shared<'a> {
        name: &'a str,
        version: u64,
        partitions: u32,
        key: KeyType,
        value: ValueType,
        schema: Option<&'a str>,
        level: Option<i32>,
        dictionary: Option<String>,
    }
    let zstd = options.compression.as_ref();
    let dictionary = zstd.and_then(|zstd| zstd.dictionary.as_deref());
    let shared = Shared {
        name: &options.name,
        version: options.version.0,
        partitions: options.partitions.get(),
        key: options.key,
        value: options.value,
        schema: options.schema.as_deref(),
        level: zstd.map(|zstd| zstd.level),
        dictionary: dictionary.map(|bytes| blake3::hash(bytes).to_hex().to_string()),
    };
    let text = serde_json::to_vec(&shared).expect("strings and numbers always serialize");
    blake3::hash(&text).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_engine::FileId;
    use kith_engine::writing::FILE_BYTES_MAX;
    use kith_types::PartitionId;

    #[test]
    fn a_summary_that_cannot_become_a_manifest_is_refused() {
        let file = |id: FileId, bytes: u64| FileEntry {
            name: id.to_string(),
            pack: 0,
            offset: 0,
            bytes,
            records: 1,
            blake3: String::new(),
            crc32c: 0,
            first_position: None,
        };
        let summary = |files: Vec<FileEntry>| PartitionSummary {
            kith_partition: SUMMARY_FORMAT,
            partition: 3,
            options: String::new(),
            counts: ValueCounts { records: u64::MAX, ..ValueCounts::default() },
            files,
            seal: String::new(),
        };
        let decode = |files| PartitionSummary::decode(&summary(files).sealed().encode(), Path::new("part"));
        let (members, postings) =
            (FileId::members(PartitionId(3)), FileId::postings(PartitionId(3), kith_types::Direction::Both));
        let two = decode(vec![file(postings, 1), file(members, FILE_BYTES_MAX)]).unwrap();
        let mut counts = two.counts;
        counts.add(&two.counts);
        assert_eq!(counts.records, u64::MAX);
        let unplaced = FileEntry { first_position: Some("none".to_owned()), ..file(members, 1) };
        for (files, why) in [
            (vec![file(members, 1), file(members, 1)], "twice"),
            (vec![file(members, 1), file(postings, 1)], "out of order"),
            (vec![file(members, FILE_BYTES_MAX + 1)], "size of a file"),
            (vec![unplaced], "first_position"),
        ] {
            let error = decode(files).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
