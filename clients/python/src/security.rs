//! The identity of this program and the authorities that it trusts. They come from the same files as on the command line
//! (`docs/operating/securing.md`), which are read again when they change.

use crate::error::refused;
use kith_client::security::{Dialer, SecurityOptions};
use pyo3::PyResult;
use std::{
    path::PathBuf,
    sync::Weak,
    time::{Duration, SystemTime},
};
use tokio::{task, time};

/// The interval at which files are checked for changes, which is the same in nodes and routers.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The files of the authorities, the certificate, the key and the token.
pub type Files = (Option<PathBuf>, Option<PathBuf>, Option<PathBuf>, Option<PathBuf>);

/// A dialer, and the files from which it was made.
pub struct SecuredDialer {
    pub dialer: Dialer,
    files: Vec<PathBuf>,
    seen: State,
}

/// The modification time and the size of each file, by which changes are noticed.
type State = Vec<Option<(SystemTime, u64)>>;

/// Reads the files. Without any file, connections are not encrypted.
///
/// # Errors
/// `kith.KithError` with the same code and message as on the command line.
pub fn open((ca, cert, key, token): Files) -> PyResult<SecuredDialer> {
    let files: Vec<PathBuf> = [&ca, &cert, &key, &token].into_iter().flatten().cloned().collect();
    // The state is taken before the files are read, so that a change during the read is noticed later.
    let seen = state_of(&files);
    let dialer = Dialer::open(SecurityOptions { ca, cert, key, token }).map_err(|error| refused(&error))?;
    Ok(SecuredDialer { dialer, files, seen })
}

impl SecuredDialer {
    /// Starts a task that reads the files again when they change, as long as the `owner` exists. It must be called on a
    /// thread of the runtime.
    pub fn follow<T: Send + Sync + 'static>(self, owner: Weak<T>) {
        if self.files.is_empty() {
            return;
        }
        tokio::spawn(async move {
            let mut secured = self;
            loop {
                time::sleep(LOOK_INTERVAL).await;
                if owner.strong_count() == 0 {
                    return;
                }
                let Ok(looked) = task::spawn_blocking(move || secured.look()).await else { return };
                secured = looked;
            }
        });
    }

    /// Reads the files again if they have changed. Invalid files change nothing and are tried again later, because a file
    /// may be half written.
    fn look(mut self) -> Self {
        let now = state_of(&self.files);
        if now != self.seen && self.dialer.reload().is_ok() {
            self.seen = now;
        }
        self
    }
}

fn state_of(files: &[PathBuf]) -> State {
    let state = |path: &PathBuf| {
        let file = std::fs::metadata(path).ok()?;
        Some((file.modified().ok()?, file.len()))
    };
    files.iter().map(state).collect()
}
