//! Finding and repairing damage in the files of versions.
//!
//! [`scrub`] rereads all files in the background and has damage repaired, [`verify`] compares files with the metadata, and
//! [`heal`] replaces damaged ones. [`copies`] checks the object store's copy on request.

pub(crate) mod copies;
pub(crate) mod heal;
pub(crate) mod scrub;
pub(crate) mod verify;
