//! Work that takes long without waiting for anything, away from the threads that serve connections.

use std::{panic, sync::OnceLock, thread::available_parallelism};
use tokio::sync::Semaphore;

/// Handing work to another thread takes longer than to decode or encode this many bytes.
pub const INLINE_BYTES_MAX: usize = 16 << 10;

/// Half of the processors at most are busy with such work, so that connections are served whatever it is.
fn places() -> &'static Semaphore {
    static PLACES: OnceLock<Semaphore> = OnceLock::new();
    PLACES.get_or_init(|| Semaphore::new((available_parallelism().map_or(1, usize::from) / 2).max(1)))
}

/// Does work whose cost grows with `bytes`: here if they are few, otherwise on another thread, where it may have to wait for its
/// turn. Work that has begun runs to its end, even if nobody waits for it any more.
pub async fn aside<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes <= INLINE_BYTES_MAX {
        return work();
    }
    // The semaphore is never closed.
    let permit = places().acquire().await;
    let done = tokio::task::spawn_blocking(move || {
        let _place = permit;
        work()
    });
    match done.await {
        Ok(done) => done,
        Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
        // The process ends, so nobody wants the outcome.
        Err(_) => std::future::pending().await,
    }
}

/// Takes all places until the outcome is dropped, so that a test can see what goes on meanwhile.
#[cfg(feature = "testing")]
pub async fn occupied() -> impl Send {
    let all = available_parallelism().map_or(1, usize::from) / 2;
    places().acquire_many(u32::try_from(all.max(1)).unwrap_or(u32::MAX)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_about_many_bytes_is_done_by_another_thread() {
        let thread = || std::thread::current().id();
        assert_eq!(aside(INLINE_BYTES_MAX, thread).await, thread());
        assert_ne!(aside(INLINE_BYTES_MAX + 1, thread).await, thread());
        let panics = tokio::spawn(aside(usize::MAX, || panic!("it fails")));
        assert!(panics.await.expect_err("it panics").is_panic());
        assert_eq!(aside(usize::MAX, || 7).await, 7, "its place is free again");
    }
}
