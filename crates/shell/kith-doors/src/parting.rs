//! The end of a connection whose peer may still send.

use std::{io, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

/// After the last reply, bytes that still arrive are read and discarded, for at most this time and up to this many bytes. If a
/// socket is closed with unread bytes, the system resets the connection, and the peer may lose the last reply.
pub(crate) const LINGER: Duration = Duration::from_secs(1);
pub(crate) const LINGER_BYTES: usize = 8 << 20;
/// The same limit for an unauthenticated peer.
pub(crate) const STRANGER_LINGER_BYTES: usize = 64 << 10;
/// The most bytes that one read takes.
const READ_BYTES: usize = 16 << 10;

/// Sends `message`, which says why `stream` is not served, and closes the stream.
///
/// # Errors
/// Errors of the stream; `TimedOut` if the peer does not read.
pub(crate) async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    message: &[u8],
) -> io::Result<()> {
    timeout(LINGER, stream.write_all(message)).await??;
    part(&mut stream, STRANGER_LINGER_BYTES).await
}

/// Closes a stream whose peer may still send: reads and discards at most `left` bytes, for at most [`LINGER`].
///
/// # Errors
/// Errors of the stream.
pub(crate) async fn part<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    mut left: usize,
) -> io::Result<()> {
    let unread = async {
        stream.shutdown().await?;
        let mut bytes = vec![0; READ_BYTES];
        while 0 < left {
            match stream.read(&mut bytes).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        Ok(())
    };
    timeout(LINGER, unread).await.unwrap_or(Ok(()))
}
