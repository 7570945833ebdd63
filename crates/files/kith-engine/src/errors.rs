//! Errors of writing, opening and reading files. A damaged or missing byte always leads to one of these, never to an absent
//! answer.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A fault in a file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Fault {
    /// The file is not there.
    #[error("file is missing")]
    Missing,
    /// The manifest does not list the file.
    #[error("file is not in the manifest")]
    Unlisted,
    /// The manifest lists no file where one is needed.
    #[error("manifest lists no such file")]
    NotListed,
    /// The size differs from the one in the manifest.
    #[error("size is {got} bytes instead of {expected}")]
    Size {
        /// The size in the manifest.
        expected: u64,
        /// The actual size.
        got: u64,
    },
    /// A checksum does not match.
    #[error("checksum of {what} at byte {offset} does not match")]
    Checksum {
        /// The part that the checksum covers.
        what: &'static str,
        /// The offset at which the part begins.
        offset: u64,
    },
    /// A field has a value that no writer gives it.
    #[error("{what} at byte {offset} is impossible")]
    Content {
        what: &'static str,
        /// The offset, as exactly as it is known.
        offset: u64,
    },
    /// The file may be intact, but is not the one that the manifest describes.
    #[error("{what} differs from the manifest's")]
    Foreign {
        /// A description of the difference.
        what: &'static str,
    },
    /// The file has another format version.
    #[error("format version is {got}, but this release reads version {supported}")]
    OtherFormat {
        got: u32,
        /// The version that this release reads.
        supported: u32,
    },
    /// The file was truncated or became unreadable while it was mapped.
    #[error("file was cut or became unreadable while it was open")]
    Lost,
}

/// A file that cannot be trusted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file} is damaged: {fault}")]
pub struct Damage {
    /// The file name, without its folder.
    pub file: String,
    /// A description of the fault in the file.
    pub fault: Fault,
}

/// A component, or a part of it, cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum OpenError {
    /// A byte is missing, superfluous or wrong.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The operating system reported an error.
    #[error("cannot read {path}")]
    Io { path: PathBuf, source: io::Error },
    /// There is no component in the folder.
    #[error("{path} holds no component: its manifest is missing")]
    NoComponent { path: PathBuf },
    /// The file has a format version that this release does not read.
    #[error("{file} has format version {got}, but this release reads version {supported}")]
    OtherFormat {
        /// The file name.
        file: String,
        got: u32,
        /// The version that this release reads.
        supported: u32,
    },
    /// The component holds values where a graph component is needed, or the other way round.
    #[error("{component:?} holds {got}, but {expected} are needed")]
    OtherContent {
        /// The component's name.
        component: String,
        /// The expected content.
        expected: &'static str,
        /// The actual content.
        got: &'static str,
    },
    /// The component has keys of another type than the store.
    #[error("{component:?} has keys of type {got}, but {expected} are needed")]
    OtherKeys {
        /// The component's name.
        component: String,
        /// The type of the store's keys.
        expected: String,
        /// The type of the component's keys.
        got: &'static str,
    },
    /// The manifest is intact, but belongs to another version or another store.
    #[error("{path} holds the version with manifest {got}, but {expected} is needed")]
    OtherVersion {
        path: PathBuf,
        /// The expected identity.
        expected: String,
        /// The identity that was found.
        got: String,
    },
    /// The manifest is intact, but belongs to a component of another store.
    #[error("{path} is a version of {got}, not of {expected}")]
    OtherStore {
        path: PathBuf,
        /// The component and store that the manifest names.
        got: String,
        /// The expected component and store.
        expected: String,
    },
    /// The component was built for another number of partitions.
    #[error("component {component:?} has {got} partitions, but {expected} are needed")]
    PartitionCount {
        /// The component's name.
        component: String,
        /// The number of the graph's partitions.
        expected: u32,
        /// The number of the component's partitions.
        got: u32,
    },
}

impl OpenError {
    /// The error for a fault of a file that is being opened.
    pub(crate) fn of_file(file: String, fault: Fault) -> Self {
        match fault {
            Fault::OtherFormat { got, supported } => OpenError::OtherFormat { file, got, supported },
            fault => Damage { file, fault }.into(),
        }
    }

    /// Whether this process ran out of descriptors or memory. That says nothing about the file, and may pass.
    pub fn lacks_resources(&self) -> bool {
        matches!(self, OpenError::Io { source, .. } if lacks_resources(source))
    }
}

/// Whether the operating system refused because descriptors or memory have run out.
fn lacks_resources(error: &io::Error) -> bool {
    let is_refusal = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM));
    is_refusal || error.kind() == io::ErrorKind::OutOfMemory
}

/// A record, list or block cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// A byte that the answer depends on is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
}

/// A file cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum WriteError {
    /// The bytes to be copied are damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The operating system reported an error, most often a full disk.
    #[error("cannot write {path}")]
    Io { path: PathBuf, source: io::Error },
    /// The input is not in the order that the file needs.
    #[error("{file}: record {record} is out of order")]
    OutOfOrder {
        /// The file name.
        file: String,
        /// 0-based number of the record.
        record: u64,
    },
    /// The same record was given twice.
    #[error("{file}: record {record} repeats the one before")]
    Duplicate {
        /// The file name.
        file: String,
        /// 0-based number of the record.
        record: u64,
    },
    /// A key or value is longer than the format allows.
    #[error("{file}: {what} of {got} bytes is longer than {max}")]
    TooLarge {
        /// The file name.
        file: String,
        /// Whether it is a key or a value.
        what: &'static str,
        got: u64,
        /// The longest length.
        max: u64,
    },
    /// The keys are ids, but this key is not.
    #[error("{file}: a key of {bytes} bytes is no id")]
    NoId {
        /// The file name.
        file: String,
        bytes: usize,
    },
    /// An ordinal at or beyond the end of its table.
    #[error("{file}: ordinal {got} points beyond the {count} keys of the table")]
    OrdinalOutOfRange {
        /// The file name.
        file: String,
        got: u32,
        /// The number of keys in the table.
        count: u32,
    },
    /// There are more items than the format can number.
    #[error("{file}: more than {max} {what}")]
    TooMany {
        /// The file name.
        file: String,
        /// The kind of item.
        what: &'static str,
        /// The maximum.
        max: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_descriptors_or_memory_is_distinguished_from_a_bad_file() {
        let io = |source| OpenError::Io { path: "pack".into(), source };
        for code in [libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
            assert!(io(io::Error::from_raw_os_error(code)).lacks_resources(), "{code}");
        }
        assert!(io(io::ErrorKind::OutOfMemory.into()).lacks_resources());
        for code in [libc::EIO, libc::ENOENT, libc::EACCES] {
            assert!(!io(io::Error::from_raw_os_error(code)).lacks_resources(), "{code}");
        }
        let damage = Damage { file: "pack".to_owned(), fault: Fault::Lost };
        assert!(!OpenError::Damaged(damage).lacks_resources());
    }
}
