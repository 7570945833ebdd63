//! Who may read the files of a process: nobody but its user.

use rustix::{fs::Mode, process::umask};
use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

/// What group and others may do.
const OTHERS: u32 = 0o077;

/// Has every file that this process and its children create from now on be for their user alone: 0600, folders 0700.
pub fn keep_files_private() {
    umask(Mode::from_raw_mode(OTHERS));
}

/// Has files created from now on let group and others do no more than `folder` lets them, which is made for its user alone if it is not
/// there: what is written into an object store is as private as the store's folder.
///
/// # Errors
/// If the folder around it is not there, or it cannot be looked at.
pub fn keep_as_private_as(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let closed = !fs::metadata(folder)?.permissions().mode() & OTHERS;
    let before = umask(Mode::from_raw_mode(OTHERS));
    umask(before | Mode::from_raw_mode(closed));
    Ok(())
}

/// Closes a data directory to other users, or warns that this cannot be done.
pub fn close(data: &Path) {
    if let Err(error) = tighten(data) {
        let path = data.display();
        tracing::warn!(%error, %path, "other users may be able to read the data directory");
    }
}

/// Takes what group and others may do from a folder and all that lies in it: others may have made it. Symbolic links are left
/// alone, and what they lead to.
///
/// # Errors
/// The first of the system's, once all was tried.
fn tighten(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Ok(());
    }
    let mode = found.permissions().mode();
    let tightened = match mode & OTHERS {
        0 => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(mode & !OTHERS)),
    };
    if !found.is_dir() {
        return tightened;
    }
    let inner = fs::read_dir(path)?.map(|entry| match tighten(&entry?.path()) {
        // Temporary files go while this one looks.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    });
    // Every file is tried, whatever becomes of the one before.
    inner.fold(tightened, |first, next| first.and(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_there_is_closed_to_others_and_what_links_lead_to_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (data, outside) = (folder.path().join("data"), folder.path().join("outside"));
        fs::create_dir_all(data.join("components/s")).unwrap();
        for (path, mode) in [(data.join("components/s/pack"), 0o644), (outside.clone(), 0o644)] {
            fs::write(&path, "x").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&outside, data.join("link")).unwrap();
        tighten(&data).unwrap();
        assert_eq!((mode(&data), mode(&data.join("components/s/pack"))), (0o700, 0o600));
        assert_eq!(mode(&outside), 0o644);
    }
}
