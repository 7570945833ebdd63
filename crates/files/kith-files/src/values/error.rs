//! Errors of building a version of a store.

use crate::{BuildError, SortError};
use kith_engine::ValueError;
use kith_engine::WriteError;
use kith_engine::{Damage, OpenError};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The reason why a version of a store cannot be built. Nothing of it remains under its final name.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ValuesBuildError {
    /// Files or folders cannot be created.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Two rows have the same key.
    #[error("key {key} comes twice")]
    Duplicate {
        /// The key, as text or hexadecimal.
        key: String,
    },
    /// A key or value is too long.
    #[error("{what} of key {key} has {got} bytes, at most {max} are allowed")]
    TooLarge {
        /// The key, as text or hexadecimal.
        key: String,
        /// Whether it is a key or a value.
        what: &'static str,
        got: usize,
        /// The longest length.
        max: usize,
    },
    /// A key is not an id.
    #[error("a key of {got} bytes cannot be an id, which has 8")]
    KeyLength { got: usize },
    /// A key belongs to another partition.
    #[error("key {key} belongs to partition {got}, not {expected}")]
    OtherPartition {
        /// The key, as text or hexadecimal.
        key: String,
        /// The partition that is being built.
        expected: u32,
        /// The partition of the key.
        got: u32,
    },
    /// The rows should be sorted, but are not.
    #[error("key {key} comes after a key that belongs behind it")]
    NotSorted {
        /// The key, as text or hexadecimal.
        key: String,
    },
    /// The level of compression does not exist.
    #[error("compression level {got} is not within 1 and 19")]
    Level {
        /// The level as given.
        got: i32,
    },
    /// A single partition cannot train a dictionary, because the other partitions must share it.
    #[error(
        "compression needs a dictionary: make one from a sample of all rows, and give it to every partition"
    )]
    NoDictionary,
    /// The compressor failed.
    #[error("cannot compress values")]
    Compression(#[from] io::Error),
    /// The partitions do not form a version.
    #[error("{path}: {fault}", path = path.display())]
    Partition {
        /// The folder of the partition, or of the version.
        path: PathBuf,
        /// A description of the fault.
        fault: String,
    },
    /// The base version cannot be opened.
    #[error(transparent)]
    Base(#[from] OpenError),
    /// A value of the base version cannot be read.
    #[error(transparent)]
    Value(#[from] ValueError),
}

impl From<WriteError> for ValuesBuildError {
    fn from(error: WriteError) -> Self {
        ValuesBuildError::Build(error.into())
    }
}

impl From<SortError> for ValuesBuildError {
    fn from(error: SortError) -> Self {
        ValuesBuildError::Build(error.into())
    }
}

impl From<Damage> for ValuesBuildError {
    fn from(damage: Damage) -> Self {
        ValuesBuildError::Base(damage.into())
    }
}

impl From<kith_engine::ReadError> for ValuesBuildError {
    fn from(error: kith_engine::ReadError) -> Self {
        ValuesBuildError::Value(error.into())
    }
}

impl ValuesBuildError {
    /// Advice on what to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Build(error) => error.help(),
            Self::Duplicate { .. } => "remove one of the rows, or say which to keep: the first or the last",
            Self::TooLarge { .. } => "keep large values elsewhere and store where they are",
            Self::KeyLength { .. } => "give ids as numbers, or create the store with another key type",
            Self::OtherPartition { .. } => "divide rows by the partition function of `docs/formats`",
            Self::NotSorted { .. } => "sort the rows by position, then key, or have the builder sort them",
            Self::Level { .. } => "choose a level within these; 3 is usual",
            Self::NoDictionary => "take a sample of the rows first",
            Self::Compression(_) => "build without compression",
            Self::Partition { .. } => "build the partition again with the options of the others",
            Self::Base(_) | Self::Value(_) => "verify the version that the changes apply to, or push in full",
        }
    }
}
