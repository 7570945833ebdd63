//! Reads of keys of a store straight from the nodes: their values, or the results of a plan.

use crate::{Run, Session, session::RESTARTS_MAX};
use kith_client::compute::{aggregated, aggregation, computation, internal, results, whole};
use kith_operators::{Operator, Records, Value, aggregate_fetched};
use kith_query::{
    AggregateAnswer, AggregateQuery, BatchAnswer, BatchKeys, ComputeAnswer, ComputeAt, ComputeQuery, FanOut,
    QueryError, QueryOptions, Service,
};
use kith_schema::{
    Schema,
    compute::{Aggregation, Computation},
};
use kith_topology::ValueStore;
use kith_types::{FanOutKind, OperationName};
use std::sync::Arc;

/// The form in which a read wants the keys.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'q> {
    Values,
    Compute(&'q ComputeQuery),
    Aggregate(&'q AggregateQuery),
}

/// A [`Wanted`] that was checked against the schema of the pinned version.
pub(crate) enum Checked {
    Values,
    Compute(Computation, Schema),
    Aggregate(Aggregation, Schema),
}

/// The merged answers of the nodes.
struct Gathered<'s> {
    run: Run<'s>,
    known: Arc<ValueStore>,
    checked: Checked,
    value: Value,
    /// Whether `value` holds whole records that are still to be computed on here.
    is_raw: bool,
}

impl Session {
    /// Reads the values of keys.
    pub(crate) async fn read(
        &self,
        store: &str,
        keys: &BatchKeys,
        options: &QueryOptions,
    ) -> Result<BatchAnswer, QueryError> {
        let Gathered { run, known, value, .. } = self.gather(store, keys, Wanted::Values, options).await?;
        Ok(run.finish_batch(records_of(value)?, known.schema))
    }

    pub(crate) async fn computed(
        &self,
        store: &str,
        keys: &BatchKeys,
        query: &ComputeQuery,
        options: &QueryOptions,
    ) -> Result<ComputeAnswer, QueryError> {
        let gathered = self.gather(store, keys, Wanted::Compute(query), options).await?;
        let Gathered { run, checked: Checked::Compute(computation, schema), value, is_raw, .. } = gathered
        else {
            return Err(internal("a computation was taken for something else".to_owned()));
        };
        let (records, best) = results(keys, records_of(value)?, &computation, is_raw.then_some(&schema))?;
        let result = computation.result().clone();
        let answer = run.finish_batch(records, Some(result.id()));
        Ok(ComputeAnswer { answer: whole(store, answer, options)?, best, result })
    }

    pub(crate) async fn aggregated(
        &self,
        store: &str,
        keys: &BatchKeys,
        query: &AggregateQuery,
        options: &QueryOptions,
    ) -> Result<AggregateAnswer, QueryError> {
        let gathered = self.gather(store, keys, Wanted::Aggregate(query), options).await?;
        let Gathered { run, checked: Checked::Aggregate(aggregation, schema), value, .. } = gathered else {
            return Err(internal("an aggregation was taken for something else".to_owned()));
        };
        let groups = match value {
            Value::Groups(groups) => groups,
            other => {
                let over = aggregation.over(&schema).map_err(|error| internal(error.to_string()))?;
                aggregate_fetched(&records_of(other)?, &over)
            }
        };
        let answer = run.finish_batch(Records::default(), None);
        aggregated(store, answer, groups, schema, options)
    }

    /// Runs one fan-out over the keys. Runs it again on a newer version if the nodes no longer have the pinned version, and
    /// again for whole records if the nodes cannot compute.
    async fn gather<'s>(
        &'s self,
        store: &str,
        keys: &BatchKeys,
        wanted: Wanted<'_>,
        options: &'s QueryOptions,
    ) -> Result<Gathered<'s>, QueryError> {
        self.check_batch(keys)?;
        let mut restarts = 0;
        loop {
            let (mut run, known, checked) = self.begin_read(store, keys, wanted, options).await?;
            let several = 1 < known.required_reads;
            let plan = if wanted.is_raw() { Operator::Lookup } else { checked.operator(wanted, several) };
            let raw = plan == Operator::Lookup;
            if keys.is_empty() {
                let value = Value::Records(Records::default());
                return Ok(Gathered { run, known, checked, value, is_raw: true });
            }
            let (purpose, kind) = (wanted.purpose(), FanOutKind::NonUnion);
            let fan_out = FanOut { purpose, kind, scope: keys.scope(), plan };
            let answer = match several {
                true => run.ask_agreeing(&fan_out, known.required_reads).await,
                false => run.ask(&fan_out).await,
            };
            match answer {
                Ok(value) => {
                    self.check_records(store, &value, several && !options.partial)?;
                    return Ok(Gathered { run, known, checked, value, is_raw: raw });
                }
                Err(error) => {
                    if RESTARTS_MAX <= restarts || !run.begins_again(&error, several).await {
                        return Err(error);
                    }
                    restarts += 1;
                }
            }
        }
    }

    /// Refuses an answer with too many bytes, and one whose replicas disagree if they must agree.
    pub(crate) fn check_records(
        &self,
        store: &str,
        value: &Value,
        must_agree: bool,
    ) -> Result<(), QueryError> {
        let Some(records) = value.records() else { return Ok(()) };
        let keys = records.disagreements();
        if must_agree && 0 < keys {
            return Err(QueryError::Disagreement { store: store.to_owned(), keys });
        }
        let max = self.settings().answer_bytes_max;
        match max < records.value_bytes() {
            true => Err(QueryError::TooLarge { max }),
            false => Ok(()),
        }
    }

    /// Pins the store's version, and checks what is wanted against it.
    ///
    /// # Errors
    /// If there is no such store, its keys have another type, it has no records, or the plan does not fit them.
    pub(crate) async fn begin_read<'a>(
        &'a self,
        store: &str,
        keys: &BatchKeys,
        wanted: Wanted<'_>,
        options: &'a QueryOptions,
    ) -> Result<(Run<'a>, Arc<ValueStore>, Checked), QueryError> {
        let topology = self.topology();
        let known = Arc::clone(topology.store(store)?);
        keys.check_type(store, known.key)?;
        let checked = self.check(store, &known, wanted).await?;
        let run = self.begin_at(topology, &known.pinned, wanted.operation(), options)?;
        Ok((run, known, checked))
    }

    /// Checks what is wanted against the records of the pinned version.
    ///
    /// # Errors
    /// If the store has no records, or the plan does not fit them.
    async fn check(
        &self,
        store: &str,
        known: &ValueStore,
        wanted: Wanted<'_>,
    ) -> Result<Checked, QueryError> {
        if matches!(wanted, Wanted::Values) {
            return Ok(Checked::Values);
        }
        let Some(id) = known.schema else {
            return Err(QueryError::NotRecords { store: store.to_owned(), value: known.value });
        };
        let schema = self.schema(store, known.pinned.version(), id).await?;
        Ok(match wanted {
            Wanted::Values => Checked::Values,
            Wanted::Compute(query) => Checked::Compute(computation(&query.plan, &schema)?, schema),
            Wanted::Aggregate(query) => Checked::Aggregate(aggregation(&query.plan, &schema)?, schema),
        })
    }
}

impl Wanted<'_> {
    pub(crate) fn is_raw(self) -> bool {
        match self {
            Wanted::Values => true,
            Wanted::Compute(query) => query.at == ComputeAt::Client,
            Wanted::Aggregate(query) => query.at == ComputeAt::Client,
        }
    }

    pub(crate) fn operation(self) -> OperationName {
        match self {
            Wanted::Values => OperationName::Mget,
            Wanted::Compute(_) => OperationName::Compute,
            Wanted::Aggregate(_) => OperationName::Aggregate,
        }
    }

    pub(crate) fn purpose(self) -> &'static str {
        match self {
            Wanted::Values => "values",
            Wanted::Compute(_) => "computation",
            Wanted::Aggregate(_) => "aggregation",
        }
    }
}

impl Checked {
    /// The schema of a computation's result; `None` for other reads.
    pub(crate) fn result(&self) -> Option<&Schema> {
        match self {
            Checked::Compute(computation, _) => Some(computation.result()),
            Checked::Values | Checked::Aggregate(..) => None,
        }
    }

    /// The operator that nodes evaluate. If several replicas must agree, their answers are compared key by key, so nothing
    /// is cut or counted before that.
    pub(crate) fn operator(&self, wanted: Wanted<'_>, several: bool) -> Operator {
        match (self, wanted) {
            (Checked::Compute(computation, _), Wanted::Compute(query)) if several => {
                Operator::Compute(Arc::new(computation.uncut(&query.plan)))
            }
            (Checked::Compute(..), Wanted::Compute(query)) => Operator::Compute(Arc::new(query.plan.clone())),
            (Checked::Aggregate(..), Wanted::Aggregate(query)) if !several => {
                Operator::Aggregate(Arc::new(query.plan.clone()))
            }
            _ => Operator::Lookup,
        }
    }
}

fn records_of(value: Value) -> Result<Records, QueryError> {
    match value {
        Value::Records(records) => Ok(records),
        other => Err(internal(format!("a batch read was answered by {other:.60?}"))),
    }
}
