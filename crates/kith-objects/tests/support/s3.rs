//! A real S3 server, s3s-fs over HTTP on loopback, that can be killed, started again where it was, and made to break
//! connections in the middle of an answer.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use parking_lot::{Mutex, MutexGuard};
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// The key that the server knows.
pub const ACCESS_KEY: &str = "kith-tests";
pub const SECRET_KEY: &str = "kith-tests-secret";
/// The bucket that is there.
pub const BUCKET: &str = "bucket";

/// A running server; killed when dropped. Objects are files below `<root>/bucket`.
pub struct S3 {
    root: tempfile::TempDir,
    addr: SocketAddr,
    runtime: Option<Runtime>,
    /// Of the one that runs: whether it is killed.
    is_dead: Arc<AtomicBool>,
    sent: Arc<Sent>,
}

/// What all connections together have sent.
#[derive(Default)]
struct Sent {
    bytes: AtomicU64,
    /// What they were sent.
    received: AtomicU64,
    /// Bytes until the next cut; negative: none is due.
    cut_after: AtomicI64,
    held: Mutex<Held>,
}

/// Answers that do not go on until they may.
#[derive(Default)]
struct Held {
    /// Bytes that are still sent; `None`: nothing is held.
    left: Option<u64>,
    waiting: Vec<Waker>,
}

impl Sent {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }
}

impl S3 {
    /// Starts an empty server on a free port.
    pub fn start() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(root.path().join(BUCKET)).expect("a bucket");
        let sent = Arc::new(Sent {
            bytes: AtomicU64::new(0),
            received: AtomicU64::new(0),
            cut_after: AtomicI64::new(-1),
            held: Mutex::default(),
        });
        let addr = SocketAddr::from(([127, 0, 0, 1], 0));
        let is_dead = Arc::default();
        let mut server = Self { root, addr, runtime: None, is_dead, sent };
        server.restart();
        server
    }

    /// Kills it: connections break where they are.
    pub fn kill(&mut self) {
        // Not a word from now on: a server that can no longer read its files says that they are not there.
        self.is_dead.store(true, Ordering::SeqCst);
        if let Some(runtime) = self.runtime.take() {
            // On a thread of its own: callers may be inside another runtime, which refuses to wait.
            let ended = std::thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(10))).join();
            ended.expect("the server ends");
        }
    }

    /// Starts it where it was before.
    pub fn restart(&mut self) {
        self.kill();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind(self.addr)).expect("the port is free");
        self.addr = listener.local_addr().expect("an address");
        let mut service = S3ServiceBuilder::new(FileSystem::new(self.root.path()).expect("a root"));
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        self.is_dead = Arc::default();
        let connections = (Arc::clone(&self.sent), Arc::clone(&self.is_dead));
        runtime.spawn(accept(listener, service.build(), connections));
        self.runtime = Some(runtime);
    }

    /// Breaks one connection when so many more bytes have been sent.
    pub fn cut_after(&self, bytes: i64) {
        self.sent.cut_after.store(bytes, Ordering::Relaxed);
    }

    /// Whether the cut that was asked for has come.
    pub fn has_cut(&self) -> bool {
        self.sent.cut_after.load(Ordering::Relaxed) < 0
    }

    /// Sends so many more bytes, then nothing until [`S3::go_on`]: a store that is slow, and does not break.
    pub fn hold_after(&self, bytes: u64) {
        self.sent.held().left = Some(bytes);
    }

    /// Whether an answer is held.
    pub fn holds(&self) -> bool {
        !self.sent.held().waiting.is_empty()
    }

    /// Sends what is held.
    pub fn go_on(&self) {
        let held = std::mem::take(&mut *self.sent.held());
        held.waiting.into_iter().for_each(Waker::wake);
    }

    /// Bytes sent so far.
    pub fn bytes_sent(&self) -> u64 {
        self.sent.bytes.load(Ordering::Relaxed)
    }

    /// Bytes received so far.
    pub fn bytes_received(&self) -> u64 {
        self.sent.received.load(Ordering::Relaxed)
    }

    /// `http://…`
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The file behind an object.
    pub fn file(&self, object: &str) -> PathBuf {
        self.root.path().join(BUCKET).join(object)
    }

    /// The settings that let a client in.
    pub fn settings(&self) -> Vec<(String, String)> {
        let settings = [
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.to_owned()),
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ];
        settings.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn accept(listener: TcpListener, service: S3Service, (sent, is_dead): (Arc<Sent>, Arc<AtomicBool>)) {
    while let Ok((stream, _)) = listener.accept().await {
        let stream = Cut { stream, sent: Arc::clone(&sent), is_dead: Arc::clone(&is_dead) };
        let service = service.clone();
        tokio::spawn(async move {
            let http = Builder::new(TokioExecutor::new());
            // A client that goes away is its own business.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// A connection that may break.
struct Cut {
    stream: TcpStream,
    sent: Arc<Sent>,
    is_dead: Arc<AtomicBool>,
}

impl AsyncRead for Cut {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        let count = into.filled().len() - before;
        self.sent.received.fetch_add(count as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Cut {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_dead.load(Ordering::SeqCst) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let left = self.sent.cut_after.load(Ordering::Relaxed);
        if left == 0 {
            self.sent.cut_after.store(-1, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let most = {
            let mut held = self.sent.held();
            match held.left {
                Some(0) => {
                    held.waiting.push(cx.waker().clone());
                    return Poll::Pending;
                }
                Some(left) => usize::try_from(left).unwrap_or(usize::MAX).min(most),
                None => most,
            }
        };
        let count = ready!(Pin::new(&mut self.stream).poll_write(cx, &bytes[..most]))?;
        if 0 < left {
            self.sent.cut_after.fetch_sub(count as i64, Ordering::Relaxed);
        }
        if let Some(left) = &mut self.sent.held().left {
            *left = left.saturating_sub(count as u64);
        }
        self.sent.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Cuts a file short.
pub fn truncate(path: &Path, bytes: u64) {
    let file = std::fs::File::options().write(true).open(path).expect("the file is there");
    file.set_len(bytes).expect("it can be cut");
}
