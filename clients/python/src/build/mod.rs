//! Builds graphs and stores from Python with `kith-build`, from Python rows or from files. Rows are taken in batches while
//! the thread holds the interpreter, and are checked, sorted and written while it does not.

mod graph;
mod rows;
mod store;

pub use graph::build_graph;
pub use store::build_store;

use crate::error;
use kith_build::{DroppedRows, Failure, Objects, Stop};
use kith_types::{PartitionCount, StoreVersion};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyString},
};
use std::{fmt::Display, panic, str::FromStr, sync::mpsc, thread, time::Duration};

/// The maximum time until a build notices Ctrl-C.
const SIGNAL_TICK: Duration = Duration::from_millis(50);
/// The minimum memory of a build, which holds the buffers of a merge.
const MEMORY_BYTES_MIN: usize = 16 << 20;

/// Returns the exception for a build that failed.
fn raised(failure: Failure) -> PyErr {
    error::refused_rows(failure.code, &failure.message, &failure.help, failure.wrong)
}

/// Carries out `work` on a separate thread, without the interpreter. Ctrl-C asks the work to stop, and is raised once the
/// work has ended.
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
            // The loop ends when the worker drops its half of the channel, even if the work panics.
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
        // Parts that were already built are complete, and stay.
        Some(signal) => Err(signal),
        None => ended.map_err(raised),
    }
}

/// The options of a build by name. An option that is `None` counts as not given.
struct Given<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> Given<'_, 'py> {
    fn get<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<Option<T>> {
        let value = self.0.get_item(name)?.filter(|value| !value.is_none());
        value.map(|value| value.extract::<T>().map_err(Into::into)).transpose()
    }

    /// Returns an option that is parsed from text.
    fn word<T: FromStr<Err: Display>>(&self, name: &str) -> PyResult<Option<T>> {
        let word = self.get::<String>(name)?;
        word.map(|word| word.parse::<T>())
            .transpose()
            .map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
    }

    fn partitions(&self) -> PyResult<PartitionCount> {
        let partitions = self.get::<u32>("partitions")?;
        partitions.and_then(PartitionCount::new).ok_or_else(|| {
            PyValueError::new_err("partitions: give the number that `kith cluster status` shows")
        })
    }

    fn version(&self) -> PyResult<Option<StoreVersion>> {
        match self.get::<u64>("version")? {
            Some(version) if !(1..=StoreVersion::MAX.0).contains(&version) => {
                Err(PyValueError::new_err(format!("version must be from 1 to {}", StoreVersion::MAX.0)))
            }
            version => Ok(version.map(StoreVersion)),
        }
    }

    fn memory(&self) -> PyResult<Option<usize>> {
        match self.get::<usize>("memory")? {
            Some(bytes) if bytes < MEMORY_BYTES_MIN => {
                Err(PyValueError::new_err("memory is too little to sort with; give at least 16 MiB"))
            }
            bytes => Ok(bytes),
        }
    }

    fn threads(&self) -> PyResult<Option<usize>> {
        match self.get::<usize>("threads")? {
            Some(threads) if !(1..=256).contains(&threads) => {
                Err(PyValueError::new_err("threads must be from 1 to 256"))
            }
            threads => Ok(threads),
        }
    }

    /// Returns the character that separates columns.
    fn delimiter(&self) -> PyResult<Option<u8>> {
        let Some(text) = self.get::<String>("delimiter")? else { return Ok(None) };
        match text.as_bytes() {
            [byte] if !byte.is_ascii_alphanumeric() && !matches!(byte, b'"' | b'\n' | b'\r') => {
                Ok(Some(*byte))
            }
            _ => Err(PyValueError::new_err(
                "delimiter: expected one character that is not a letter, digit, quote or line end",
            )),
        }
    }
}

/// Returns the destination with the given name.
fn open_objects(out: &str) -> PyResult<Objects> {
    kith_build::open_objects(out).map_err(raised)
}

/// Converts dropped rows for Python: the reason, the count and the first rows.
fn dropped(dropped: Vec<DroppedRows>) -> Vec<(String, u64, Vec<String>)> {
    dropped.into_iter().map(|it| (it.reason, it.count, it.first_lines)).collect()
}

/// Checks that rows are not a single text. Python could iterate over its characters, which is never meant.
///
/// # Errors
/// `TypeError` if they are.
fn check_rows(rows: &Bound<'_, PyAny>) -> PyResult<()> {
    if rows.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("rows must be an iterable of rows, not text"));
    }
    Ok(())
}
