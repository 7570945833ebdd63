//! Why a file cannot be written, opened or read. A damaged or missing byte is
//! always one of these, never an absent answer (architecture D6).

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// What does not hold in a file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Fault {
    /// The file is not there.
    #[error("file is missing")]
    Missing,
    /// The manifest knows nothing of the file.
    #[error("file is not in the manifest")]
    Unlisted,
    /// The manifest lists no file where one is needed.
    #[error("manifest lists no such file")]
    NotListed,
    /// Another size than stated.
    #[error("size is {got} bytes instead of {expected}")]
    Size {
        /// As the manifest says.
        expected: u64,
        /// As found.
        got: u64,
    },
    /// Bytes that fail their checksum.
    #[error("checksum of {what} at byte {offset} does not match")]
    Checksum {
        /// The part that is covered.
        what: &'static str,
        /// Where the part begins.
        offset: u64,
    },
    /// A field with a value that no writer gives it.
    #[error("{what} at byte {offset} is impossible")]
    Content {
        what: &'static str,
        /// Where, as near as known.
        offset: u64,
    },
    /// The file, whole as it may be, is not the one that the manifest describes.
    #[error("{what} differs from the manifest's")]
    Foreign {
        /// What differs.
        what: &'static str,
    },
    /// A file of another format version.
    #[error("format version is {got}, but this release reads version {supported}")]
    OtherFormat {
        got: u32,
        /// The one read here.
        supported: u32,
    },
    /// The file became shorter, or unreadable, while it was mapped.
    #[error("file was cut or became unreadable while it was open")]
    Lost,
}

/// A file that cannot be trusted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file} is damaged: {fault}")]
pub struct Damage {
    /// File name, without its folder.
    pub file: String,
    /// What does not hold.
    pub fault: Fault,
}

/// A component, or a part of it, cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum OpenError {
    /// A byte is missing, extra or wrong.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The operating system refused.
    #[error("cannot read {path}")]
    Io { path: PathBuf, source: io::Error },
    /// There is no component in the folder.
    #[error("{path} holds no component: its manifest is missing")]
    NoComponent { path: PathBuf },
    /// The file has a format version that this release does not read.
    #[error("{file} has format version {got}, but this release reads version {supported}")]
    OtherFormat {
        /// File name.
        file: String,
        got: u32,
        /// The one read here.
        supported: u32,
    },
    /// It holds values where a graph component is needed, or the other way round.
    #[error("{component:?} holds {got}, but {expected} are needed")]
    OtherContent {
        /// The component's name.
        component: String,
        /// What was asked for.
        expected: &'static str,
        /// What it holds.
        got: &'static str,
    },
    /// Its keys are of another type than the store's.
    #[error("{component:?} has keys of type {got}, but {expected} are needed")]
    OtherKeys {
        /// The component's name.
        component: String,
        /// The store's.
        expected: String,
        /// The component's.
        got: &'static str,
    },
    /// The manifest is whole, but of another version or another store.
    #[error("{path} holds the version with manifest {got}, but {expected} is needed")]
    OtherVersion {
        path: PathBuf,
        /// The identity that was asked for.
        expected: String,
        /// The identity found.
        got: String,
    },
    /// The manifest is whole, but of a component of another store.
    #[error("{path} is a version of {got}, not of {expected}")]
    OtherStore {
        path: PathBuf,
        /// The component and store that the manifest names.
        got: String,
        /// What was asked for.
        expected: String,
    },
    /// The component is built for another number of partitions.
    #[error("component {component:?} has {got} partitions, but {expected} are needed")]
    PartitionCount {
        /// The component's name.
        component: String,
        /// The graph's count.
        expected: u32,
        /// The component's.
        got: u32,
    },
}

impl OpenError {
    /// Why a file is not opened.
    pub(crate) fn of_file(file: String, fault: Fault) -> Self {
        match fault {
            Fault::OtherFormat { got, supported } => OpenError::OtherFormat { file, got, supported },
            fault => Damage { file, fault }.into(),
        }
    }

    /// Whether this process lacks descriptors or memory: that says nothing of the file, and passes.
    pub fn lacks_resources(&self) -> bool {
        matches!(self, OpenError::Io { source, .. } if lacks_resources(source))
    }
}

/// Whether the operating system refused because descriptors or memory have run out.
fn lacks_resources(error: &io::Error) -> bool {
    let is_told = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM));
    is_told || error.kind() == io::ErrorKind::OutOfMemory
}

/// A record, list or block cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// What the answer rests on is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
}

/// A file cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum WriteError {
    /// What was to be copied is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The operating system refused; a full disk, mostly.
    #[error("cannot write {path}")]
    Io { path: PathBuf, source: io::Error },
    /// Input is not in the order that the file needs.
    #[error("{file}: record {record} is out of order")]
    OutOfOrder {
        /// File name.
        file: String,
        /// 0-based number of the record.
        record: u64,
    },
    /// The same record came twice.
    #[error("{file}: record {record} repeats the one before")]
    Duplicate {
        /// File name.
        file: String,
        /// 0-based number of the record.
        record: u64,
    },
    /// Longer than the format allows.
    #[error("{file}: {what} of {got} bytes is longer than {max}")]
    TooLarge {
        /// File name.
        file: String,
        /// A key or a value.
        what: &'static str,
        got: u64,
        /// The longest allowed.
        max: u64,
    },
    /// A key that is no id, among ids.
    #[error("{file}: a key of {bytes} bytes is no id")]
    NoId {
        /// File name.
        file: String,
        bytes: usize,
    },
    /// An ordinal at or beyond the end of the table that it points into.
    #[error("{file}: ordinal {got} points beyond the {count} keys of the table")]
    OrdinalOutOfRange {
        /// File name.
        file: String,
        got: u32,
        /// Keys in the table.
        count: u32,
    },
    /// More than the format can number.
    #[error("{file}: more than {max} {what}")]
    TooMany {
        /// File name.
        file: String,
        /// What there are too many of.
        what: &'static str,
        /// The most allowed.
        max: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_descriptors_or_memory_is_told_from_a_bad_file() {
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
