//! Limits on the connections of a process, on the memory of their requests and replies, and on open files.

use super::watch::Pace;
use crate::server::hosts::AcceptedHost;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;

/// The settings for connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// The most open connections, all ports together. `None`: as many as the limit of open files permits, at most
    /// [`OPEN_MAX_DEFAULT`].
    pub open_max: Option<usize>,
    /// Connections without requests for this long are closed. `None`: [`IDLE_DEFAULT`]. Zero: never.
    pub idle: Option<Duration>,
    /// The most bytes of replies that are being received or wait for their readers, all connections together. `None`:
    /// [`REPLY_BYTES_DEFAULT`].
    pub reply_bytes: Option<usize>,
    /// The hosts whose web pages may send requests, and under whose names HTTP clients may ask this process, besides its own
    /// addresses.
    pub accepted_hosts: Vec<AcceptedHost>,
}

/// The default memory for replies: room for four of the largest size.
pub const REPLY_BYTES_DEFAULT: usize = 1 << 30;
/// The default for open connections. Each idle connection takes up to 47 KiB.
pub const OPEN_MAX_DEFAULT: usize = 16_384;
/// The default idle time. It is longer than client pools usually keep unused connections.
pub const IDLE_DEFAULT: Duration = Duration::from_secs(600);

/// The memory for requests of one connection: the largest request, a copy of it, and a reserve.
pub(super) const CONNECTION_BYTES_MAX: usize = 176 << 20;
/// The memory for requests of all connections of a process. Large requests may use three quarters of it, which is as much
/// as one connection may use.
pub(super) const PROCESS_BYTES_MAX: usize = 240 << 20;
/// The memory for HTTP/2 streams of all connections of a process, of the above: 5,120 streams. The rest is left to requests
/// of other protocols and to long ones.
pub(super) const STREAMS_BYTES_MAX: usize = 160 << 20;
/// The part of it for streams that last as long as their callers like: 2,560 streams.
pub(super) const LASTING_BYTES_MAX: usize = STREAMS_BYTES_MAX / 2;
/// How many bytes an unauthenticated peer may send: enough for a request with a token.
pub const STRANGER_BYTES_MAX: usize = 24 << 10;
/// The longest frame of an unauthenticated peer, which contains only its token.
pub(crate) const STRANGER_FRAME_BYTES_MAX: usize = 8 << 10;
/// How many frames an unauthenticated peer may send, or commands if it is a Redis client.
pub const STRANGER_MESSAGES_MAX: u64 = 16;
/// How long a peer may take to authenticate.
pub(crate) const STRANGER_TIMEOUT: Duration = Duration::from_secs(10);

/// A process with a lower limit of open files does not start, because it would have room for hardly any connections besides
/// its files.
pub(crate) const FILES_MIN: usize = 256;
/// The share of the limit of open files that connections must leave for components, logs and outgoing connections.
const RESERVED_SHARE: usize = 4;
const RESERVED_MIN: usize = 64;
const RESERVED_MAX: usize = 4_096;
/// The most connections of unauthenticated peers. Each may hold the 64 KiB of a handshake, or somewhat more after it: less
/// than 32 MiB together.
const STRANGERS_MAX: usize = 256;
/// Unauthenticated peers may have at most this share of all connections: one in four.
const STRANGERS_SHARE: usize = 4;
/// One connection may use this share of the memory for replies, but always enough for the largest reply.
const REPLY_SHARE: usize = 4;
const REPLY_BYTES_EACH_MIN: usize = 256 << 20;
/// The most connections to the port for health and metrics, which authenticates nobody. Probes and scrapers are few.
const HTTP_MAX: usize = 128;
/// That port accepts at most this share of the connections that the process may have.
const HTTP_SHARE: usize = 4;

/// The limits of one process, derived from its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub open_max: usize,
    pub strangers_max: usize,
    pub pace: Pace,
    pub reply_bytes: usize,
}

impl Limits {
    /// Derives the limits for a process that may have `files` files open.
    pub fn new(settings: &ConnectionSettings, files: usize) -> Self {
        let reserved = (files / RESERVED_SHARE).clamp(RESERVED_MIN, RESERVED_MAX);
        let allowed = files.saturating_sub(reserved).max(1);
        let open_max = settings.open_max.unwrap_or(OPEN_MAX_DEFAULT).min(allowed).max(1);
        let idle = Some(settings.idle.unwrap_or(IDLE_DEFAULT)).filter(|idle| !idle.is_zero());
        let strangers_max = (open_max / STRANGERS_SHARE).clamp(1, STRANGERS_MAX);
        let reply_bytes = settings.reply_bytes.unwrap_or(REPLY_BYTES_DEFAULT);
        Self { open_max, strangers_max, pace: Pace::new(idle), reply_bytes }
    }

    /// The bytes of memory for the replies of one connection.
    pub fn reply_bytes_each(self) -> usize {
        (self.reply_bytes / REPLY_SHARE).max(REPLY_BYTES_EACH_MIN)
    }

    /// The limits for the port for health and metrics, whose connections are counted separately.
    pub fn of_http(self) -> Self {
        let open_max = (self.open_max / HTTP_SHARE).clamp(1, HTTP_MAX);
        Self { open_max, strangers_max: open_max, ..self }
    }
}

/// Raises the limit of open files as far as the system permits. Returns the limit.
pub(super) fn raise_file_limit() -> usize {
    let now = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: now.maximum, maximum: now.maximum };
    let current = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => now.maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files cannot be raised");
            now.current
        }
    };
    // No value means no limit.
    current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_files() {
        let of = |open_max, files| {
            let limits =
                Limits::new(&ConnectionSettings { open_max, ..ConnectionSettings::default() }, files);
            (limits.open_max, limits.strangers_max)
        };
        assert_eq!(of(None, 1_048_576), (OPEN_MAX_DEFAULT, STRANGERS_MAX));
        assert_eq!(of(None, 1_024), (768, 192));
        let of_http = |open_max| {
            let settings = ConnectionSettings { open_max: Some(open_max), ..ConnectionSettings::default() };
            Limits::new(&settings, 1_048_576).of_http().open_max
        };
        assert_eq!([1, 100, 16_384].map(of_http), [1, 25, HTTP_MAX]);
        assert_eq!(of(None, 256), (192, 48));
        assert_eq!(of(Some(100_000), 1_048_576), (100_000, STRANGERS_MAX));
        assert_eq!(of(Some(100_000), 20_000), (15_904, STRANGERS_MAX), "4,096 are left");
        assert_eq!(of(Some(0), 20_000), (1, 1));
        assert_eq!(of(None, 10), (1, 1));
    }
}
