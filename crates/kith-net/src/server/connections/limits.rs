//! Bounds on the connections of a process, and how many files the system lets it have.

use super::watch::Pace;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;

/// How connections are bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Connections at once, all ports together; `None`: what the limit of open files leaves, at most [`OPEN_MAX_DEFAULT`].
    pub open_max: Option<usize>,
    /// Connections that ask nothing for so long are closed; `None`: [`IDLE_DEFAULT`]. Zero: never.
    pub idle: Option<Duration>,
    /// Bytes of replies that are gathered or wait for their readers, all connections together; `None`: [`REPLY_BYTES_DEFAULT`].
    pub reply_bytes: Option<usize>,
}

/// Memory for replies where nobody says otherwise: five of the largest.
pub const REPLY_BYTES_DEFAULT: usize = 1 << 30;
/// Connections at once where nobody says otherwise. Each idle one takes up to 47 KiB.
pub const OPEN_MAX_DEFAULT: usize = 16_384;
/// Longer than pools of clients usually keep connections that they do not use.
pub const IDLE_DEFAULT: Duration = Duration::from_secs(600);

/// A process that may have fewer files open does not start: it would have room for hardly a connection beside its files.
pub(crate) const FILES_MIN: usize = 256;
/// The share of a process's files that connections must leave: components, logs and connections to others need them.
const RESERVED_SHARE: usize = 4;
const RESERVED_MIN: usize = 64;
const RESERVED_MAX: usize = 4_096;
/// Those who have not shown who they are yet. Each may hold a handshake's 64 KiB, or somewhat more once it has shaken hands: less than
/// 32 MiB together.
const STRANGERS_MAX: usize = 256;
/// Of all connections, those who have not shown who they are get no more than one in so many.
const STRANGERS_SHARE: usize = 4;
/// What one connection may have of the memory for replies: one part in so many, and room for the largest reply.
const REPLY_SHARE: usize = 4;
const REPLY_BYTES_EACH_MIN: usize = 256 << 20;
/// Connections to the port for health and metrics, which asks nobody who they are: probes and scrapers are few.
const HTTP_MAX: usize = 64;
/// That port takes at most one in this many of the connections that the process takes.
const HTTP_SHARE: usize = 4;

/// Bounds of one process, made of its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub open_max: usize,
    pub strangers_max: usize,
    pub pace: Pace,
    pub reply_bytes: usize,
}

impl Limits {
    /// Where the process may have `files` open at once.
    pub fn new(settings: ConnectionSettings, files: usize) -> Self {
        let reserved = (files / RESERVED_SHARE).clamp(RESERVED_MIN, RESERVED_MAX);
        let allowed = files.saturating_sub(reserved).max(1);
        let open_max = settings.open_max.unwrap_or(OPEN_MAX_DEFAULT).min(allowed).max(1);
        let idle = Some(settings.idle.unwrap_or(IDLE_DEFAULT)).filter(|idle| !idle.is_zero());
        let strangers_max = (open_max / STRANGERS_SHARE).clamp(1, STRANGERS_MAX);
        let reply_bytes = settings.reply_bytes.unwrap_or(REPLY_BYTES_DEFAULT);
        Self { open_max, strangers_max, pace: Pace::new(idle), reply_bytes }
    }

    /// Memory for the replies of one connection.
    pub fn reply_bytes_each(self) -> usize {
        (self.reply_bytes / REPLY_SHARE).max(REPLY_BYTES_EACH_MIN)
    }

    /// Those of the port for health and metrics, whose connections are counted apart from all others.
    pub fn of_http(self) -> Self {
        let open_max = (self.open_max / HTTP_SHARE).clamp(1, HTTP_MAX);
        let strangers_max = (open_max / STRANGERS_SHARE).max(1);
        Self { open_max, strangers_max, ..self }
    }
}

/// Lets this process have as many files open as the system allows it; how many.
pub(super) fn raise_file_limit() -> usize {
    let now = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: now.maximum, maximum: now.maximum };
    let current = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => now.maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files stays as it is");
            now.current
        }
    };
    // Nothing said is no limit.
    current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_files() {
        let of = |open_max, files| {
            let limits = Limits::new(ConnectionSettings { open_max, ..ConnectionSettings::default() }, files);
            (limits.open_max, limits.strangers_max)
        };
        assert_eq!(of(None, 1_048_576), (OPEN_MAX_DEFAULT, STRANGERS_MAX));
        assert_eq!(of(None, 1_024), (768, 192));
        let of_http = |open_max| {
            let settings = ConnectionSettings { open_max: Some(open_max), ..ConnectionSettings::default() };
            Limits::new(settings, 1_048_576).of_http().open_max
        };
        assert_eq!([1, 100, 16_384].map(of_http), [1, 25, HTTP_MAX]);
        assert_eq!(of(None, 256), (192, 48));
        assert_eq!(of(Some(100_000), 1_048_576), (100_000, STRANGERS_MAX));
        assert_eq!(of(Some(100_000), 20_000), (15_904, STRANGERS_MAX), "4,096 are left");
        assert_eq!(of(Some(0), 20_000), (1, 1));
        assert_eq!(of(None, 10), (1, 1));
    }
}
