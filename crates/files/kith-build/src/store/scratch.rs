//! The folder for the scratch files of a build.

use std::{fs, path::PathBuf};

/// A folder for unnamed files. It is empty once the build has ended.
pub(super) struct Scratch(pub(super) PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
