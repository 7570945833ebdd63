//! One object in a listing.

use std::time::SystemTime;

/// An object below a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedObject {
    /// Its name relative to the place, with parts separated by `/`.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// The time of the last write.
    pub modified: SystemTime,
}
