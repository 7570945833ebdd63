//! Reads of keys of a store straight from the nodes: their values, or the results of a plan.

use crate::{
    Session,
    session::{RESTARTS_MAX, Run},
};
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
pub(crate) enum WantedForm<'q> {
    Values,
    Compute(&'q ComputeQuery),
    Aggregate(&'q AggregateQuery),
}

/// A [`WantedForm`] that was checked against the schema of the pinned version.
pub(crate) enum CheckedForm {
    Values,
    Compute(Computation, Schema),
    Aggregate(Aggregation, Schema),
}

/// The merged answers of the nodes.
struct Gathered<'s> {
    run: Run<'s>,
    known: Arc<ValueStore>,
    checked: CheckedForm,
    value: Value,
    /// Whether `value` holds whole records that are still to be computed on here.
    is_raw: bool,
}

/// A read of keys of a store under way.
#[derive(Clone, Copy)]
pub(crate) struct BatchRead<'a> {
    pub session: &'a Session,
    pub store: &'a str,
    pub keys: &'a BatchKeys,
    pub wanted: WantedForm<'a>,
    pub options: &'a QueryOptions,
}

impl<'a> BatchRead<'a> {
    /// Reads the values of the keys.
    pub async fn values(self) -> Result<BatchAnswer, QueryError> {
        let Gathered { run, known, value, .. } = self.gather().await?;
        Ok(run.finish_batch(records_of(value)?, known.schema))
    }

    /// Reads the results of a computation.
    pub async fn computed(self) -> Result<ComputeAnswer, QueryError> {
        let Self { store, keys, options, .. } = self;
        let gathered = self.gather().await?;
        let Gathered { run, checked: CheckedForm::Compute(computation, schema), value, is_raw, .. } =
            gathered
        else {
            return Err(internal("a computation was taken for something else".to_owned()));
        };
        let (records, best) = results(keys, records_of(value)?, &computation, is_raw.then_some(&schema))?;
        let result = computation.result().clone();
        let answer = run.finish_batch(records, Some(result.id()));
        Ok(ComputeAnswer { answer: whole(store, answer, options)?, best, result })
    }

    /// Reads the groups of an aggregation.
    pub async fn aggregated(self) -> Result<AggregateAnswer, QueryError> {
        let Self { store, options, .. } = self;
        let gathered = self.gather().await?;
        let Gathered { run, checked: CheckedForm::Aggregate(aggregation, schema), value, .. } = gathered
        else {
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
    async fn gather(self) -> Result<Gathered<'a>, QueryError> {
        let Self { session, store, keys, wanted, options } = self;
        session.check_batch(keys)?;
        let mut restarts = 0;
        loop {
            let (mut run, known, checked) = self.begin().await?;
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
                    let max = session.settings().answer_bytes_max;
                    check_records(store, &value, several && !options.partial, max)?;
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

    /// Pins the store's version, and checks what is wanted against it.
    ///
    /// # Errors
    /// If there is no such store, its keys have another type, it has no records, or the plan does not fit them.
    pub async fn begin(self) -> Result<(Run<'a>, Arc<ValueStore>, CheckedForm), QueryError> {
        let Self { session, store, keys, wanted, options } = self;
        let topology = session.topology();
        let known = Arc::clone(topology.store(store)?);
        keys.check_type(store, known.key)?;
        let checked = self.check(&known).await?;
        let run = session.begin_at(topology, &known.pinned, wanted.operation(), options)?;
        Ok((run, known, checked))
    }

    /// Checks what is wanted against the records of the pinned version.
    ///
    /// # Errors
    /// If the store has no records, or the plan does not fit them.
    async fn check(self, known: &ValueStore) -> Result<CheckedForm, QueryError> {
        let Self { session, store, wanted, .. } = self;
        if matches!(wanted, WantedForm::Values) {
            return Ok(CheckedForm::Values);
        }
        let Some(id) = known.schema else {
            return Err(QueryError::NotRecords { store: store.to_owned(), value: known.value });
        };
        let schema = session.schema(store, known.pinned.version(), id).await?;
        Ok(match wanted {
            WantedForm::Values => CheckedForm::Values,
            WantedForm::Compute(query) => CheckedForm::Compute(computation(&query.plan, &schema)?, schema),
            WantedForm::Aggregate(query) => {
                CheckedForm::Aggregate(aggregation(&query.plan, &schema)?, schema)
            }
        })
    }
}

impl WantedForm<'_> {
    pub(crate) fn is_raw(self) -> bool {
        match self {
            WantedForm::Values => true,
            WantedForm::Compute(query) => query.at == ComputeAt::Client,
            WantedForm::Aggregate(query) => query.at == ComputeAt::Client,
        }
    }

    pub(crate) fn operation(self) -> OperationName {
        match self {
            WantedForm::Values => OperationName::MGET,
            WantedForm::Compute(_) => OperationName::COMPUTE,
            WantedForm::Aggregate(_) => OperationName::AGGREGATE,
        }
    }

    pub(crate) fn purpose(self) -> &'static str {
        match self {
            WantedForm::Values => "values",
            WantedForm::Compute(_) => "computation",
            WantedForm::Aggregate(_) => "aggregation",
        }
    }
}

impl CheckedForm {
    /// The schema of a computation's result; `None` for other reads.
    pub(crate) fn result(&self) -> Option<&Schema> {
        match self {
            CheckedForm::Compute(computation, _) => Some(computation.result()),
            CheckedForm::Values | CheckedForm::Aggregate(..) => None,
        }
    }

    /// The operator that nodes evaluate. If several replicas must agree, their answers are compared key by key, so nothing
    /// is cut or counted before that.
    pub(crate) fn operator(&self, wanted: WantedForm<'_>, several: bool) -> Operator {
        match (self, wanted) {
            (CheckedForm::Compute(computation, _), WantedForm::Compute(query)) if several => {
                Operator::Compute(Arc::new(computation.uncut(&query.plan)))
            }
            (CheckedForm::Compute(..), WantedForm::Compute(query)) => {
                Operator::Compute(Arc::new(query.plan.clone()))
            }
            (CheckedForm::Aggregate(..), WantedForm::Aggregate(query)) if !several => {
                Operator::Aggregate(Arc::new(query.plan.clone()))
            }
            _ => Operator::Lookup,
        }
    }
}

/// Refuses an answer with more than `bytes_max`, and one whose replicas disagree if they must agree.
pub(crate) fn check_records(
    store: &str,
    value: &Value,
    must_agree: bool,
    bytes_max: u64,
) -> Result<(), QueryError> {
    let Some(records) = value.records() else { return Ok(()) };
    let keys = records.disagreements();
    if must_agree && 0 < keys {
        return Err(QueryError::Disagreement { store: store.to_owned(), keys });
    }
    match bytes_max < records.value_bytes() {
        true => Err(QueryError::TooLarge { max: bytes_max }),
        false => Ok(()),
    }
}

fn records_of(value: Value) -> Result<Records, QueryError> {
    match value {
        Value::Records(records) => Ok(records),
        other => Err(internal(format!("a batch read was answered by {other:.60?}"))),
    }
}
