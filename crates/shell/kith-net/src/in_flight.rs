//! A set of futures for a task that must be woken only when one of these futures is ready.

use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
    stream::FuturesUnordered,
};
use std::{
    fmt,
    task::{Context, Poll, Waker},
};

/// A set of futures in flight. Each future is polled only after it was woken. Dropping the set drops its futures.
///
/// It is a `FuturesUnordered` with one difference: a `FuturesUnordered` has its task polled again whenever it has polled
/// all of its futures, so that other tasks get their turn. With one future or a few this happens at every poll and is of no
/// use. On a runtime with several threads, another thread is also woken each time to help: two thirds of the thread
/// wake-ups of a router's lone query came from this.
pub struct InFlight<T> {
    /// One of these futures never ends and has been polled already, so the woken futures are never all of the futures.
    futures: FuturesUnordered<BoxFuture<'static, T>>,
}

impl<T: Send + 'static> InFlight<T> {
    /// Adds a future. It is polled when the next output is asked for.
    pub fn push(&mut self, future: impl Future<Output = T> + Send + 'static) {
        self.futures.push(future.boxed());
    }

    /// Returns the output of the next future that is ready. Pending while no future is ready, and while there are none.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        match self.futures.poll_next_unpin(cx) {
            Poll::Ready(Some(output)) => Poll::Ready(output),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// Waits for the output of the next future. Never returns while there are none.
    pub async fn next(&mut self) -> T {
        future::poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl<T: Send + 'static> Default for InFlight<T> {
    fn default() -> Self {
        let futures = FuturesUnordered::new();
        futures.push(future::pending().boxed());
        let mut this = Self { futures };
        let _ = this.poll_next(&mut Context::from_waker(Waker::noop()));
        this
    }
}

impl<T> fmt::Debug for InFlight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("count", &(self.futures.len() - 1)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::Wake,
    };
    use tokio::sync::oneshot;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn their_task_is_woken_for_each_that_ends_and_for_nothing_else() {
        for count in [1, 2, 3, 40] {
            let woken = Arc::new(Woken::default());
            let waker = Arc::clone(&woken).into();
            let mut cx = Context::from_waker(&waker);
            let mut in_flight = InFlight::default();
            let mut senders: Vec<oneshot::Sender<usize>> = Vec::new();
            for _ in 0..count {
                let (sender, receiver) = oneshot::channel();
                senders.push(sender);
                in_flight.push(async move { receiver.await.expect("it is sent") });
                assert!(in_flight.poll_next(&mut cx).is_pending());
            }
            assert_eq!(woken.0.load(Ordering::Relaxed), 0, "{count} under way, and nothing happened");
            for (index, sender) in senders.into_iter().enumerate() {
                sender.send(index).expect("somebody waits");
                assert_eq!(woken.0.load(Ordering::Relaxed), index + 1);
                assert_eq!(in_flight.poll_next(&mut cx), Poll::Ready(index));
                assert!(in_flight.poll_next(&mut cx).is_pending());
            }
        }
    }

    #[test]
    fn one_that_wakes_itself_is_polled_again() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut in_flight = InFlight::default();
            for turns in [0, 1, 5] {
                in_flight.push(async move {
                    for _ in 0..turns {
                        tokio::task::yield_now().await;
                    }
                    turns
                });
            }
            let ended = [in_flight.next().await, in_flight.next().await, in_flight.next().await];
            assert_eq!(ended, [0, 1, 5]);
        });
    }
}
