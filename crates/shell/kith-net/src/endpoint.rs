//! The settings of a gRPC client connection.

use std::time::Duration;
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

/// How long opening a connection may take, including the peer's preface, before the peer counts as unreachable.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// The interval between HTTP/2 pings, and how long a peer may take to answer one. A peer that takes longer counts as
/// frozen, and its connection is closed.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(5));
/// The flow-control window of a stream. A reply of a few megabytes fits into it and need not wait for window updates.
const STREAM_WINDOW_BYTES: u32 = 8 << 20;
/// The largest window that HTTP/2 allows. The windows of its streams already bound what a connection buffers. A few streams
/// that nobody reads would fill a smaller connection window, and every other reply on the connection would wait for them.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// Returns the connection settings that every gRPC client of Kith uses. [`crate::security::Dialer`] connects with them, in
/// plain text or over TLS.
///
/// # Errors
/// `InvalidArgument` if `addr` is not `host:port`.
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
