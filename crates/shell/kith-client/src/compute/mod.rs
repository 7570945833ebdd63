//! Decides where read compute and aggregations run, and runs those of this process (`docs/design/0009-read-compute.md`).

mod builder;
mod stream;

pub use builder::{AggregateBuilder, ComputeBuilder};
pub use stream::compute_stream_here;

use kith_operators::{EvaluateError, Groups, Records, aggregate_fetched, best, compute_fetched};
use kith_query::{
    ANSWER_BYTES_MAX, AggregateAnswer, BatchAnswer, BatchKeys, ComputeAnswer, QueryError, QueryOptions,
    Service,
};
use kith_schema::{
    Schema, ValueType,
    compute::{AggregatePlan, Aggregation, Computation, ComputePlan},
};

/// Checks a plan against the `schema` of the records, and returns the computation.
///
/// # Errors
/// [`QueryError::Compute`] if the plan is wrong; [`QueryError::BadRequest`] if the plan's own schema does not fit the
/// records.
pub fn computation(plan: &ComputePlan, schema: &Schema) -> Result<Computation, QueryError> {
    let computation = Computation::new(plan, schema)?;
    computation.over(schema).map_err(misfit)?;
    Ok(computation)
}

/// Checks an aggregation in the same way as [`computation`].
///
/// # Errors
/// Those of [`computation`].
pub fn aggregation(plan: &AggregatePlan, schema: &Schema) -> Result<Aggregation, QueryError> {
    let aggregation = Aggregation::new(plan, schema)?;
    aggregation.over(schema).map_err(misfit)?;
    Ok(aggregation)
}

fn misfit(why: impl std::fmt::Display) -> QueryError {
    QueryError::BadRequest { detail: format!("the plan's schema does not fit the records: {why}") }
}

/// Returns the results of `computation` over `fetched` records, which were written under `schema`. If `schema` is `None`,
/// nodes have computed the results already. The `top_k` are chosen here, where the results of all keys are known.
///
/// # Errors
/// [`QueryError::TooLarge`] if the results are.
pub fn results(
    keys: &BatchKeys,
    records: Records,
    computation: &Computation,
    schema: Option<&Schema>,
) -> Result<(Records, Option<Vec<u32>>), QueryError> {
    let mut records = match schema {
        None => records,
        Some(schema) => {
            let plan = computation.over(schema).map_err(|error| internal(error.to_string()))?;
            let computed = compute_fetched(keys.lookup(), &records, &plan, ANSWER_BYTES_MAX);
            computed.map_err(|error| match error {
                EvaluateError::TooLarge { .. } => QueryError::too_large(),
                other => internal(other.to_string()),
            })?
        }
    };
    if computation.k().is_none() {
        return Ok((records, None));
    }
    let best = best(keys.lookup(), &mut records, computation)
        .map_err(|error| internal(format!("a result of another plan: {error}")))?;
    Ok((records, Some(best)))
}

/// Reads whole records through `service` and computes here, as `at: client` asks.
///
/// # Errors
/// Those of [`Service::multi_get`], and those of [`computation`].
pub async fn compute_here(
    service: &(impl Service + ?Sized),
    store: &str,
    keys: &BatchKeys,
    plan: &ComputePlan,
    options: &QueryOptions,
) -> Result<ComputeAnswer, QueryError> {
    let (mut answer, schema) = fetch(service, store, keys, options).await?;
    let computation = computation(plan, &schema)?;
    let fetched = std::mem::take(&mut answer.records);
    let (records, best) = results(keys, fetched, &computation, Some(&schema))?;
    let result = computation.result().clone();
    let answer = BatchAnswer { records, schema: Some(result.id()), ..answer };
    Ok(ComputeAnswer { answer: whole(store, answer, options)?, best, result })
}

/// Aggregates in the same way as [`compute_here`].
///
/// # Errors
/// Those of [`compute_here`].
pub async fn aggregate_here(
    service: &(impl Service + ?Sized),
    store: &str,
    keys: &BatchKeys,
    plan: &AggregatePlan,
    options: &QueryOptions,
) -> Result<AggregateAnswer, QueryError> {
    let (answer, schema) = fetch(service, store, keys, options).await?;
    let aggregation = aggregation(plan, &schema)?;
    let over = aggregation.over(&schema).map_err(|error| internal(error.to_string()))?;
    let groups = aggregate_fetched(&answer.records, &over);
    aggregated(store, answer, groups, schema, options)
}

async fn fetch(
    service: &(impl Service + ?Sized),
    store: &str,
    keys: &BatchKeys,
    options: &QueryOptions,
) -> Result<(BatchAnswer, Schema), QueryError> {
    let value = service.shape(store).await?.value;
    if value != ValueType::Record {
        return Err(QueryError::NotRecords { store: store.to_owned(), value });
    }
    let answer = service.multi_get(store, keys, options).await?;
    let (Some(id), Some((_, version))) = (answer.schema, answer.served.first()) else {
        return Err(internal("records came without the schema that they have".to_owned()));
    };
    let schema = service.schema(store, *version, id).await?;
    Ok((answer, schema))
}

/// Makes the answer of an aggregation from its merged groups.
///
/// # Errors
/// Those of [`refuse_damaged`].
pub fn aggregated(
    store: &str,
    answer: BatchAnswer,
    groups: Groups,
    schema: Schema,
    options: &QueryOptions,
) -> Result<AggregateAnswer, QueryError> {
    let Groups { records, values, counts, truncated } = groups;
    let answer = BatchAnswer { records, schema: Some(schema.id()), ..answer };
    Ok(AggregateAnswer { answer: whole(store, answer, options)?, values, counts, truncated, schema })
}

/// Passes on an answer whose records decode.
///
/// # Errors
/// Those of [`refuse_damaged`].
pub fn whole(store: &str, answer: BatchAnswer, options: &QueryOptions) -> Result<BatchAnswer, QueryError> {
    refuse_damaged(store, &answer.records, options)?;
    Ok(answer)
}

/// Fails a query that does not accept partial answers if records do not decode. Damaged records have the same effect.
///
/// # Errors
/// [`QueryError::Damaged`].
pub fn refuse_damaged(store: &str, records: &Records, options: &QueryOptions) -> Result<(), QueryError> {
    if options.partial || records.damaged() == 0 {
        return Ok(());
    }
    let detail = "records do not decode by the schema of their version".to_owned();
    Err(QueryError::Damaged { store: store.to_owned(), detail })
}

/// The error for what only a bug can cause.
pub fn internal(detail: String) -> QueryError {
    QueryError::Internal { detail }
}
