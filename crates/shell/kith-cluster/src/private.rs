//! Permissions of the files of a process: only its user may read them.

use rustix::{fs::Mode, process::umask};
use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

/// The permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Makes every file that this process and its children create from now on private to their user: 0600, folders 0700.
pub fn keep_files_private() {
    umask(Mode::from_raw_mode(OTHERS));
}

/// Limits the permissions of group and others on files created from now on to those on `folder`, so that files in an object
/// store are as private as the store's folder. If `folder` does not exist, it is created private to its user.
///
/// # Errors
/// If the parent of the folder does not exist, or the permissions of the folder cannot be read.
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

/// Makes a data directory private to its user, or logs a warning that this failed.
pub fn close(data: &Path) {
    if let Err(error) = tighten(data) {
        let path = data.display();
        tracing::warn!(%error, %path, "other users may be able to read the data directory");
    }
}

/// Removes the permissions of group and others from a folder and everything in it, because other users may have created it.
/// Symbolic links and their targets are left alone.
///
/// # Errors
/// The first error of the system, after every file was tried.
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
        // Temporary files may disappear meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    });
    // Every file is tried, even if an earlier one failed.
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
