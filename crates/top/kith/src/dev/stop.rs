//! Stops a development cluster from another process.
//!
//! The lock file of the data directory has the id of the process that holds it. A signal is sent only to a process that has
//! this very file open, because the id alone may have been reused by another process.

use super::OWNER;
use kith_cluster::data_dir::{self, DataDirError, LOCK_FILE};
use kith_types::ErrorCode;
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use thiserror::Error;

/// The time to wait for a cluster to stop. It kills its own children after 5 seconds.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval between two checks whether it has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The reason why a development cluster was not stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum StopError {
    /// No process uses the data directory.
    #[error("no `kith dev` runs with the data directory {data}")]
    NotRunning {
        /// The data directory.
        data: PathBuf,
    },
    /// The directory belongs to another kind of process.
    #[error("data directory {data} belongs to {owner}, not to a `kith dev`")]
    OtherOwner {
        /// The data directory.
        data: PathBuf,
        /// The owner of the directory.
        owner: String,
    },
    /// The directory is damaged or from another release.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The process belongs to another user, or cannot be inspected.
    #[error("process {pid} cannot be stopped")]
    Refused {
        pid: u32,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The process did not end in time.
    #[error("process {pid} was asked to end and has not ended within {END_TIMEOUT:?}")]
    StillRunning { pid: u32 },
}

impl StopError {
    /// The stable error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            StopError::NotRunning { .. } => ErrorCode::NotRunning,
            StopError::OtherOwner { .. } => ErrorCode::DataDirectoryOwner,
            StopError::DataDir(error) => error.code(),
            StopError::Refused { .. } => ErrorCode::CannotStop,
            StopError::StillRunning { .. } => ErrorCode::StillRunning,
        }
    }

    /// Returns what the user can do about it.
    pub fn help(&self) -> String {
        match self {
            StopError::NotRunning { .. } => "nothing has to be stopped".to_owned(),
            StopError::OtherOwner { .. } => {
                "name the data directory of a `kith dev`; a node or router ends at Ctrl-C or SIGTERM"
                    .to_owned()
            }
            StopError::DataDir(error) => error.help().to_owned(),
            StopError::Refused { .. } => "stop it as the user who started it".to_owned(),
            StopError::StillRunning { pid } => format!("look at its log; `kill -9 {pid}` ends it at once"),
        }
    }
}

/// Stops the `kith dev` that uses this data directory, and waits until it has ended. Returns its process id. With
/// `expected`, no other process is stopped, such as one that took the directory after that process had ended.
///
/// # Errors
/// [`StopError`]. No signal was sent then, unless the error is [`StopError::StillRunning`].
pub async fn stop(data: &Path, expected: Option<u32>) -> Result<u32, StopError> {
    let not_running = || StopError::NotRunning { data: data.to_owned() };
    let lock = data.join(LOCK_FILE);
    let written = fs::read_to_string(&lock).map_err(|_| not_running())?;
    let pid: u32 = written.trim().parse().map_err(|_| not_running())?;
    if expected.is_some_and(|expected| expected != pid) {
        return Err(not_running());
    }
    match data_dir::identity(data)? {
        Some(identity) if identity.owner != OWNER => {
            return Err(StopError::OtherOwner { data: data.to_owned(), owner: identity.owner });
        }
        _ => {}
    }
    match end(pid, &lock).await {
        Ok(Ended::Now) => Ok(pid),
        Ok(Ended::Before) => Err(not_running()),
        Ok(Ended::Never) => Err(StopError::StillRunning { pid }),
        Err(source) => Err(StopError::Refused { pid, source }),
    }
}

enum Ended {
    /// There was no process that has this file open.
    Before,
    Now,
    Never,
}

/// Ends a process if it has `lock` open. The process descriptor makes sure that the signal cannot reach another process that
/// has reused the id.
#[cfg(target_os = "linux")]
async fn end(pid: u32, lock: &Path) -> io::Result<Ended> {
    use rustix::{
        io::Errno,
        process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
    };
    let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(Ended::Before) };
    let process = match pidfd_open(id, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH) => return Ok(Ended::Before),
        Err(error) => return Err(error.into()),
    };
    let Some(start) = start_of(pid) else { return Ok(Ended::Before) };
    if !has_open(pid, lock)? {
        return Ok(Ended::Before);
    }
    match pidfd_send_signal(&process, Signal::TERM) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => return Err(error.into()),
    }
    let ended = async {
        while start_of(pid) == Some(start) {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    };
    Ok(tokio::time::timeout(END_TIMEOUT, ended).await.map_or(Ended::Never, |()| Ended::Now))
}

/// Returns when a process started, in clock ticks since the machine started. `None` if it has ended, even if its parent has
/// not waited for it.
#[cfg(target_os = "linux")]
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain any characters. The state follows it, and the start time is the twentieth field from there.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| !has_ended)
}

#[cfg(not(target_os = "linux"))]
async fn end(_: u32, _: &Path) -> io::Result<Ended> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "only on Linux is it certain which process has a file open",
    ))
}

/// Whether a process has this very file open.
#[cfg(target_os = "linux")]
fn has_open(pid: u32, file: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let file = match fs::metadata(file) {
        Ok(file) => file,
        Err(error) if gone(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    let descriptors = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(descriptors) => descriptors,
        Err(error) if gone(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    // Skip a descriptor that was closed meanwhile.
    let open = descriptors.flatten().filter_map(|descriptor| fs::metadata(descriptor.path()).ok());
    Ok(open.into_iter().any(|open| (open.dev(), open.ino()) == (file.dev(), file.ino())))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// Starts a process that has `file` open, if one is given.
    fn process(file: Option<&Path>) -> Child {
        let output = file.map_or_else(Stdio::null, |file| {
            Stdio::from(fs::File::options().append(true).create(true).open(file).expect("a file"))
        });
        Command::new("sleep").arg("600").stdout(output).spawn().expect("sleep starts")
    }

    fn was_ended(child: &mut Child) -> bool {
        let ended = child.try_wait().expect("a child").is_some();
        child.kill().expect("a child");
        child.wait().expect("a child");
        ended
    }

    #[tokio::test]
    async fn a_process_that_has_the_lock_open_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join(LOCK_FILE);
        let mut child = process(Some(&lock));
        fs::write(&lock, format!("{}\n", child.id())).unwrap();
        let other = child.id() + 1;
        assert!(matches!(stop(folder.path(), Some(other)).await, Err(StopError::NotRunning { .. })));
        assert_eq!(stop(folder.path(), Some(child.id())).await.unwrap(), child.id());
        assert!(was_ended(&mut child));
    }

    #[tokio::test]
    async fn a_process_that_only_has_the_id_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = process(None);
        fs::write(folder.path().join(LOCK_FILE), format!("{}\n", child.id())).unwrap();
        assert!(matches!(stop(folder.path(), None).await, Err(StopError::NotRunning { .. })));
        assert!(!was_ended(&mut child));
    }

    #[tokio::test]
    async fn a_node_is_no_development_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join(LOCK_FILE);
        let mut child = process(Some(&lock));
        fs::write(&lock, format!("{}\n", child.id())).unwrap();
        let held = data_dir::DataDir::lock(&folder.path().join("other")).unwrap();
        let identity = data_dir::FolderIdentity { cluster_id: "c".to_owned(), owner: "node 3".to_owned() };
        held.claim(&identity).unwrap();
        fs::copy(folder.path().join("other/kith.json"), folder.path().join("kith.json")).unwrap();
        assert!(matches!(stop(folder.path(), None).await, Err(StopError::OtherOwner { .. })));
        assert!(!was_ended(&mut child));
    }

    #[tokio::test]
    async fn a_directory_that_nobody_uses_is_not_running() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(stop(folder.path(), None).await, Err(StopError::NotRunning { .. })));
        fs::write(folder.path().join(LOCK_FILE), "x").unwrap();
        assert!(matches!(stop(folder.path(), None).await, Err(StopError::NotRunning { .. })));
    }
}
