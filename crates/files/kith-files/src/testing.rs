//! For tests: a real S3 server, s3s-fs over HTTP on loopback. Tests can kill it, restart it on the same port, and make it break
//! connections in the middle of an answer.

use hyper::Request;
use hyper::body::Incoming;
use hyper::header::IF_NONE_MATCH;
use hyper::service::{Service, service_fn};
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

/// The access key that the server accepts.
pub const ACCESS_KEY: &str = "kith-tests";
/// The secret of that key.
pub const SECRET_KEY: &str = "kith-tests-secret";
/// The bucket that exists.
pub const BUCKET: &str = "bucket";

/// A running server, which is killed when dropped. Objects are files below `<root>/bucket`.
pub struct S3 {
    root: tempfile::TempDir,
    addr: SocketAddr,
    runtime: Option<Runtime>,
    /// Whether the current runtime was killed.
    is_dead: Arc<AtomicBool>,
    sent: Arc<Sent>,
}

/// The traffic of all connections together.
#[derive(Default)]
struct Sent {
    bytes: AtomicU64,
    /// The bytes received from clients.
    received: AtomicU64,
    /// The number of bytes until a connection is cut; negative if no cut is due.
    cut_after: AtomicI64,
    held: Mutex<Held>,
}

/// The state of answers that are held back.
#[derive(Default)]
struct Held {
    /// The number of bytes that may still be sent; `None` if nothing is held back.
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

    /// Kills the server. Its connections break at once.
    pub fn kill(&mut self) {
        // Send nothing from now on. A server that can no longer read its files would report them as missing.
        self.is_dead.store(true, Ordering::SeqCst);
        if let Some(runtime) = self.runtime.take() {
            // Wait on another thread, because the caller may be inside another runtime, where waiting is refused.
            let ended = std::thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(10))).join();
            ended.expect("the server ends");
        }
    }

    /// Starts the server again, on the same port.
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

    /// Breaks one connection after this many more bytes were sent.
    pub fn cut_after(&self, bytes: i64) {
        self.sent.cut_after.store(bytes, Ordering::Relaxed);
    }

    /// Whether the requested break has happened.
    pub fn has_cut(&self) -> bool {
        self.sent.cut_after.load(Ordering::Relaxed) < 0
    }

    /// Sends this many more bytes, then nothing until [`S3::go_on`], as a slow store would.
    pub fn hold_after(&self, bytes: u64) {
        self.sent.held().left = Some(bytes);
    }

    /// Whether an answer is held back.
    pub fn holds(&self) -> bool {
        !self.sent.held().waiting.is_empty()
    }

    /// Sends the answers that are held back.
    pub fn go_on(&self) {
        let held = std::mem::take(&mut *self.sent.held());
        held.waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns the number of bytes sent so far.
    pub fn bytes_sent(&self) -> u64 {
        self.sent.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes received so far.
    pub fn bytes_received(&self) -> u64 {
        self.sent.received.load(Ordering::Relaxed)
    }

    /// Returns the URL of the server: `http://…`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Returns the file that holds an object.
    pub fn file(&self, object: &str) -> PathBuf {
        self.root.path().join(BUCKET).join(object)
    }

    /// Returns the settings of a client that may use the server.
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
    let creating: Arc<tokio::sync::Mutex<()>> = Arc::default();
    while let Ok((stream, _)) = listener.accept().await {
        let stream = Cut { stream, sent: Arc::clone(&sent), is_dead: Arc::clone(&is_dead) };
        let (service, creating) = (service.clone(), Arc::clone(&creating));
        let answer = service_fn(move |request: Request<Incoming>| {
            let (service, creating) = (service.clone(), Arc::clone(&creating));
            async move {
                // s3s-fs looks for the object first and writes it later. A real store does both at once.
                let is_conditional = request.headers().contains_key(IF_NONE_MATCH);
                let _alone = if is_conditional { Some(creating.lock().await) } else { None };
                Service::call(&service, request).await
            }
        });
        tokio::spawn(async move {
            let http = Builder::new(TokioExecutor::new());
            // It is not an error if a client disconnects.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

/// A connection that can be broken or held back.
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

/// Truncates a file.
pub fn truncate(path: &Path, bytes: u64) {
    let file = std::fs::File::options().write(true).open(path).expect("the file is there");
    file.set_len(bytes).expect("the file can be truncated");
}
