//! One request, and the two ways to wait for its answer.

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

/// Threads that send, receive and merge: a client is one of many things that a process does.
const WORKERS: usize = 2;
/// How long Ctrl-C waits at most.
const SIGNAL_TICK: Duration = Duration::from_millis(50);

/// How long the end of the interpreter waits for threads that hand answers over: that takes them microseconds.
const LEAVING_MAX: Duration = Duration::from_secs(1);

/// Whether anything was asked of an event loop.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// Which thread ends the interpreter, once it does.
static LEAVING: OnceLock<ThreadId> = OnceLock::new();

/// Makes the answer's Python objects, once there is an answer.
pub type Reply = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// The result of a request.
pub type Ended = Result<Reply, QueryError>;

/// The result of a request whose Python objects `make` makes.
pub fn reply(make: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static) -> Ended {
    let make: Reply = Box::new(make);
    Ok(make)
}

/// A request that is sent by `wait` or by `begin`, once at most.
#[pyclass(frozen, module = "kith._kith")]
pub struct Call {
    /// Taken when the request is sent.
    work: Mutex<Option<BoxFuture<'static, Ended>>>,
}

/// Sets the number of threads. They start with the first request.
pub fn init() {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(WORKERS).thread_name("kith").enable_all();
    pyo3_async_runtimes::tokio::init(builder);
}

impl Call {
    /// A request that was not sent yet.
    pub fn new(work: impl Future<Output = Ended> + Send + 'static) -> Self {
        Self { work: Mutex::new(Some(work.boxed())) }
    }

    fn take(&self) -> PyResult<BoxFuture<'static, Ended>> {
        same_process()?;
        let work = self.work.lock().take();
        work.ok_or_else(|| PyRuntimeError::new_err("this request was sent already: make a new one"))
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
        // What is asked at the end, by another exit handler, is answered.
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

/// Becomes a Python object where the interpreter may be waited for, which is none of the threads that answer.
struct Answer(Ended);

impl<'py> IntoPyObject<'py> for Answer {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let reply = self.0.map_err(|error| raised(&error))?;
        Ok(reply(py)?.into_bound(py))
    }
}

/// Says that the interpreter is about to end; on the thread that ends it. Answers that are being handed to an event loop are waited
/// for: a thread that is inside the interpreter when it ends takes the process down.
#[pyo3::pyfunction]
pub fn leave(py: Python<'_>) {
    let _ = LEAVING.set(thread::current().id());
    if BEGUN.load(Ordering::Acquire) && same_process().is_ok() {
        py.detach(meet_workers);
    }
}

/// Returns once all workers were idle at one moment, or after [`LEAVING_MAX`].
fn meet_workers() {
    let met = Arc::new((Mutex::new(0), Condvar::new()));
    let meet = |met: &(Mutex<usize>, Condvar)| {
        let (count, changed) = met;
        let mut count = count.lock();
        *count += 1;
        changed.notify_all();
        // Whether all came or time is up, the process ends now.
        changed.wait_while_for(&mut count, |count| *count <= WORKERS, LEAVING_MAX);
    };
    for _ in 0..WORKERS {
        let met = Arc::clone(&met);
        get_runtime().spawn(async move { meet(&met) });
    }
    meet(&met);
}

async fn interruptible(mut work: BoxFuture<'static, Ended>) -> PyResult<Reply> {
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

/// Does `work` on the threads that answer.
///
/// # Errors
/// `RuntimeError` in a process that forked.
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) -> PyResult<AbortHandle> {
    same_process()?;
    Ok(get_runtime().spawn(work).abort_handle())
}

/// The threads that answer belong to the process that started them: a child that forked off has none of them.
fn same_process() -> PyResult<()> {
    static OWNER: OnceLock<u32> = OnceLock::new();
    if *OWNER.get_or_init(process::id) == process::id() {
        return Ok(());
    }
    let message = "kith was used before this process forked, and its threads are not in the child: \
                   connect in the child only, or start it with the spawn method";
    Err(PyRuntimeError::new_err(message))
}
