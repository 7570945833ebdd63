//! One object in a listing.

use std::time::SystemTime;

/// An object below a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Its name relative to the place, with parts separated by `/`.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// When it was last written.
    pub modified: SystemTime,
}
