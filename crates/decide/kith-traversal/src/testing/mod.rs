//! Graphs for tests.

mod adjacency;
mod memory;
mod unlabelled;

use futures::FutureExt;

pub use memory::MemoryGraph;
pub use unlabelled::UnlabelledGraph;

/// The result of an evaluation over a graph in memory, which waits for nothing but gives way to others again and again.
pub fn finished<T>(evaluation: impl Future<Output = T>) -> T {
    let mut evaluation = std::pin::pin!(evaluation);
    loop {
        if let Some(result) = evaluation.as_mut().now_or_never() {
            return result;
        }
    }
}
