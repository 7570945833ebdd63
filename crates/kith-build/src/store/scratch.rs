//! The folder for what a build puts aside.

use std::{fs, path::PathBuf};

/// A folder for files without names, which is empty once the build has ended.
pub(super) struct Scratch(pub(super) PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
