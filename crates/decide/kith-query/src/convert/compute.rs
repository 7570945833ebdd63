//! Read compute on the wire: plans, questions, answers.

use super::{
    ConvertError,
    batch::{keys_from_wire, keys_to_wire},
    groups_from_wire, groups_to_wire,
    query::{options_from_wire, options_to_wire},
    records_from_wire, records_to_wire,
};
use crate::{
    AggregateAnswer, AggregateQuery, BatchAnswer, BatchKeys, ComputeAnswer, ComputeAt, ComputeQuery, Proofs,
    QueryError, QueryOptions, Question, Request,
};
use kith_operators::Groups;
use kith_schema::{
    Schema,
    compute::{
        AggregatePlan, Bucket, Comparison, ComputeFunction, ComputeOperator, ComputePlan, GroupBy, Operand,
        Predicate, TopK,
    },
};
use kith_wire::v1::{self, aggregate_plan::By, operand, predicate};

/// Encodes a plan.
pub(super) fn compute_plan_to_wire(plan: &ComputePlan) -> v1::ComputePlan {
    let operators = plan.operators.iter().map(|operator| v1::ComputeOperator {
        name: operator.name.clone(),
        field: operator.field.clone(),
        function: match operator.function {
            ComputeFunction::Dot(_) => v1::ComputeFunction::Dot,
            ComputeFunction::Cosine(_) => v1::ComputeFunction::Cosine,
            ComputeFunction::Hadamard(_) => v1::ComputeFunction::Hadamard,
            ComputeFunction::Count => v1::ComputeFunction::Count,
        }
        .into(),
        query: operator.function.query().unwrap_or_default().to_vec(),
    });
    v1::ComputePlan {
        project: plan.project.clone(),
        operators: operators.collect(),
        top_k: plan.top_k.as_ref().map(|top_k| v1::TopK { by: top_k.by.clone(), k: top_k.k }),
        reader_schema: schema_to_wire(plan.reader.as_ref()),
    }
}

/// Decodes a plan. It is checked later, once the schema is known.
///
/// # Errors
/// If a function is unknown, or the reader's schema is invalid.
pub(super) fn compute_plan_from_wire(wire: &v1::ComputePlan) -> Result<ComputePlan, ConvertError> {
    let operators = wire.operators.iter().map(|operator| {
        let query = || operator.query.clone();
        let function = match v1::ComputeFunction::try_from(operator.function) {
            Ok(v1::ComputeFunction::Dot) => ComputeFunction::Dot(query()),
            Ok(v1::ComputeFunction::Cosine) => ComputeFunction::Cosine(query()),
            Ok(v1::ComputeFunction::Hadamard) => ComputeFunction::Hadamard(query()),
            Ok(v1::ComputeFunction::Count) => ComputeFunction::Count,
            Ok(v1::ComputeFunction::FunctionNone) | Err(_) => {
                return Err(ConvertError::Unknown {
                    field: "plan.operators.function",
                    got: operator.function,
                });
            }
        };
        Ok(ComputeOperator { name: operator.name.clone(), field: operator.field.clone(), function })
    });
    Ok(ComputePlan {
        project: wire.project.clone(),
        operators: operators.collect::<Result<_, _>>()?,
        top_k: wire.top_k.as_ref().map(|top_k| TopK { by: top_k.by.clone(), k: top_k.k }),
        reader: schema_from_wire(&wire.reader_schema)?,
    })
}

/// Encodes a plan.
pub(super) fn aggregate_plan_to_wire(plan: &AggregatePlan) -> v1::AggregatePlan {
    let by = match &plan.by {
        GroupBy::Value { top } => By::Top(*top),
        GroupBy::Bucket(buckets) => {
            let buckets = buckets.iter().map(|bucket| v1::Bucket {
                name: bucket.name.clone(),
                predicate: Some(predicate_to_wire(&bucket.predicate)),
            });
            By::Buckets(v1::Buckets { buckets: buckets.collect() })
        }
    };
    let reader_schema = schema_to_wire(plan.reader.as_ref());
    v1::AggregatePlan { field: plan.field.clone(), by: Some(by), reader_schema }
}

/// Decodes a plan. It is checked later, once the schema is known.
///
/// # Errors
/// If a part is missing, a predicate is nested too deeply, or the reader's schema is invalid.
pub(super) fn aggregate_plan_from_wire(wire: &v1::AggregatePlan) -> Result<AggregatePlan, ConvertError> {
    let by = match wire.by.as_ref().ok_or(ConvertError::Missing("plan.by"))? {
        By::Top(top) => GroupBy::Value { top: *top },
        By::Buckets(buckets) => {
            let buckets = buckets.buckets.iter().map(|bucket| {
                let predicate = predicate_from_wire(bucket.predicate.as_ref(), Predicate::DEPTH_MAX)?;
                Ok(Bucket { name: bucket.name.clone(), predicate })
            });
            GroupBy::Bucket(buckets.collect::<Result<_, ConvertError>>()?)
        }
    };
    Ok(AggregatePlan { field: wire.field.clone(), by, reader: schema_from_wire(&wire.reader_schema)? })
}

fn schema_to_wire(schema: Option<&Schema>) -> String {
    schema.map(|schema| schema.canonical().to_owned()).unwrap_or_default()
}

fn schema_from_wire(text: &str) -> Result<Option<Schema>, ConvertError> {
    let schema = (!text.is_empty()).then(|| text.parse::<Schema>()).transpose();
    schema.map_err(|error| ConvertError::Schema { field: "plan.reader_schema", why: error.to_string() })
}

fn predicate_to_wire(predicate: &Predicate) -> v1::Predicate {
    use predicate::Predicate as Wire;
    let all =
        |inner: &[Predicate]| v1::Predicates { predicates: inner.iter().map(predicate_to_wire).collect() };
    let wire = match predicate {
        Predicate::Compare(Comparison::Eq, operand) => Wire::Eq(operand_to_wire(operand)),
        Predicate::Compare(Comparison::Gt, operand) => Wire::Gt(operand_to_wire(operand)),
        Predicate::Compare(Comparison::Ge, operand) => Wire::Ge(operand_to_wire(operand)),
        Predicate::Compare(Comparison::Lt, operand) => Wire::Lt(operand_to_wire(operand)),
        Predicate::Compare(Comparison::Le, operand) => Wire::Le(operand_to_wire(operand)),
        Predicate::AnyOf(operands) => {
            Wire::AnyOf(v1::Operands { operands: operands.iter().map(operand_to_wire).collect() })
        }
        Predicate::And(inner) => Wire::And(all(inner)),
        Predicate::Or(inner) => Wire::Or(all(inner)),
    };
    v1::Predicate { predicate: Some(wire) }
}

fn predicate_from_wire(wire: Option<&v1::Predicate>, depth: usize) -> Result<Predicate, ConvertError> {
    use predicate::Predicate as Wire;
    let depth = depth.checked_sub(1).ok_or(ConvertError::TooDeep(Predicate::DEPTH_MAX))?;
    let all = |inner: &v1::Predicates| {
        let inner = inner.predicates.iter().map(|inner| predicate_from_wire(Some(inner), depth));
        inner.collect::<Result<Vec<_>, _>>()
    };
    let compare = |comparison, operand| Ok(Predicate::Compare(comparison, operand_from_wire(operand)?));
    let wire = wire.and_then(|wire| wire.predicate.as_ref());
    match wire.ok_or(ConvertError::Missing("plan.buckets.predicate"))? {
        Wire::Eq(operand) => compare(Comparison::Eq, operand),
        Wire::Gt(operand) => compare(Comparison::Gt, operand),
        Wire::Ge(operand) => compare(Comparison::Ge, operand),
        Wire::Lt(operand) => compare(Comparison::Lt, operand),
        Wire::Le(operand) => compare(Comparison::Le, operand),
        Wire::AnyOf(operands) => {
            Ok(Predicate::AnyOf(operands.operands.iter().map(operand_from_wire).collect::<Result<_, _>>()?))
        }
        Wire::And(inner) => Ok(Predicate::And(all(inner)?)),
        Wire::Or(inner) => Ok(Predicate::Or(all(inner)?)),
    }
}

fn operand_to_wire(operand: &Operand) -> v1::Operand {
    use operand::Operand as Wire;
    let wire = match operand {
        Operand::Bool(value) => Wire::Bool(*value),
        Operand::Whole(value) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => Wire::Whole(value),
            (_, Ok(value)) => Wire::Large(value),
            // Larger than every number of a record. A double compares in the same way.
            _ => Wire::Float(*value as f64),
        },
        Operand::Float(value) => Wire::Float(*value),
        Operand::Text(value) => Wire::Text(value.clone()),
    };
    v1::Operand { operand: Some(wire) }
}

fn operand_from_wire(wire: &v1::Operand) -> Result<Operand, ConvertError> {
    use operand::Operand as Wire;
    Ok(match wire.operand.as_ref().ok_or(ConvertError::Missing("plan.buckets.operand"))? {
        Wire::Bool(value) => Operand::Bool(*value),
        Wire::Whole(value) => Operand::Whole((*value).into()),
        Wire::Large(value) => Operand::Whole((*value).into()),
        Wire::Float(value) => Operand::Float(*value),
        Wire::Text(value) => Operand::Text(value.clone()),
    })
}

/// Encodes a computation over keys.
pub fn compute_to_wire(
    store: &str,
    keys: &BatchKeys,
    plan: &ComputePlan,
    options: &QueryOptions,
) -> v1::ComputeRequest {
    let (ids, byte_keys) = keys_to_wire(keys);
    let (store, options, plan) = (store.to_owned(), options_to_wire(options), compute_plan_to_wire(plan));
    v1::ComputeRequest { store, ids, byte_keys, options: Some(options), plan: Some(plan) }
}

/// Decodes a computation over keys, which are within their limits.
///
/// # Errors
/// [`QueryError::BadRequest`] if a field is missing or invalid.
pub fn compute_from_wire(wire: v1::ComputeRequest) -> Result<Request, QueryError> {
    let plan = wire.plan.as_ref().ok_or(ConvertError::Missing("plan")).and_then(compute_plan_from_wire);
    let keys = keys_from_wire(wire.ids, &wire.byte_keys)?;
    // Results are computed from values that were checked before.
    let options = options_from_wire(wire.options.unwrap_or_default())?;
    let options = QueryOptions { proofs: Proofs::Here, ..options };
    let query = ComputeQuery { plan: plan.map_err(bad)?, at: ComputeAt::Nodes };
    Ok(Request { question: Question::Compute { store: wire.store, keys, query }, options })
}

/// Encodes an answer.
pub fn compute_answer_to_wire(answer: ComputeAnswer) -> v1::ComputeReply {
    let ComputeAnswer { answer, best, result } = answer;
    v1::ComputeReply {
        records: records_to_wire(&answer.records),
        best: best.unwrap_or_default(),
        complete: answer.is_complete(),
        missing_partitions: answer.missing_partitions,
        profile: answer.profile,
        served: served_to_wire(answer.served),
        result_schema: result.canonical().to_owned(),
    }
}

/// Decodes an answer to `keys` keys and this plan.
///
/// # Errors
/// [`QueryError::Internal`] if it is malformed or belongs to another plan.
pub fn compute_answer_from_wire(
    reply: v1::ComputeReply,
    keys: usize,
    plan: &ComputePlan,
) -> Result<ComputeAnswer, QueryError> {
    let records = records_from_wire(&reply.records, keys).map_err(|error| malformed(error.to_string()))?;
    if records.len() != keys || reply.best.iter().any(|&index| records.len() <= index as usize) {
        return Err(malformed(format!("{keys} keys were answered by {} records", records.len())));
    }
    let result: Schema =
        reply.result_schema.parse().map_err(|error| malformed(format!("schema: {error}")))?;
    let answer = BatchAnswer {
        records,
        schema: Some(result.id()),
        missing_partitions: reply.missing_partitions,
        served: served_from_wire(reply.served),
        profile: reply.profile,
    };
    Ok(ComputeAnswer { answer, best: plan.top_k.as_ref().map(|_| reply.best), result })
}

/// Encodes an aggregation over keys.
pub fn aggregate_to_wire(
    store: &str,
    keys: &BatchKeys,
    plan: &AggregatePlan,
    options: &QueryOptions,
) -> v1::AggregateRequest {
    let (ids, byte_keys) = keys_to_wire(keys);
    let (store, options, plan) = (store.to_owned(), options_to_wire(options), aggregate_plan_to_wire(plan));
    v1::AggregateRequest { store, ids, byte_keys, options: Some(options), plan: Some(plan) }
}

/// Decodes an aggregation over keys, which are within their limits.
///
/// # Errors
/// [`QueryError::BadRequest`] if a field is missing or invalid.
pub fn aggregate_from_wire(wire: v1::AggregateRequest) -> Result<Request, QueryError> {
    let plan = wire.plan.as_ref().ok_or(ConvertError::Missing("plan")).and_then(aggregate_plan_from_wire);
    let keys = keys_from_wire(wire.ids, &wire.byte_keys)?;
    // Results are computed from values that were checked before.
    let options = options_from_wire(wire.options.unwrap_or_default())?;
    let options = QueryOptions { proofs: Proofs::Here, ..options };
    let query = AggregateQuery { plan: plan.map_err(bad)?, at: ComputeAt::Nodes };
    Ok(Request { question: Question::Aggregate { store: wire.store, keys, query }, options })
}

/// Encodes an answer.
pub fn aggregate_answer_to_wire(answer: AggregateAnswer) -> v1::AggregateReply {
    let AggregateAnswer { answer, values, counts, truncated, schema } = answer;
    let complete = answer.is_complete();
    let groups = groups_to_wire(&Groups { records: answer.records, values, counts, truncated });
    v1::AggregateReply {
        groups: Some(groups),
        complete,
        missing_partitions: answer.missing_partitions,
        profile: answer.profile,
        served: served_to_wire(answer.served),
        schema: schema.canonical().to_owned(),
    }
}

/// Decodes an answer to `keys` keys and this plan.
///
/// # Errors
/// [`QueryError::Internal`] if it is malformed or belongs to another plan.
pub fn aggregate_answer_from_wire(
    reply: v1::AggregateReply,
    keys: usize,
    plan: &AggregatePlan,
) -> Result<AggregateAnswer, QueryError> {
    let groups = reply.groups.ok_or(ConvertError::Missing("groups"));
    let groups = groups.and_then(|groups| groups_from_wire(groups, keys));
    let groups = groups.map_err(|error| malformed(error.to_string()))?;
    if groups.records.len() != keys || !groups.fits(&plan.by) {
        return Err(malformed("the router sent groups of another plan".to_owned()));
    }
    let schema: Schema = reply.schema.parse().map_err(|error| malformed(format!("schema: {error}")))?;
    let answer = BatchAnswer {
        records: groups.records,
        schema: Some(schema.id()),
        missing_partitions: reply.missing_partitions,
        served: served_from_wire(reply.served),
        profile: reply.profile,
    };
    let (values, counts, truncated) = (groups.values, groups.counts, groups.truncated);
    Ok(AggregateAnswer { answer, values, counts, truncated, schema })
}

fn served_to_wire(served: Vec<(String, u64)>) -> Vec<v1::Served> {
    served.into_iter().map(|(name, version)| v1::Served::of_version(name, version)).collect()
}

fn served_from_wire(served: Vec<v1::Served>) -> Vec<(String, u64)> {
    served.into_iter().map(|served| (served.name, served.version)).collect()
}

fn bad(error: ConvertError) -> QueryError {
    QueryError::BadRequest { detail: error.to_string() }
}

fn malformed(detail: String) -> QueryError {
    QueryError::Internal { detail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;

    fn reader() -> Schema {
        r#"{"fields":[{"name":"v","type":"vector<f16,2>"}]}"#.parse().unwrap()
    }

    #[test]
    fn computations_come_back_as_they_went() {
        let plan = ComputePlan::new()
            .project("t")
            .operator(ComputeFunction::Dot(vec![1.5, f32::NEG_INFINITY]), "v", Some("s".to_owned()))
            .operator(ComputeFunction::Cosine(vec![0.0, -0.0]), "v", None)
            .operator(ComputeFunction::Hadamard(vec![1e-45]), "w", None)
            .operator(ComputeFunction::Count, "tags", None)
            .top_k("s", 20);
        for plan in [ComputePlan { reader: Some(reader()), ..plan.clone() }, ComputePlan::new()] {
            let options = QueryOptions { partial: true, ..QueryOptions::default() };
            for keys in [BatchKeys::Ids(vec![7, 0]), BatchKeys::Bytes(["", "a"].iter().collect())] {
                let wire = compute_to_wire("s", &keys, &plan, &options);
                let query = ComputeQuery { plan: plan.clone(), at: ComputeAt::Nodes };
                let question = Question::Compute { store: "s".to_owned(), keys, query };
                assert_eq!(compute_from_wire(wire).unwrap(), Request { question, options: options.clone() });
            }
        }
    }

    #[test]
    fn aggregations_come_back_as_they_went() {
        let compare = |comparison, operand| Predicate::Compare(comparison, operand);
        let predicate = Predicate::Or(vec![
            Predicate::And(vec![
                compare(Comparison::Ge, Operand::Whole(-5)),
                compare(Comparison::Lt, Operand::Whole(u64::MAX.into())),
            ]),
            compare(Comparison::Gt, Operand::Float(0.5)),
            compare(Comparison::Le, Operand::Text("a".to_owned())),
            compare(Comparison::Eq, Operand::Bool(true)),
            Predicate::AnyOf(vec![Operand::Whole(1)]),
        ]);
        let bucket = Bucket { name: "b".to_owned(), predicate };
        for by in [GroupBy::Value { top: 9 }, GroupBy::Bucket(vec![bucket])] {
            let plan = AggregatePlan { field: "age".to_owned(), by, reader: Some(reader()) };
            let keys = BatchKeys::Ids(vec![1]);
            let wire = aggregate_to_wire("s", &keys, &plan, &QueryOptions::default());
            let query = AggregateQuery { plan, at: ComputeAt::Nodes };
            let question = Question::Aggregate { store: "s".to_owned(), keys, query };
            assert_eq!(aggregate_from_wire(wire).unwrap().question, question);
        }
    }

    #[test]
    fn plans_that_are_none_are_refused() {
        let none = compute_from_wire(v1::ComputeRequest::default()).unwrap_err();
        assert_eq!(none.code(), ErrorCode::BadRequest);
        let odd = v1::ComputePlan { operators: vec![v1::ComputeOperator::default()], ..Default::default() };
        assert!(matches!(compute_plan_from_wire(&odd), Err(ConvertError::Unknown { .. })));
        let odd = v1::ComputePlan { reader_schema: "{".to_owned(), ..Default::default() };
        assert!(matches!(compute_plan_from_wire(&odd), Err(ConvertError::Schema { .. })));
        let mut deep =
            v1::Predicate { predicate: Some(predicate::Predicate::And(v1::Predicates::default())) };
        for _ in 0..Predicate::DEPTH_MAX {
            let predicates = vec![deep];
            deep = v1::Predicate { predicate: Some(predicate::Predicate::Or(v1::Predicates { predicates })) };
        }
        let bucket = v1::Bucket { name: "b".to_owned(), predicate: Some(deep) };
        let by = Some(By::Buckets(v1::Buckets { buckets: vec![bucket] }));
        let plan = v1::AggregatePlan { by, ..Default::default() };
        assert_eq!(aggregate_plan_from_wire(&plan), Err(ConvertError::TooDeep(Predicate::DEPTH_MAX)));
    }
}
