//! Who this program is to the cluster, and whom it believes: the files that the command line takes (`docs/operating/securing.md`), read
//! again when they change.

use crate::error::refused;
use kith_client::security::{Dialer, SecurityOptions};
use pyo3::PyResult;
use std::{
    path::PathBuf,
    sync::Weak,
    time::{Duration, SystemTime},
};
use tokio::{task, time};

/// How often files are looked at: as often as nodes and routers do.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Authorities, certificate, key, token.
pub type Files = (Option<PathBuf>, Option<PathBuf>, Option<PathBuf>, Option<PathBuf>);

/// A dialer, and the files that it was made from.
pub struct Secured {
    pub dialer: Dialer,
    files: Vec<PathBuf>,
    seen: State,
}

/// What changes when a file does.
type State = Vec<Option<(SystemTime, u64)>>;

/// Reads the files; without any, connections are in the clear.
///
/// # Errors
/// `kith.KithError` with the code and words of the command line.
pub fn open((ca, cert, key, token): Files) -> PyResult<Secured> {
    let files: Vec<PathBuf> = [&ca, &cert, &key, &token].into_iter().flatten().cloned().collect();
    // Before they are read: what changes meanwhile is seen as a change.
    let seen = state_of(&files);
    let dialer = Dialer::open(SecurityOptions { ca, cert, key, token }).map_err(|error| refused(&error))?;
    Ok(Secured { dialer, files, seen })
}

impl Secured {
    /// Takes files up anew when they change, as long as there is an `owner`. Called on the threads that answer.
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

    /// Files that are no longer what they should be leave everything as it was, and are looked at again: one may be half written.
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
