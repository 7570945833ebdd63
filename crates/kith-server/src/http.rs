//! `/healthz`, `/readyz` and `/metrics` of every process.

use axum::{Router, http::StatusCode, routing::get};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Whether a process answers queries: set once it does, cleared when it stops; and whether others are to be asked rather.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    ready: Arc<AtomicBool>,
    behind: Arc<AtomicBool>,
}

impl Readiness {
    /// Says whether queries are answered.
    pub fn set(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// Whether queries are answered.
    pub fn get(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Says whether another process knows newer metadata.
    pub fn set_behind(&self, behind: bool) {
        self.behind.store(behind, Ordering::Release);
    }

    fn told(&self) -> (StatusCode, &'static str) {
        match (self.get(), self.behind.load(Ordering::Acquire)) {
            (true, false) => (StatusCode::OK, "ready\n"),
            (true, true) => (StatusCode::SERVICE_UNAVAILABLE, "metadata is stale\n"),
            (false, _) => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
        }
    }
}

/// How often what histograms took in is counted into their buckets: until then each value takes memory.
const UPKEEP: Duration = Duration::from_secs(5);

/// The process's metrics; installed when first asked for, one for all roles in it.
fn recorder() -> &'static PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(|| {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another metrics recorder is installed: /metrics stays empty");
        }
        handle
    })
}

/// Counts from now on: what was counted before is lost.
pub fn count() {
    recorder();
}

/// Serves on `listener` until `stop`.
pub fn serve(listener: TcpListener, readiness: Readiness, stop: CancellationToken) {
    let handle = recorder();
    tokio::spawn(keep_up(handle, stop.clone()));
    let app = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(move || async move { readiness.told() }))
        .route(
            "/metrics",
            get(move || async move {
                handle.run_upkeep();
                handle.render()
            }),
        );
    tokio::spawn(async move {
        let served = axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned()).await;
        if let Err(error) = served {
            tracing::error!(%error, "HTTP service ended");
        }
    });
}

/// Nobody may ever ask for `/metrics`.
async fn keep_up(handle: &'static PrometheusHandle, stop: CancellationToken) {
    let mut turns = tokio::time::interval(UPKEEP);
    while stop.run_until_cancelled(turns.tick()).await.is_some() {
        handle.run_upkeep();
    }
}
