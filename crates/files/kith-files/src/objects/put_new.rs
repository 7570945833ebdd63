//! Writes of files that must not exist yet.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// A new folder is accessible to its user only, and the file gets the permissions of its folder.
pub(super) fn put_new_file(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let mode = fs::metadata(folder)?.permissions().mode() & 0o666;
    let staged = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = File::options().create(true).truncate(true).write(true).mode(mode).open(&staged)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    // Creating a link fails if the name exists.
    let linked = written.and_then(|()| fs::hard_link(&staged, path));
    let _ = fs::remove_file(&staged);
    linked.and_then(|()| File::open(folder)?.sync_all())
}
