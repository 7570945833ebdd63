//! The HTTP port of every process: `/`, `/healthz`, `/readyz` and `/metrics`.

use crate::server::{
    BoundListener,
    connections::{OpenConnection, WatchedStream, farewell, requests},
    front_page::FrontPage,
    hosts::{self, Site},
    listen, metric_help, process_metrics,
};
use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::IntoResponse,
    routing::get,
};
use bytes::Bytes;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use rustix::net::sockopt;
use std::{
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpStream, sync::Mutex, time::Instant};
use tokio_util::sync::CancellationToken;

/// Whether a process answers queries, and whether its metadata is stale, so that other processes should be asked instead.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    ready: Arc<AtomicBool>,
    stale: Arc<AtomicBool>,
}

impl Readiness {
    /// Sets whether queries are answered.
    pub fn set(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// Whether queries are answered.
    pub fn get(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Sets whether another process has newer metadata.
    pub fn set_stale(&self, stale: bool) {
        self.stale.store(stale, Ordering::Release);
    }

    fn status(&self) -> (StatusCode, &'static str) {
        match (self.get(), self.stale.load(Ordering::Acquire)) {
            (true, false) => (StatusCode::OK, "ready\n"),
            (true, true) => (StatusCode::SERVICE_UNAVAILABLE, "metadata is stale\n"),
            (false, _) => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
        }
    }
}

/// How often recorded values of histograms are moved into their buckets; until then each value takes memory.
const UPKEEP: Duration = Duration::from_secs(5);

/// The metrics recorder of the process, which all roles in it share. The first call installs it.
fn recorder() -> &'static PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(|| {
        process_metrics::started();
        let recorder = metric_help::with_buckets(PrometheusBuilder::new()).build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another metrics recorder is installed: /metrics stays empty");
        }
        metric_help::describe();
        metrics::gauge!("kith_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        handle
    })
}

/// Installs the metrics recorder. Metrics that were recorded before are lost.
pub fn count() {
    recorder();
}

/// A connection is closed if the header of a request does not arrive within this time after it was opened or the last
/// answer was sent.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest header that is accepted.
const HEADER_BYTES_MAX: usize = 16 << 10;
/// The size of the send buffer of a connection. The system would let it grow to megabytes, and a peer that does not read could
/// have it filled before it makes way: a thousand of them would take seconds of a processor.
const SEND_BYTES: usize = 64 << 10;
/// How long an answer under way may take to end when the process stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves the HTTP port on `bound` until `stop`.
pub fn serve(bound: BoundListener, front: FrontPage, readiness: Readiness, stop: CancellationToken) {
    let handle = recorder();
    tokio::spawn(keep_up(handle, stop.clone()));
    let metrics = Arc::new(Shared::default());
    let app = Router::new()
        .route("/", get(move |headers: HeaderMap| async move { front.answer(&headers) }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(move || async move { readiness.status() }))
        .route(
            "/metrics",
            get(move || async move {
                let render = || {
                    handle.run_upkeep();
                    Bytes::from(handle.render() + &process_metrics::render())
                };
                ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], metrics.get(render).await)
            }),
        );
    tokio::spawn(async move {
        let room = bound.connections;
        let welcome = |(stream, peer), connected| {
            tokio::spawn(answer(stream, peer, connected, app.clone(), stop.clone()));
        };
        let refuse = |(stream, _)| {
            let farewells = farewell::in_http1(room.open_max());
            room.refuse(async move { farewell::at_once(stream, &farewells).await });
        };
        listen::each(bound.listener, &room, &stop, welcome, refuse).await;
    });
}

/// A value that is computed for each request. Requests at the same time share one computation, and computations take at most a
/// quarter of a thread's time.
#[derive(Debug, Default)]
struct Shared<T>(Mutex<Option<Made<T>>>);

#[derive(Debug)]
struct Made<T> {
    what: T,
    began: Instant,
    /// The earliest time at which it may be made again.
    again: Instant,
}

impl<T: Clone> Shared<T> {
    /// The value that was made after this call began.
    async fn get(&self, make: impl FnOnce() -> T) -> T {
        let asked = Instant::now();
        let mut last = self.0.lock().await;
        match &*last {
            Some(made) if asked <= made.began => return made.what.clone(),
            Some(made) => tokio::time::sleep_until(made.again).await,
            None => {}
        }
        let began = Instant::now();
        let what = make();
        *last = Some(Made { what: what.clone(), began, again: Instant::now() + 3 * began.elapsed() });
        what
    }
}

/// Serves one connection. This port authenticates nobody, so every peer makes way for later connections, whatever it has sent.
async fn answer(
    stream: TcpStream,
    peer: SocketAddr,
    connected: Arc<OpenConnection>,
    app: Router,
    stop: CancellationToken,
) {
    connected.speaks("http");
    if let Err(error) = sockopt::set_socket_send_buffer_size(&stream, SEND_BYTES) {
        tracing::debug!(%error, "cannot bound the send buffer of an HTTP connection");
    }
    let own = stream.local_addr().ok().map(|addr| addr.ip());
    connected.is_at(Site { own, is_verified: false });
    let of = Arc::clone(&connected);
    let counted = middleware::from_fn(move |request: Request, next: Next| {
        let of = Arc::clone(&of);
        async move {
            of.is_known_now();
            match hosts::admit(&of, &request, Some(peer)) {
                Ok(()) => requests::follow(of, request, next).await,
                Err(foreign) => (StatusCode::FORBIDDEN, format!("{foreign}\n")).into_response(),
            }
        }
    });
    let mut server = auto::Builder::new(TokioExecutor::new()).http1_only();
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADER_BYTES_MAX);
    let stream = TokioIo::new(WatchedStream::new(stream, connected));
    let served = server.serve_connection(stream, TowerToHyperService::new(app.layer(counted)));
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            tokio::time::timeout(STOP_TIMEOUT, served).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection ended");
    }
}

/// Runs the upkeep of histograms regularly, because nobody may ever ask for `/metrics`.
async fn keep_up(handle: &'static PrometheusHandle, stop: CancellationToken) {
    let mut turns = tokio::time::interval(UPKEEP);
    while stop.run_until_cancelled(turns.tick()).await.is_some() {
        handle.run_upkeep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::connections::testing;
    use std::{os::fd::AsFd, sync::atomic::AtomicU32, thread};
    use tokio::{io::AsyncWriteExt, net::TcpListener};

    #[tokio::test]
    async fn the_system_keeps_little_that_a_peer_has_not_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("it listens");
        let mut client = TcpStream::connect(addr).await.expect("it listens");
        let asked = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        client.write_all(asked).await.expect("it is open");
        let (stream, peer) = listener.accept().await.expect("a connection");
        let same = stream.as_fd().try_clone_to_owned().expect("a descriptor");
        let app = Router::new().route("/healthz", get(|| async { "ok\n" }));
        answer(stream, peer, testing::known(), app, CancellationToken::new()).await;
        // Linux sets twice the size, because it counts its own bookkeeping too.
        assert_eq!(sockopt::socket_send_buffer_size(&same), Ok(2 * SEND_BYTES));
    }

    #[tokio::test]
    async fn what_many_ask_for_is_made_seldom_and_always_after_they_asked() {
        const WORK: Duration = Duration::from_millis(20);
        let (shared, made) = (Shared::default(), AtomicU32::new(0));
        let make = || {
            let began = Instant::now();
            thread::sleep(WORK);
            made.fetch_add(1, Ordering::Relaxed);
            Some(began)
        };
        let began = Instant::now();
        let ask = async || {
            let asked = Instant::now();
            assert!(Some(asked) <= shared.get(make).await);
        };
        futures::future::join_all((0..500).map(|_| ask())).await;
        ask().await;
        assert_eq!(made.load(Ordering::Relaxed), 3);
        assert!(3 * WORK + 2 * 3 * WORK <= began.elapsed(), "{:?}", began.elapsed());
    }
}
