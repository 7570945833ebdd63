//! The commands that serve: `kith dev`, `kith node`, `kith router`; and `kith cluster create`, whose file they share.

mod config;
mod create;
mod detach;
mod dev;
mod metadata;
mod own;
mod process;

pub use create::{CreateFlags, CreateReply};
pub use dev::DevArgs;
use kith_types::ErrorCode;
pub use process::{NodeArgs, RouterArgs};

use crate::{
    failure::Failure,
    names::{rate, size},
};
use kith_node::NodeOptions;
use kith_process::{StartError, private};
use kith_router::{RouterSettings, SettingsFileError};
use kith_routing::{PaceOptions, Strategy};
use std::{io::IsTerminal, num::NonZeroU64, path::Path};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// What every serving process does first. Its files are its user's alone; logs go to standard error, `KITH_LOG` filters them.
pub fn begin(log_default: &str) {
    private::keep_files_private();
    let filter = EnvFilter::try_from_env("KITH_LOG").unwrap_or_else(|_| EnvFilter::new(log_default));
    let colours = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .compact();
    // A second call in one process, as in tests, keeps the first log.
    let _ = log.try_init();
}

/// Cancelled by Ctrl-C, by SIGTERM, and by the end of standard input where that is asked for.
fn stop_signal(end_with_stdin: bool) -> CancellationToken {
    let stop = CancellationToken::new();
    listen(end_with_stdin, stop.clone(), stop.clone());
    stop
}

/// How a process of one role is told to end.
struct Ending {
    /// Cancelled by SIGTERM: what is under way ends first.
    leave: CancellationToken,
    /// Cancelled by Ctrl-C, and by the end of standard input where that is asked for: at once.
    stop: CancellationToken,
}

impl Ending {
    fn listen(end_with_stdin: bool) -> Self {
        let (leave, stop) = (CancellationToken::new(), CancellationToken::new());
        listen(end_with_stdin, leave.clone(), stop.clone());
        Self { leave, stop }
    }

    /// For what the process serves; `leaving` cancels it once it comes to that.
    fn serving(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// What becomes of `starting`; `None` if the process is told to end before.
    async fn unless<T>(&self, starting: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            () = self.stop.cancelled() => None,
            () = self.leave.cancelled() => None,
            started = starting => Some(started),
        }
    }

    /// Waits until the process shall end, and has left if it may.
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
        // Whoever is told to leave and then to stop stops.
        let _ = tokio::signal::ctrl_c().await;
        cancel.cancel();
    });
    if end_with_stdin {
        // A thread of its own: a blocked read of standard input must not hold up the runtime's end.
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            stop.cancel();
        });
    }
}

/// How replicas are placed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize, serde::Serialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementFlag {
    /// Replica groups that each hold every partition once
    #[default]
    Groups,
    /// One ring of all nodes: replicas are on the next nodes clockwise
    Ring,
}

impl PlacementFlag {
    fn strategy(self) -> Strategy {
        match self {
            PlacementFlag::Groups => Strategy::ReplicaGroups,
            PlacementFlag::Ring => Strategy::Ring,
        }
    }
}

/// How fast a node scrubs, in bytes a second; `None`: not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct ScrubRate(Option<u64>);

impl Default for ScrubRate {
    fn default() -> Self {
        Self(Some(NodeOptions::SCRUB_RATE_DEFAULT))
    }
}

impl TryFrom<String> for ScrubRate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        scrub_rate(&text)
    }
}

fn scrub_rate(text: &str) -> Result<ScrubRate, String> {
    match text {
        "off" => Ok(ScrubRate(None)),
        text => rate(text).map(|rate| ScrubRate(Some(rate))).map_err(|error| format!("{error}, or `off`")),
    }
}

/// How fast a node fetches, in bytes a second; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct FetchRate(Option<NonZeroU64>);

impl FetchRate {
    /// Bytes a second; 0: no limit.
    pub fn or_zero(self) -> u64 {
        self.0.map_or(0, NonZeroU64::get)
    }
}

impl TryFrom<String> for FetchRate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        fetch_rate(&text)
    }
}

/// `off`, or a rate.
pub fn fetch_rate(text: &str) -> Result<FetchRate, String> {
    scrub_rate(text).map(|ScrubRate(rate)| FetchRate(rate.and_then(NonZeroU64::new)))
}

/// How far the fetches of a node may raise the p99 of its reads, in hundredths; `None`: as far as they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct FetchP99(Option<u32>);

impl Default for FetchP99 {
    fn default() -> Self {
        Self(Some((PaceOptions::P99_RATIO_MAX * 100.0) as u32))
    }
}

impl FetchP99 {
    /// The ratio.
    pub fn ratio(self) -> Option<f64> {
        self.0.map(|hundredths| f64::from(hundredths) / 100.0)
    }
}

impl TryFrom<String> for FetchP99 {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        fetch_p99(&text)
    }
}

/// `off`, or a ratio.
pub fn fetch_p99(text: &str) -> Result<FetchP99, String> {
    if text == "off" {
        return Ok(FetchP99(None));
    }
    match text.parse::<f64>() {
        Ok(ratio) if (1.01..=100.0).contains(&ratio) => Ok(FetchP99(Some((ratio * 100.0).round() as u32))),
        _ => Err("expected a ratio from 1.01 to 100, such as 1.2, or `off`".to_owned()),
    }
}

/// How much of a new version a node brings into memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct WarmBytes(u64);

impl Default for WarmBytes {
    fn default() -> Self {
        Self(NodeOptions::WARM_BYTES_DEFAULT)
    }
}

impl TryFrom<String> for WarmBytes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        warm_bytes(&text)
    }
}

fn warm_bytes(text: &str) -> Result<WarmBytes, String> {
    size(text).map(|bytes| WarmBytes(bytes as u64))
}

/// Memory for replies, as the command line and the configuration file write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
struct ReplyMemory(usize);

/// Less than this would refuse what clients usually ask for.
const REPLY_MEMORY_MIN: usize = 16 << 20;

impl TryFrom<String> for ReplyMemory {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        reply_memory(&text)
    }
}

fn reply_memory(text: &str) -> Result<ReplyMemory, String> {
    match size(text)? {
        bytes if bytes < REPLY_MEMORY_MIN => Err(format!("{text} is less than the minimum of 16MiB")),
        bytes => Ok(ReplyMemory(bytes)),
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
