//! Reads and counts of stores, with the conversion of their answers to Python.

use crate::{
    answered::Values,
    call::{CallResult, reply},
    footer::footer,
    keys::Keys,
    shared::SharedConnection,
    value,
};
use kith_client::{AggregateQuery, BatchAnswer, QueryError, QueryOptions};
use kith_schema::{ValueType, compute::GroupBy};
use pyo3::{IntoPyObjectExt, prelude::*, types::PyList};

/// Reads keys of a store, and the schema that is needed to decode their values.
///
/// # Errors
/// If the read fails, or if records were found but their schema is not available.
pub async fn read(
    shared: &SharedConnection,
    store: &str,
    keys: &Keys,
    options: &QueryOptions,
) -> Result<(BatchAnswer, Values), QueryError> {
    let value = shared.shape(store).await?.value;
    let answer = shared.service().multi_get(store, &keys.batch, options).await?;
    let values = match (value, answer.schema, answer.served.first()) {
        (ValueType::Record, Some(id), Some((_, version))) => {
            match shared.service().schema(store, *version, id).await {
                Ok(schema) => Values::Records(schema),
                // Without any record, the schema is not needed. The answer still says which keys are absent.
                Err(_) if answer.counts().found == 0 => Values::Plain(value),
                Err(error) => return Err(error),
            }
        }
        _ => Values::Plain(value),
    };
    Ok((answer, values))
}

/// Counts values over the records of keys. Returns the Python tuple `([(name or value, count)], distinct, truncated,
/// footer)`.
///
/// # Errors
/// If the read fails.
pub async fn counted(
    shared: &SharedConnection,
    store: &str,
    keys: &Keys,
    query: &AggregateQuery,
    options: &QueryOptions,
) -> CallResult {
    let answer = shared.service().read_aggregate(store, &keys.batch, query, options).await?;
    let query = query.clone();
    reply(move |py| {
        let counts = PyList::empty(py);
        let mut distinct = None;
        match &query.plan.by {
            GroupBy::Bucket(buckets) => {
                for (bucket, count) in buckets.iter().zip(&answer.counts) {
                    counts.append((bucket.name.as_str(), *count))?;
                }
            }
            GroupBy::Value { .. } => {
                distinct = Some(answer.counts.len());
                let mut outcome = Ok(());
                let top = answer.top(&query.plan, |value, count| {
                    let appended = value::scalar(py, value).and_then(|value| counts.append((value, count)));
                    if outcome.is_ok() {
                        outcome = appended;
                    }
                });
                top.map_err(|error| crate::error::raised(&error))?;
                outcome?;
            }
        }
        let versions: Vec<u64> = answer.answer.served.iter().map(|(_, version)| *version).collect();
        let footer = footer(py, &answer.answer.records, &versions, &answer.answer.missing_partitions)?;
        (counts, distinct, answer.truncated, footer).into_py_any(py)
    })
}
