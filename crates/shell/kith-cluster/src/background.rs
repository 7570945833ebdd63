//! Background work that must not slow reads: fetches, copies, verification, export.
//!
//! It runs on threads of its own with a low priority, so that a request that arrives gets the processor at once. Bytes that
//! the work requests from other processes are received on such a thread too. Throttles limit its use of disk and network.

use std::{io, sync::LazyLock, thread, time::Duration};
use tokio::{
    runtime::{Builder, Runtime},
    sync::{oneshot, watch},
};

/// The niceness with which a thread gets about a tenth of the processor while reads want all of it, which is enough not
/// to hold a lock for long.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// The number of pieces of work under way in this process.
static UNDER_WAY: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::channel(0).0);

/// Counts one piece of work until it is dropped.
struct RunningWork;

impl RunningWork {
    fn new() -> Self {
        UNDER_WAY.send_modify(|under_way| *under_way += 1);
        Self
    }
}

impl Drop for RunningWork {
    fn drop(&mut self) {
        UNDER_WAY.send_modify(|under_way| *under_way -= 1);
    }
}

/// Waits until no work is under way, for at most `timeout`. Returns whether none is.
pub async fn ended(timeout: Duration) -> bool {
    let mut under_way = UNDER_WAY.subscribe();
    tokio::time::timeout(timeout, under_way.wait_for(|under_way| *under_way == 0)).await.is_ok()
}

/// The work ended without a result, because it panicked or the system has no thread for it.
#[derive(Debug, thiserror::Error)]
#[error("work in the background ended unexpectedly")]
pub struct LostWork;

/// Runs work in the background and waits for its result.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LostWork> {
    let (sender, receiver) = oneshot::channel();
    spawn(move || {
        // The waiting task may have been dropped.
        let _ = sender.send(work());
    });
    receiver.await.map_err(|_| LostWork)
}

/// Begins work and does not wait for it. It runs inside a runtime whose threads have a low priority too. If the work cannot
/// begin, everything that it owns is dropped, so that receivers of its channels notice.
pub fn spawn(work: impl FnOnce() + Send + 'static) {
    static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(runtime);
    let begun = RUNTIME.as_ref().map_err(ToString::to_string).and_then(|runtime| {
        let named = thread::Builder::new().name("kith-background".to_owned());
        let counted = RunningWork::new();
        let begun = named.spawn(move || {
            let _counted = counted;
            let _context = runtime.enter();
            give_way();
            work();
        });
        begun.map_err(|error| error.to_string())
    });
    if let Err(error) = begun {
        tracing::error!(error, "cannot start a thread for work in the background");
    }
}

/// The runtime of all background work of the process. In the runtime that answers reads, receiving bytes from peers would delay
/// reads.
fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("kith-background-io")
        .on_thread_start(give_way)
        .enable_all()
        .build()
}

/// Lowers the priority of this thread, and of those that it starts. Does nothing on systems other than Linux.
pub fn give_way() {
    // On Linux each thread has its own niceness; elsewhere it would apply to the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "cannot lower the priority of work in the background");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Handle;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn work_and_what_it_waits_for_have_a_low_priority() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        let of_its_task =
            move || Handle::current().block_on(tokio::task::spawn(async move { niceness() })).unwrap();
        let all = move || (niceness(), thread::spawn(niceness).join().unwrap(), of_its_task());
        let expected = NICENESS.max(before);
        assert_eq!(run(all).await.unwrap(), (expected, expected, expected));
        assert_eq!(niceness(), before, "others keep theirs");
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error() {
        assert!(run(|| -> u8 { panic!("on purpose") }).await.is_err());
    }

    #[tokio::test]
    async fn the_end_of_all_work_can_be_waited_for() {
        let (release, held) = std::sync::mpsc::channel::<()>();
        spawn(move || assert!(held.recv().is_err(), "nothing is sent"));
        assert!(!ended(Duration::ZERO).await, "the work waits for its release");
        drop(release);
        assert!(ended(Duration::from_secs(60)).await);
    }
}
