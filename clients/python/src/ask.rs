//! Questions on their way to the cluster, and their answers on the way back.

use crate::{
    answered::Values,
    call::{Ended, reply},
    footer::footer,
    keys::Keys,
    shared::Shared,
    value,
};
use kith_client::{AggregateQuery, BatchAnswer, QueryError, QueryOptions};
use kith_schema::{ValueType, compute::GroupBy};
use pyo3::{IntoPyObjectExt, prelude::*, types::PyList};

/// Reads keys of a store, and what is needed to decode their values.
///
/// # Errors
/// If nothing can be read, or records were found and their schema cannot be had.
pub async fn read(
    shared: &Shared,
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
                // There is nothing to decode by it: what is not there is known all the same.
                Err(_) if answer.counts().found == 0 => Values::Plain(value),
                Err(error) => return Err(error),
            }
        }
        _ => Values::Plain(value),
    };
    Ok((answer, values))
}

/// The counts over the records of keys, as Python has them.
///
/// # Errors
/// If nothing can be read.
pub async fn counted(
    shared: &Shared,
    store: &str,
    keys: &Keys,
    query: &AggregateQuery,
    options: &QueryOptions,
) -> Ended {
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
