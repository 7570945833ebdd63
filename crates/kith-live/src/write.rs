//! Writes to a live graph as callers ask for them, and what comes of them.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The most bytes of an object's record (TAO §3.1 gives 1 MB).
pub const OBJECT_BYTES_MAX: usize = 1 << 20;
/// The most bytes of an association's record.
pub const ASSOCIATION_BYTES_MAX: usize = 64 << 10;
/// The most bytes of a write id.
pub const WRITE_ID_BYTES_MAX: usize = 64;

/// One write, and the conditions under which it is to take effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// What to do.
    pub mutation: Mutation,
    /// When to do it.
    pub conditions: Conditions,
    /// Names the write, so that repeating it within ten minutes returns the first outcome and writes nothing.
    pub write_id: Option<WriteId>,
}

/// What a write does. Types are named; data are JSON objects of the type's fields.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Mutation {
    /// Creates an object.
    AddObject {
        kind: String,
        data: Option<String>,
        /// The id of an object that is imported; otherwise the leader chooses one.
        id: Option<u64>,
        /// An object whose partition the new one shares.
        near: Option<u64>,
    },
    /// Replaces the fields of an object that `data` has, and keeps the others.
    UpdateObject { id: u64, data: String },
    /// Deletes an object. Its associations stay.
    DeleteObject { id: u64 },
    /// Creates or overwrites an association, and its inverse if its type has one.
    AddAssociation {
        id1: u64,
        kind: String,
        id2: u64,
        /// The current time if `None`.
        time: Option<u64>,
        data: Option<String>,
    },
    /// Deletes an association, and its inverse if its type has one.
    DeleteAssociation { id1: u64, kind: String, id2: u64 },
    /// Gives an association that exists another type.
    ChangeType { id1: u64, kind: String, id2: u64, new_kind: String },
}

impl Mutation {
    /// The name that users write: `op` of a request line.
    pub fn name(&self) -> &'static str {
        match self {
            Mutation::AddObject { .. } => "object_add",
            Mutation::UpdateObject { .. } => "object_update",
            Mutation::DeleteObject { .. } => "object_delete",
            Mutation::AddAssociation { .. } => "assoc_add",
            Mutation::DeleteAssociation { .. } => "assoc_delete",
            Mutation::ChangeType { .. } => "assoc_change_type",
        }
    }
}

/// A write takes effect only if these hold for the object or association that it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// It has this version.
    pub if_version: Option<u64>,
    /// It exists, or does not.
    pub if_exists: Option<bool>,
}

/// The name that a caller gave to a write: 1 to [`WRITE_ID_BYTES_MAX`] bytes of printable ASCII.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(String);

/// A text that cannot be a write id.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a write_id is 1 to {WRITE_ID_BYTES_MAX} printable ASCII characters without spaces")]
pub struct NotAWriteId;

impl WriteId {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WriteId {
    type Err = NotAWriteId;

    fn from_str(text: &str) -> Result<Self, NotAWriteId> {
        let fits = (1..=WRITE_ID_BYTES_MAX).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(text.to_owned()));
        }
        Err(NotAWriteId)
    }
}

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What came of a write. Recorded under its write id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It took effect, or there was nothing to do.
    Done(Done),
    /// A condition did not hold; nothing was written.
    Refused(Refusal),
}

/// The outcome of a write that took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The object that was created or changed; for associations `id1`.
    pub id: u64,
    /// The version of what was written: the position of the change. 0 if there was nothing to do.
    pub version: u64,
    /// Whether the object or association existed before.
    pub existed: bool,
}

/// Why a write was refused after looking at what is stored.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// `if_version` names another version.
    #[error("the version is {found}, not {wanted}")]
    OtherVersion {
        /// The version of what is stored; 0 if there is nothing.
        found: u64,
        /// The version that the write asked for.
        wanted: u64,
    },
    /// `if_exists` is true, and there is nothing.
    #[error("it does not exist")]
    Absent,
    /// `if_exists` is false, and there is something.
    #[error("it exists already, as version {version}")]
    Present {
        /// The version of what is stored.
        version: u64,
    },
    /// An object is to be created with an id that another object has.
    #[error("object {id} exists already")]
    ObjectExists {
        /// The id.
        id: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_id_is_short_printable_text() {
        assert_eq!("order-17/a".parse::<WriteId>().map(|id| id.to_string()), Ok("order-17/a".to_owned()));
        for text in ["", "two words", "tab\t", "ä", &"x".repeat(65)] {
            assert_eq!(text.parse::<WriteId>(), Err(NotAWriteId), "{text:?}");
        }
    }
}
