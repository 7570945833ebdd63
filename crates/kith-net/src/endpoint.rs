//! Where a gRPC channel leads, with Kith's settings.

use crate::frames::CONNECT_TIMEOUT;
use std::time::Duration;
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

/// A peer that does not answer an HTTP/2 ping this long after one was due is frozen: its connection is given up.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(5));
/// A stream window that a reply of a few megabytes does not wait on.
const STREAM_WINDOW_BYTES: u32 = 8 << 20;
/// The most that HTTP/2 has: what a connection holds is bounded by its streams' windows. A smaller one is filled by a few streams that nobody
/// reads, and then every other reply on the connection waits for them.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// The connection settings that every gRPC client of Kith uses. [`crate::security::Dialer`] connects by them, in the clear or over TLS.
///
/// # Errors
/// If `addr` is not `host:port`.
pub fn endpoint(addr: &str) -> Result<Endpoint, Status> {
    let endpoint = Channel::from_shared(format!("http://{addr}"))
        .map_err(|error| Status::invalid_argument(format!("bad address {addr:?}: {error}")))?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE.0)
        .keep_alive_timeout(KEEP_ALIVE.1)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES))
}
