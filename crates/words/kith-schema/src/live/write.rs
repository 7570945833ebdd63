//! Writes to a live graph as callers request them, and their outcomes.

use super::TextId;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The maximum size of an object's record, in bytes (TAO §3.1 gives 1 MB).
pub const OBJECT_BYTES_MAX: usize = 1 << 20;
/// The maximum size of an association's record, in bytes.
pub const ASSOCIATION_BYTES_MAX: usize = 64 << 10;
/// The maximum length of a write id, in bytes.
pub const WRITE_ID_BYTES_MAX: usize = 64;

/// One write, and the conditions under which it takes effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The effect of the write.
    pub mutation: Mutation,
    /// The conditions that must hold.
    pub conditions: Conditions,
    /// The name of the write, if it has one. A repeat with the same name within ten minutes returns the first outcome and
    /// writes nothing.
    pub write_id: Option<WriteId>,
}

/// The effect of a write. `kind` is the name of a type, and `data` is a JSON object with fields of this type.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Mutation {
    /// Creates an object.
    AddObject {
        kind: String,
        data: Option<String>,
        /// The id of the new object; `None` to derive it from the write id.
        id: Option<u64>,
        /// The id of an object in whose partition the new object is to lie.
        near: Option<u64>,
        /// The id of the new object as a text, in the place of `id` and `near`.
        text_id: Option<TextId>,
    },
    /// Replaces the fields of an object that `data` contains, and keeps the others.
    UpdateObject { id: u64, data: String },
    /// Deletes an object. Its associations stay.
    DeleteObject { id: u64 },
    /// Creates or overwrites an association, and its inverse if its type has one.
    AddAssociation {
        id1: u64,
        kind: String,
        id2: u64,
        /// The time of the association; `None` for the current time.
        time: Option<u64>,
        data: Option<String>,
    },
    /// Deletes an association, and its inverse if its type has one.
    DeleteAssociation { id1: u64, kind: String, id2: u64 },
    /// Changes the type of an existing association.
    ChangeType { id1: u64, kind: String, id2: u64, new_kind: String },
}

impl Mutation {
    /// Returns the name that users write, as `op` of a request line.
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

    /// Returns the number of bytes of the fields.
    pub fn data_bytes(&self) -> usize {
        match self {
            Mutation::AddObject { data, .. } | Mutation::AddAssociation { data, .. } => {
                data.as_ref().map_or(0, String::len)
            }
            Mutation::UpdateObject { data, .. } => data.len(),
            Mutation::DeleteObject { .. }
            | Mutation::DeleteAssociation { .. }
            | Mutation::ChangeType { .. } => 0,
        }
    }
}

/// Conditions on the object or association that a write names. The write takes effect only if all of them hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The version that the object or association must have; 0 if it must not exist.
    pub if_version: Option<u64>,
    /// Whether the object or association must exist.
    pub if_exists: Option<bool>,
}

/// The name that a caller gave to a write: 1 to [`WRITE_ID_BYTES_MAX`] bytes of printable ASCII. Names of one subject are not
/// those of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId {
    text: String,
    /// The subject that gave the name; empty if callers do not show who they are.
    subject: String,
}

/// A text that cannot be a write id.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a write_id is 1 to {WRITE_ID_BYTES_MAX} printable ASCII characters without spaces")]
pub struct NotAWriteId;

impl WriteId {
    /// Returns the write id as text, without its subject.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the subject that gave the name; empty if callers do not show who they are.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns the same name, as this subject gave it.
    #[must_use]
    pub fn of_subject(self, subject: String) -> Self {
        Self { subject, ..self }
    }

    /// Returns the name under which outcomes are recorded. It is the same for no two subjects.
    #[must_use]
    pub fn recorded(&self) -> Self {
        if self.subject.is_empty() {
            return self.clone();
        }
        let mut hash = Sha256::new();
        hash.update((self.subject.len() as u64).to_le_bytes());
        hash.update(&self.subject);
        hash.update(&self.text);
        let text = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text, subject: String::new() }
    }
}

impl FromStr for WriteId {
    type Err = NotAWriteId;

    fn from_str(text: &str) -> Result<Self, NotAWriteId> {
        let fits = (1..=WRITE_ID_BYTES_MAX).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self { text: text.to_owned(), subject: String::new() });
        }
        Err(NotAWriteId)
    }
}

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// The outcome of a write, which is recorded under its write id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The write took effect, or there was nothing to do.
    Done(CompletedWrite),
    /// A condition did not hold; nothing was written.
    Refused(Refusal),
}

/// The outcome of a write that took effect or had nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedWrite {
    /// The object that the write names or creates; for associations, `id1`.
    pub id: u64,
    /// The version that was written, which is the position of the change; 0 if there was nothing to do.
    pub version: u64,
    /// Whether the object or association existed before.
    pub existed: bool,
}

/// The reason why a write was refused, given what is stored.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// `if_version` names another version.
    #[error("the version is {found}, not {wanted}")]
    OtherVersion {
        /// The stored version; 0 if the object or association does not exist.
        found: u64,
        /// The version that the write asked for.
        wanted: u64,
    },
    /// `if_exists` is true, and the object or association does not exist.
    #[error("the object or association does not exist")]
    Absent,
    /// `if_exists` is false, and the object or association exists.
    #[error("the object or association exists already, as version {version}")]
    Present {
        /// The stored version.
        version: u64,
    },
    /// The write creates an object with an id that another object has.
    #[error("object {id} exists already")]
    ObjectExists {
        /// The id that is taken.
        id: u64,
    },
    /// The write gives an object a unique value that another object has.
    #[error("field {field:?} must be unique, and object {id} has the value {value}")]
    UniqueTaken {
        /// The name of the field.
        field: String,
        /// The value as JSON, cut off if it is long.
        value: String,
        /// The object that has the value.
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
