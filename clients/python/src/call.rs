//! A request, and the two ways to wait for its answer: blocking and with asyncio.

use crate::error::raised;
use futures::{FutureExt, future::BoxFuture};
use kith_client::QueryError;
use parking_lot::{Condvar, Mutex};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use pyo3_async_runtimes::tokio::{future_into_py, get_runtime};
use std::{
    future, process,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, ThreadId},
    time::Duration,
};
use tokio::{runtime::Builder, task::AbortHandle, time};

/// The number of threads that send requests and process answers. It is small because a client is only a part of its process.
const WORKERS: usize = 2;
/// The maximum time until a blocking wait notices Ctrl-C.
const SIGNAL_TICK: Duration = Duration::from_millis(50);

/// The maximum time that the end of the interpreter waits for threads that pass answers to Python, which takes microseconds.
const LEAVING_MAX: Duration = Duration::from_secs(1);

/// Whether any request was sent through an event loop.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// The thread that ends the interpreter, once it has begun to.
static LEAVING: OnceLock<ThreadId> = OnceLock::new();

/// Makes the Python objects of an answer.
pub type Reply = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// The result of a request.
pub type CallResult = Result<Reply, QueryError>;

/// Returns the result of a successful request. `make` makes its Python objects.
pub fn reply(make: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static) -> CallResult {
    let make: Reply = Box::new(make);
    Ok(make)
}

/// A request, which `wait` or `begin` sends. It can be sent only once.
#[pyclass(frozen, module = "kith._kith")]
pub struct Call {
    /// The work, until the request is sent.
    work: Mutex<Option<BoxFuture<'static, CallResult>>>,
}

/// Configures the runtime. Its threads start with the first request.
pub fn init() {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(WORKERS).thread_name("kith").enable_all();
    pyo3_async_runtimes::tokio::init(builder);
}

impl Call {
    /// Returns a request that has not been sent yet.
    pub fn new(work: impl Future<Output = CallResult> + Send + 'static) -> Self {
        Self { work: Mutex::new(Some(work.boxed())) }
    }

    fn take(&self) -> PyResult<BoxFuture<'static, CallResult>> {
        same_process()?;
        let work = self.work.lock().take();
        work.ok_or_else(|| PyRuntimeError::new_err("this request was already sent; make a new one"))
    }
}

#[pymethods]
impl Call {
    /// Sends the request and waits for the answer. Other threads run meanwhile; Ctrl-C ends the wait.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let work = self.take()?;
        let reply = py.detach(|| get_runtime().block_on(interruptible(work)))?;
        reply(py)
    }

    /// Sends the request and returns an awaitable for asyncio. Cancelling it cancels the request.
    fn begin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let work = self.take()?;
        BEGUN.store(true, Ordering::Release);
        // Requests that another exit handler sends during the end of the interpreter are still answered.
        let is_late = LEAVING.get().is_some();
        future_into_py(py, async move {
            let ended = work.await;
            if LEAVING.get().is_some() && !is_late {
                // Nobody waits for this any more, and there may be no interpreter to come back to.
                return future::pending().await;
            }
            Ok(Answer(ended))
        })
    }
}

/// The result of a request. It becomes a Python object on a thread that may wait for the interpreter, which the threads of
/// the runtime must not do.
struct Answer(CallResult);

impl<'py> IntoPyObject<'py> for Answer {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let reply = self.0.map_err(|error| raised(&error))?;
        Ok(reply(py)?.into_bound(py))
    }
}

/// Announces that the interpreter is about to end. It must be called on the thread that ends the interpreter. Waits for
/// answers that are being passed to an event loop, because a thread inside the interpreter at its end would crash the
/// process.
#[pyo3::pyfunction]
pub fn leave(py: Python<'_>) {
    let _ = LEAVING.set(thread::current().id());
    if BEGUN.load(Ordering::Acquire) && same_process().is_ok() {
        py.detach(meet_workers);
    }
}

/// Waits until all worker threads have met at one moment, so that none is inside the interpreter, or for [`LEAVING_MAX`].
fn meet_workers() {
    let met = Arc::new((Mutex::new(0), Condvar::new()));
    let meet = |met: &(Mutex<usize>, Condvar)| {
        let (count, changed) = met;
        let mut count = count.lock();
        *count += 1;
        changed.notify_all();
        // The result does not matter, because the process ends in either case.
        changed.wait_while_for(&mut count, |count| *count <= WORKERS, LEAVING_MAX);
    };
    for _ in 0..WORKERS {
        let met = Arc::clone(&met);
        get_runtime().spawn(async move { meet(&met) });
    }
    meet(&met);
}

async fn interruptible(mut work: BoxFuture<'static, CallResult>) -> PyResult<Reply> {
    loop {
        let ended = time::timeout(SIGNAL_TICK, &mut work).await;
        if LEAVING.get().is_some_and(|by| *by != thread::current().id()) {
            // Nobody waits for this thread any more, and there may be no interpreter to come back to.
            return future::pending().await;
        }
        match ended {
            Ok(ended) => return ended.map_err(|error| raised(&error)),
            Err(_) => Python::attach(|py| py.check_signals())?,
        }
    }
}

/// Starts `work` on the threads of the runtime.
///
/// # Errors
/// `RuntimeError` in a child process that was forked after the first use.
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) -> PyResult<AbortHandle> {
    same_process()?;
    Ok(get_runtime().spawn(work).abort_handle())
}

/// Checks that this process started the threads of the runtime, because a forked child process does not have them.
///
/// # Errors
/// `RuntimeError` in a child process that was forked after the first use.
fn same_process() -> PyResult<()> {
    static OWNER: OnceLock<u32> = OnceLock::new();
    if *OWNER.get_or_init(process::id) == process::id() {
        return Ok(());
    }
    let message = "kith was used before this process forked, and its threads do not exist in the child process: \
                   connect only in the child, or start it with the spawn method";
    Err(PyRuntimeError::new_err(message))
}
