//! Connections of a gRPC channel over TLS. They record why they ended.

use super::{TlsFailure, secured::TlsDialer};
use futures::{FutureExt, future::BoxFuture};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;
use tonic::codegen::{Service, http::Uri};

/// Opens the TLS connections of one channel.
#[derive(Clone)]
pub(super) struct Connector {
    secured: Arc<TlsDialer>,
    addr: String,
    name: ServerName<'static>,
}

impl Connector {
    /// Returns a connector to `addr`. The certificate of the peer must be valid for `name`.
    pub fn new(secured: Arc<TlsDialer>, addr: &str, name: ServerName<'static>) -> Self {
        Self { secured, addr: addr.to_owned(), name }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<RecordingStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<RecordingStream>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { secured, addr, name } = self.clone();
        async move {
            let stream = secured.for_grpc(&addr, name).await?;
            Ok(TokioIo::new(RecordingStream { stream, secured, addr, is_open: false, broken: None }))
        }
        .boxed()
    }
}

/// A connection that records why it ended. In TLS 1.3 a peer that rejects a certificate says so only after the handshake,
/// and HTTP/2 reports that as a broken connection without the reason.
pub(super) struct RecordingStream {
    stream: TlsStream<TcpStream>,
    secured: Arc<TlsDialer>,
    addr: String,
    /// Whether a byte has arrived, which proves that both sides accepted the handshake.
    is_open: bool,
    /// The error of a failed write, kept until the peer's reason has been read.
    broken: Option<io::Error>,
}

impl AsyncRead for RecordingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        match &read {
            Err(error) => {
                if let Some(failure) = TlsFailure::of(error) {
                    self.secured.note(&self.addr, failure);
                }
            }
            Ok(()) if !self.is_open && before < buffer.filled().len() => {
                self.is_open = true;
                self.secured.forget(&self.addr);
            }
            Ok(()) => {}
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for RecordingStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = match self.broken.take() {
            Some(error) => Err(error),
            None => ready!(Pin::new(&mut self.stream).poll_write(cx, bytes)),
        };
        self.hear_out(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = match self.broken.take() {
            Some(error) => Err(error),
            None => ready!(Pin::new(&mut self.stream).poll_flush(cx)),
        };
        self.hear_out(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl RecordingStream {
    /// Reads the peer's reason before a failed write is reported. A peer that rejects this side sends an alert and closes
    /// the connection. A write may fail on the closed connection before the alert was read, and HTTP/2 does not read after
    /// a failed write. Reading does not block for long, because the connection is closed already.
    fn hear_out<T>(&mut self, cx: &mut Context<'_>, done: io::Result<T>) -> Poll<io::Result<T>> {
        let error = match done {
            Err(error) if !self.is_open && is_closed(&error) => error,
            done => return Poll::Ready(done),
        };
        let mut byte = [0];
        match Pin::new(&mut self.stream).poll_read(cx, &mut ReadBuf::new(&mut byte)) {
            Poll::Pending => {
                self.broken = Some(error);
                return Poll::Pending;
            }
            Poll::Ready(Err(why)) => {
                if let Some(failure) = TlsFailure::of(&why) {
                    self.secured.note(&self.addr, failure);
                }
            }
            Poll::Ready(Ok(())) => {}
        }
        Poll::Ready(Err(error))
    }
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
}
