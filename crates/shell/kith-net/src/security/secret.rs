//! Files with secrets: private keys, tokens and passwords. A file that other users of the machine can read is refused, by
//! the rule of ssh.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::Path,
};
use thiserror::Error;

/// The longest file with a secret.
const BYTES_MAX: u64 = 1 << 20;
/// The permissions of the group, and those of everybody else.
const GROUP: u32 = 0o070;
const OTHERS: u32 = 0o007;

/// A file with a secret is open to other users.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("it holds a secret, and {whom} can open it (mode {mode:04o}): chmod 600 it")]
struct Exposed {
    whom: &'static str,
    mode: u32,
}

/// Reads a file with a secret.
///
/// # Errors
/// If the file cannot be read, is not text, is too long, or if other users can open it.
pub fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    // A pipe is open to those who have its ends.
    if metadata.is_file() {
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        check(metadata.mode() & 0o777, is_own)
            .map_err(|exposed| io::Error::new(io::ErrorKind::PermissionDenied, exposed))?;
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if BYTES_MAX < bytes.len() as u64 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long for a secret"));
    }
    kith_types::without_mark(bytes)
}

/// Checks the permissions of a file with a secret. A file of this user is for this user alone. A file of another user, such
/// as root, may also be open to its group: that is how service managers and Kubernetes hand secrets to a process.
fn check(mode: u32, is_own: bool) -> Result<(), Exposed> {
    match () {
        () if mode & OTHERS != 0 => Err(Exposed { whom: "every user of this machine", mode }),
        () if is_own && mode & GROUP != 0 => Err(Exposed { whom: "its group", mode }),
        () => Ok(()),
    }
}

/// Files with secrets for tests.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    use std::{
        fs::{self, File},
        io::Write,
        os::unix::fs::OpenOptionsExt,
        path::Path,
    };

    /// Writes a file that only its user can read, in place of a previous one.
    pub fn write(path: &Path, text: impl AsRef<[u8]>) {
        // The file may be there, with another mode or read only.
        let _ = fs::remove_file(path);
        let file = File::options().create_new(true).write(true).mode(0o600).open(path);
        file.and_then(|mut file| file.write_all(text.as_ref())).expect("the folder can be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    #[test]
    fn a_secret_is_for_its_user_alone_or_for_a_group_of_another_user() {
        for (mode, is_own, whom) in [
            (0o600, true, None),
            (0o400, true, None),
            (0o640, true, Some("its group")),
            (0o620, true, Some("its group")),
            (0o604, true, Some("every user of this machine")),
            (0o644, true, Some("every user of this machine")),
            (0o440, false, None),
            (0o640, false, None),
            (0o644, false, Some("every user of this machine")),
            (0o602, false, Some("every user of this machine")),
        ] {
            let exposed_to = check(mode, is_own).err().map(|exposed| exposed.whom);
            assert_eq!(exposed_to, whom, "{mode:o} {is_own}");
        }
    }

    #[test]
    fn an_open_file_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        testing::write(&path, "s3cret\n");
        assert_eq!(read(&path).unwrap(), "s3cret\n");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let refused = read(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        let message = refused.to_string();
        assert_eq!(
            message,
            "it holds a secret, and every user of this machine can open it (mode 0644): chmod 600 it"
        );
        testing::write(&path, vec![b'a'; BYTES_MAX as usize + 1]);
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
