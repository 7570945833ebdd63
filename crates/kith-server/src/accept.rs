//! One port for two protocols: a connection's first byte says which it speaks.

use crate::framed::{self, FrameService};
use kith_wire::frame::Preface;
use std::{io, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

/// A peer that says nothing for so long is hung up on.
const FIRST_BYTE_PATIENCE: Duration = Duration::from_secs(10);
/// Pause after a failure to accept, as when the process has no file descriptors left: those that end give theirs back.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// gRPC connections that may wait for tonic to take them over.
const HANDED_OVER_MAX: usize = 64;
/// How HTTP/2 begins: `PRI * HTTP/2.0`. tonic reads the rest.
const HTTP2_FIRST: u8 = b'P';

/// Accepts on `listener` until `stop`. Framed connections are served here by `frames`; those that speak HTTP/2 come out.
pub fn spawn(
    listener: TcpListener,
    frames: Option<Arc<dyn FrameService>>,
    stop: CancellationToken,
) -> mpsc::Receiver<TcpStream> {
    let (http2, handed_over) = mpsc::channel(HANDED_OVER_MAX);
    tokio::spawn(async move {
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                // A task of its own: a peer that is slow to begin holds up nobody.
                Ok((stream, _)) => {
                    let welcome = welcome(stream, frames.clone(), http2.clone(), stop.clone());
                    tokio::spawn(async move {
                        if let Err(error) = welcome.await {
                            tracing::debug!(%error, "a connection ended");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    });
    handed_over
}

async fn welcome(
    stream: TcpStream,
    frames: Option<Arc<dyn FrameService>>,
    http2: mpsc::Sender<TcpStream>,
    stop: CancellationToken,
) -> io::Result<()> {
    // Small replies must not wait for an acknowledgement of the one before.
    stream.set_nodelay(true)?;
    let mut first = [0];
    let peeked = tokio::time::timeout(FIRST_BYTE_PATIENCE, stream.peek(&mut first));
    let peeked = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        peeked = peeked => peeked.map_err(|_| io::ErrorKind::TimedOut)??,
    };
    match frames {
        _ if peeked == 0 => Ok(()),
        Some(frames) if Preface::may_begin(&first) => {
            note("framed");
            framed::serve(stream, frames, stop).await
        }
        _ if first[0] == HTTP2_FIRST => {
            note("grpc");
            // Nobody takes it if the server has stopped meanwhile: it is closed then.
            let _ = http2.send(stream).await;
            Ok(())
        }
        _ => {
            note("other");
            Ok(())
        }
    }
}

fn note(protocol: &'static str) {
    metrics::counter!("kith_server_connections_total", "protocol" => protocol).increment(1);
}
