//! What a listing says of an object.

use std::time::SystemTime;

/// An object below a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Its name relative to the place, parts divided by `/`.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// When it was written.
    pub modified: SystemTime,
}
