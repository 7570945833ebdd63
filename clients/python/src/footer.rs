//! Footers: the counts of keys by state that come with an answer.

use kith_client::StreamFooter;
use kith_operators::Records;
use pyo3::{prelude::*, types::PyList};

/// Returns a `kith.Footer`.
///
/// # Errors
/// If the class cannot be imported.
pub fn footer<'py>(
    py: Python<'py>,
    records: &Records,
    versions: &[u64],
    missing: &[u32],
) -> PyResult<Bound<'py, PyAny>> {
    let counts = records.counts();
    let counts = (counts.found, counts.absent, counts.error, counts.unanswered);
    let (versions, missing) = (versions.to_vec(), missing.to_vec());
    let class = py.import("kith.answers")?.getattr("Footer")?;
    class.call1((counts.0, counts.1, counts.2, counts.3, versions, missing))
}

/// Returns a `kith.StreamFooter`.
///
/// # Errors
/// If the class cannot be imported.
pub fn stream_footer<'py>(py: Python<'py>, footer: &StreamFooter) -> PyResult<Bound<'py, PyAny>> {
    let answers = py.import("kith.answers")?;
    let class = answers.getattr("StreamFailure")?;
    let failures = PyList::empty(py);
    let mut missing: Vec<u32> = Vec::new();
    for failure in &footer.failures {
        missing.extend(&failure.partitions);
        let parts = (failure.code.name(), failure.keys, &failure.partitions, &failure.nodes);
        failures.append(class.call1(parts)?)?;
    }
    missing.sort_unstable();
    missing.dedup();
    let counts = footer.counts;
    let versions = if footer.version == 0 { vec![] } else { vec![footer.version] };
    answers.getattr("StreamFooter")?.call1((
        counts.found,
        counts.absent,
        counts.error,
        counts.unanswered,
        versions,
        missing,
        footer.status.name(),
        failures,
        footer.crc32c,
        footer.total,
        footer.service,
    ))
}
