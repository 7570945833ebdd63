//! Work that must not be in the way of reads: fetches, copies, verification, export.
//!
//! It runs on threads of its own with a low priority, so that a request that arrives takes the processor from it at
//! once. How much of the disk and of the network it takes is for throttles to say.

use std::thread;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A tenth of the processor's time where reads want all of it: enough never to hold a lock for long.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Work that ended without a result: it panicked, or the system has no thread for it.
#[derive(Debug, thiserror::Error)]
#[error("work in the background ended unexpectedly")]
pub(crate) struct Ended;

/// Does work and waits for what comes of it.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Ended> {
    let (sender, receiver) = oneshot::channel();
    spawn(move || {
        // Whoever waited may have left.
        let _ = sender.send(work());
    });
    receiver.await.map_err(|_| Ended)
}

/// Begins work and lets it go. If it cannot begin, what it owns is dropped, which whoever listens to it is told by.
///
/// # Panics
/// Outside a runtime, which the work may use.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) {
    let runtime = Handle::current();
    let thread = thread::Builder::new().name("kith-background".to_owned()).spawn(move || {
        let _context = runtime.enter();
        give_way();
        work();
    });
    if let Err(error) = thread {
        tracing::error!(%error, "no thread for work in the background");
    }
}

/// Lowers the priority of this thread, and of those that it starts.
fn give_way() {
    // On Linux a niceness is a thread's own, elsewhere it would be the whole process's.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "work in the background has the priority of reads");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn work_has_a_low_priority_and_others_keep_theirs() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        let (its, of_its_thread) =
            run(move || (niceness(), thread::spawn(niceness).join().unwrap())).await.unwrap();
        let expected = NICENESS.max(before);
        assert_eq!((its, of_its_thread, niceness()), (expected, expected, before));
    }

    #[tokio::test]
    async fn work_may_wait_for_what_runs_on_the_runtime() {
        let told =
            run(|| Handle::current().block_on(async { tokio::task::spawn(async { 7 }).await.unwrap() }));
        assert_eq!(told.await.unwrap(), 7);
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error() {
        assert!(run(|| -> u8 { panic!("on purpose") }).await.is_err());
    }
}
