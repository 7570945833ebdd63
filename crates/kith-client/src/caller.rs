//! Whether anybody still waits for the answer of work that a router carries out to its end.

use tokio_util::sync::CancellationToken;

tokio::task_local! {
    static GONE: CancellationToken;
}

/// Does work that must not be dropped, such as a traversal that writes. The work learns by `gone` that its caller has left, and
/// ends where nothing is half done.
pub async fn carried_out<T>(gone: CancellationToken, work: impl Future<Output = T>) -> T {
    GONE.scope(gone, work).await
}

/// Tells when the caller of this work has left. It never tells if the work is simply dropped then.
pub(crate) fn gone() -> CancellationToken {
    GONE.try_with(CancellationToken::clone).unwrap_or_default()
}
