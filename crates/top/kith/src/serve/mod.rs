//! The serving commands: `kith dev`, `kith node`, `kith router` and `kith database`. Also `kith cluster create`, which
//! shares their configuration file.

mod amounts;
mod config;
mod create;
mod database;
mod detach;
mod dev;
mod log;
mod metadata;
mod own;
mod process;
mod recover;

pub use amounts::{FetchRate, PlacementFlag, fetch_rate};
pub use create::{CreateFlags, CreateReply};
pub use database::DatabaseArgs;
pub use dev::DevArgs;
pub use process::{NodeArgs, RoleProcess, RouterArgs};
pub use recover::RecoverFlags;

use crate::failure::Failure;
use amounts::{
    FetchP99, LogRetention, ReplyMemory, ScrubRate, WarmBytes, fetch_p99, log_retention, reply_memory,
    scrub_rate, warm_bytes,
};
use kith_cluster::{StartError, private};
use kith_router::{RouterSettings, SettingsFileError};
use kith_types::ErrorCode;
pub use log::LogFormat;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Prepares a serving process: makes its files private to its user, and begins its log.
pub fn begin(format: LogFormat, log_default: &str) {
    private::keep_files_private();
    log::begin(format, log_default);
}

/// Returns a token that is cancelled by Ctrl-C, by SIGTERM and, if `end_with_stdin` is set, by the end of standard
/// input.
fn stop_signal(end_with_stdin: bool) -> CancellationToken {
    let stop = CancellationToken::new();
    listen(end_with_stdin, stop.clone(), stop.clone());
    stop
}

/// The signals that tell a process of one role to stop.
struct Ending {
    /// The token that SIGTERM cancels: the process finishes its work first.
    leave: CancellationToken,
    /// The token that Ctrl-C cancels, and the end of standard input if that is requested: the process stops at once.
    stop: CancellationToken,
}

impl Ending {
    fn listen(end_with_stdin: bool) -> Self {
        let (leave, stop) = (CancellationToken::new(), CancellationToken::new());
        listen(end_with_stdin, leave.clone(), stop.clone());
        Self { leave, stop }
    }

    /// Returns a token for the serving tasks. The code that leaves the cluster cancels it when it is ready to.
    fn serving(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Waits for `starting`. Returns `None` if a signal arrives before.
    async fn unless<T>(&self, starting: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            () = self.stop.cancelled() => None,
            () = self.leave.cancelled() => None,
            started = starting => Some(started),
        }
    }

    /// Waits until a signal arrives. After SIGTERM, also waits for `leaving`, unless `stop` is cancelled meanwhile.
    async fn wait(&self, leaving: impl Future<Output = ()>) {
        let left = async {
            self.leave.cancelled().await;
            leaving.await;
        };
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = left => {}
        }
    }
}

fn listen(end_with_stdin: bool, terminated: CancellationToken, stop: CancellationToken) {
    let cancel = stop.clone();
    tokio::spawn(async move {
        let mut terminate = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(terminate) => terminate,
            Err(error) => return tracing::error!(%error, "cannot listen for signals"),
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => cancel.cancel(),
            _ = terminate.recv() => terminated.cancel(),
        }
        // Listens also after SIGTERM: Ctrl-C still stops at once a process that is leaving.
        let _ = tokio::signal::ctrl_c().await;
        cancel.cancel();
    });
    if end_with_stdin {
        // This needs its own thread, because a blocked read of standard input must not delay the end of the runtime.
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            stop.cancel();
        });
    }
}

fn settings(config: Option<&Path>) -> anyhow::Result<RouterSettings> {
    let Some(path) = config else { return Ok(RouterSettings::default()) };
    RouterSettings::read(path).map_err(|error| {
        let message = match &error {
            SettingsFileError::Io { source, .. } => format!("{error}: {source}"),
            _ => error.to_string(),
        };
        Failure::new(ErrorCode::BadSettings, message, "see docs/operating/settings.md for the keys").into()
    })
}

fn start_failure(error: StartError) -> anyhow::Error {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        message.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    Failure::new(error.code(), message, error.help()).into()
}
