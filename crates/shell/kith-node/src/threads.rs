//! The threads on which a node evaluates what takes longer than handing it over.

use kith_net::{WorkKind, slot};
use tokio::task::{JoinError, spawn_blocking};

/// Evaluates on another thread, once few enough other evaluations run. Without this bound, hundreds of threads would compete
/// with those that serve connections, and each would keep memory for what it computes. An evaluation that has begun keeps its
/// slot to its end, even if nobody waits for it any more.
///
/// # Errors
/// If the evaluation panics.
pub(crate) async fn evaluate_aside<T: Send + 'static>(
    evaluation: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let slot = slot(WorkKind::Evaluations).await;
    spawn_blocking(move || {
        let _slot = slot;
        evaluation()
    })
    .await
}
