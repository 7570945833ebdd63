//! Writes of objects that must not exist yet.

use crate::objects::remote::block_on;
use crate::objects::{Objects, ObjectsError};
use object_store::PutMode;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

impl Objects {
    /// Writes an object that must not exist yet, completely or not at all. Creates the object's folder, but not the
    /// parents of that folder.
    pub(crate) fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<(), ObjectsError> {
        if let Some(remote) = &self.remote {
            let at = remote.at(name);
            let put = remote.store.put_opts(&at, bytes.into(), PutMode::Create.into());
            return block_on(put).map(|_| ()).map_err(|error| ObjectsError::of(remote.named(name), error));
        }
        let folder = self.folder().unwrap_or(Path::new(""));
        let path = folder.join(name);
        put_new_file(folder, &path, &bytes).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => ObjectsError::Taken { object: path.display().to_string() },
            _ => ObjectsError::Local { path, source },
        })
    }
}

/// A new folder is accessible to its user only, and the file gets the permissions of its folder.
fn put_new_file(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
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
