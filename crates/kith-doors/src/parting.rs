//! The end of a connection whose peer may still send.

use std::{io, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

/// After the last reply, what still comes is thrown away for so long, and no more of it than so many bytes: a socket that is closed
/// with bytes unread takes back what it sent.
pub(crate) const LINGER: Duration = Duration::from_secs(1);
pub(crate) const LINGER_BYTES: usize = 8 << 20;
/// No more of it than this from who is unknown.
pub(crate) const STRANGER_LINGER_BYTES: usize = 64 << 10;
/// What one read takes at the most.
const READ_BYTES: usize = 16 << 10;

/// Says why `stream` is not served, and closes it.
///
/// # Errors
/// The stream's.
pub(crate) async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, told: &[u8]) -> io::Result<()> {
    timeout(LINGER, stream.write_all(told)).await??;
    part(&mut stream, STRANGER_LINGER_BYTES).await
}

/// Closes a stream whose peer may still send: so much of what comes is thrown away, and not for long.
///
/// # Errors
/// The stream's.
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
