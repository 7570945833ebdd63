//! Building graphs and stores from Python: `kith-build` with rows that Python has, or files. Rows are taken a batch at a time with the
//! interpreter, and checked, sorted and written without it.

mod graph;
mod rows;
mod store;

pub use graph::build_graph;
pub use store::build_store;

use crate::error;
use kith_build::{Dropped, Failure, Objects, Stop};
use kith_types::{PartitionCount, StoreVersion};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyString},
};
use std::{fmt::Display, panic, str::FromStr, sync::mpsc, thread, time::Duration};

/// How long Ctrl-C waits at most before it is noticed.
const SIGNAL_TICK: Duration = Duration::from_millis(50);
/// Less does not hold the buffers of a merge.
const MEMORY_BYTES_MIN: usize = 16 << 20;

/// A build that failed, as an exception.
fn raised(failure: Failure) -> PyErr {
    error::refused_rows(failure.code, &failure.message, &failure.help, failure.wrong)
}

/// Does `work` on a thread of its own with the interpreter released. Ctrl-C asks it to stop, and is raised once it has ended.
fn interruptible<T: Send>(
    py: Python<'_>,
    stop: &Stop,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let (interrupted, ended) = py.detach(|| {
        thread::scope(|scope| {
            let (ended, end) = mpsc::channel::<()>();
            let worker = scope.spawn(move || {
                let _ended = ended;
                work()
            });
            let mut interrupted = None;
            // It ends when the worker drops the other half, whatever became of the work.
            while end.recv_timeout(SIGNAL_TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                if let Err(signal) = Python::attach(|py| py.check_signals()) {
                    stop.stop();
                    interrupted.get_or_insert(signal);
                }
            }
            let ended = worker.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
            (interrupted, ended)
        })
    });
    match interrupted {
        // What was built by then is whole, and stays.
        Some(signal) => Err(signal),
        None => ended.map_err(raised),
    }
}

/// What may be said about a build besides its rows, by name; what is `None` is as if it were left out.
struct Given<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> Given<'_, 'py> {
    fn get<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<Option<T>> {
        let value = self.0.get_item(name)?.filter(|value| !value.is_none());
        value.map(|value| value.extract::<T>().map_err(Into::into)).transpose()
    }

    /// A word that is parsed.
    fn word<T: FromStr<Err: Display>>(&self, name: &str) -> PyResult<Option<T>> {
        let word = self.get::<String>(name)?;
        word.map(|word| word.parse::<T>())
            .transpose()
            .map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
    }

    fn partitions(&self) -> PyResult<PartitionCount> {
        let partitions = self.get::<u32>("partitions")?;
        partitions.and_then(PartitionCount::new).ok_or_else(|| {
            PyValueError::new_err("partitions: it is the number that `kith cluster status` tells")
        })
    }

    fn version(&self) -> PyResult<Option<StoreVersion>> {
        match self.get::<u64>("version")? {
            Some(version) if !(1..=StoreVersion::MAX.0).contains(&version) => {
                Err(PyValueError::new_err(format!("version: a number from 1 to {}", StoreVersion::MAX.0)))
            }
            version => Ok(version.map(StoreVersion)),
        }
    }

    fn memory(&self) -> PyResult<Option<usize>> {
        match self.get::<usize>("memory")? {
            Some(bytes) if bytes < MEMORY_BYTES_MIN => {
                Err(PyValueError::new_err("memory: too little to sort with: at least 16 MiB"))
            }
            bytes => Ok(bytes),
        }
    }

    fn threads(&self) -> PyResult<Option<usize>> {
        match self.get::<usize>("threads")? {
            Some(threads) if !(1..=256).contains(&threads) => {
                Err(PyValueError::new_err("threads: a number from 1 to 256"))
            }
            threads => Ok(threads),
        }
    }

    /// A character that separates columns.
    fn delimiter(&self) -> PyResult<Option<u8>> {
        let Some(text) = self.get::<String>("delimiter")? else { return Ok(None) };
        match text.as_bytes() {
            [byte] if !byte.is_ascii_alphanumeric() && !matches!(byte, b'"' | b'\n' | b'\r') => {
                Ok(Some(*byte))
            }
            _ => Err(PyValueError::new_err("delimiter: one character that no value has")),
        }
    }
}

/// A place by name.
fn place(out: &str) -> PyResult<Objects> {
    kith_build::place(out).map_err(raised)
}

/// What was dropped, for Python: reason, count, and the first.
fn dropped(dropped: Vec<Dropped>) -> Vec<(String, u64, Vec<String>)> {
    dropped.into_iter().map(|it| (it.reason, it.count, it.first_lines)).collect()
}

/// Rows that are one text are a slip: a text can be iterated too.
fn check_rows(rows: &Bound<'_, PyAny>) -> PyResult<()> {
    if rows.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("rows are an iterable of rows, not text"));
    }
    Ok(())
}
