//! Lets work that a router runs in a task of its own see whether its caller still waits for the answer.

use tokio_util::sync::CancellationToken;

tokio::task_local! {
    static GONE: CancellationToken;
}

/// Runs work that must not be dropped half-way, such as a traversal that writes. `gone` is cancelled when the caller
/// has left. The work then ends as soon as the outcome of the write under way is known.
pub async fn carried_out<T>(gone: CancellationToken, work: impl Future<Output = T>) -> T {
    GONE.scope(gone, work).await
}

/// Returns a token that is cancelled when the caller of this work leaves. It is never cancelled outside of
/// [`carried_out`], where the work is dropped instead.
pub(crate) fn gone() -> CancellationToken {
    GONE.try_with(CancellationToken::clone).unwrap_or_default()
}
