//! Counts over records: how many contain each value of a field, or a value in each of several buckets.

use super::computation::in_range;
use super::predicate::{Bucket, Predicate};
use super::{ComputeError, Score};
use crate::record::{FieldView, RecordError};
use crate::{FieldType, Incompatible, Projection, Scalar, ScalarType, Schema};
use std::cmp::Ordering;

/// The most buckets of a plan.
pub const BUCKETS_MAX: usize = 1_000;

/// The most values of an answer.
pub const TOP_MAX: u32 = 100_000;

/// An aggregation, as the caller states it.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregatePlan {
    /// The field. It holds one value, or a list, whose items are then counted. A null counts nothing.
    pub field: String,
    /// The grouping of the counts.
    pub by: GroupBy,
    /// The schema of the caller, as in [`super::ComputePlan::reader`].
    pub reader: Option<Schema>,
}

/// The grouping of the counts.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupBy {
    /// One count per value.
    Value {
        /// The number of values to return: those with the highest counts.
        top: u32,
    },
    /// One count per bucket. Buckets may overlap.
    Bucket(Vec<Bucket>),
}

/// A plan that was checked against a schema.
#[derive(Clone, Debug)]
pub struct Aggregation {
    plan: AggregatePlan,
    /// The schema with only this field.
    input: Schema,
    scalar: ScalarType,
}

/// A checked plan over the records of one version.
#[derive(Clone, Debug)]
pub struct Aggregate<'a> {
    aggregation: &'a Aggregation,
    projection: Projection,
}

impl Aggregation {
    /// Checks `plan` against the schema of the records, or against its own if it has one.
    ///
    /// # Errors
    /// [`ComputeError`] if the plan does not fit.
    pub fn new(plan: &AggregatePlan, schema: &Schema) -> Result<Self, ComputeError> {
        let schema = plan.reader.as_ref().unwrap_or(schema);
        let index = schema.index_of(&plan.field).ok_or_else(|| ComputeError::UnknownField {
            field: plan.field.clone(),
            near: schema.nearest(&plan.field),
        })?;
        let field = schema.fields()[index].clone();
        let (FieldType::Scalar(scalar) | FieldType::List(scalar)) = field.field_type() else {
            return Err(ComputeError::WrongType {
                operator: plan.by.name(),
                field: plan.field.clone(),
                got: field.field_type(),
                needs: "one value, or a list",
            });
        };
        match &plan.by {
            GroupBy::Value { top } => {
                in_range("count_by_value.top", (*top).into(), 1..=TOP_MAX.into(), "1 to 100000")?;
            }
            GroupBy::Bucket(buckets) => check_buckets(buckets, scalar, &plan.field)?,
        }
        let input = Schema::new(vec![if field.has_default() { field } else { field.nullable() }])?;
        Ok(Self { plan: plan.clone(), input, scalar })
    }

    /// The plan.
    pub fn plan(&self) -> &AggregatePlan {
        &self.plan
    }

    /// The buckets; `None` if values are counted.
    pub fn buckets(&self) -> Option<&[Bucket]> {
        match &self.plan.by {
            GroupBy::Bucket(buckets) => Some(buckets),
            GroupBy::Value { .. } => None,
        }
    }

    /// Resolves it for records that were written under `writer`.
    ///
    /// # Errors
    /// [`Incompatible`] if the type of the field there does not widen to the reader's type.
    pub fn over(&self, writer: &Schema) -> Result<Aggregate<'_>, Incompatible> {
        Ok(Aggregate { aggregation: self, projection: Projection::resolve(writer, &self.input)? })
    }

    /// Decodes a value that [`code`] has encoded.
    ///
    /// # Errors
    /// A description of the fault, if the bytes are not a value of this type.
    pub fn value<'v>(&self, coded: &'v [u8]) -> Result<Scalar<'v>, &'static str> {
        Scalar::decode(self.scalar, coded)
    }
}

impl Aggregate<'_> {
    /// The aggregation that it runs.
    pub fn aggregation(&self) -> &Aggregation {
        self.aggregation
    }

    /// Calls `each` with every value of the field in a record.
    ///
    /// # Errors
    /// [`RecordError`] if the bytes are not a record; `each` may have been called for some of its values.
    pub fn values(&self, record: &[u8], mut each: impl FnMut(Scalar<'_>)) -> Result<(), RecordError> {
        match self.projection.view(record)?.at(0)? {
            Some(FieldView::Scalar(value)) => each(value),
            Some(FieldView::List(list)) => {
                // All items are checked before any of them counts, so that a record counts completely or not at all.
                let items = || list.iter().map(|item| item.map_err(|why| self.damaged(why)));
                items().try_for_each(|item| item.map(|_| ()))?;
                items().try_for_each(|item| item.map(&mut each))?;
            }
            // The check of the plan excludes these.
            Some(FieldView::Vector(_) | FieldView::Map(_)) | None => {}
        }
        Ok(())
    }

    fn damaged(&self, why: &'static str) -> RecordError {
        RecordError::DamagedField { field: self.aggregation.plan.field.clone(), why }
    }
}

impl GroupBy {
    /// The name in requests and messages.
    pub fn name(&self) -> &'static str {
        match self {
            GroupBy::Value { .. } => "count_by_value",
            GroupBy::Bucket(_) => "count_by_bucket",
        }
    }
}

/// Encodes a value into `out`. Equal values have equal bytes.
pub fn code(value: Scalar<'_>, out: &mut Vec<u8>) {
    out.clear();
    match value {
        Scalar::Bool(value) => out.push(u8::from(value)),
        Scalar::I32(value) => out.extend_from_slice(&value.to_le_bytes()),
        Scalar::I64(value) | Scalar::Timestamp(value) => out.extend_from_slice(&value.to_le_bytes()),
        Scalar::U64(value) => out.extend_from_slice(&value.to_le_bytes()),
        // Adding 0.0 turns -0.0 into 0.0.
        Scalar::F32(value) => out.extend_from_slice(&(value + 0.0).to_le_bytes()),
        Scalar::F64(value) => out.extend_from_slice(&(value + 0.0).to_le_bytes()),
        Scalar::Text(value) => out.extend_from_slice(value.as_bytes()),
        Scalar::Bytes(value) => out.extend_from_slice(value),
    }
}

/// The order of values of one type: numbers by size, text and bytes by bytes, false before true.
pub fn order(a: Scalar<'_>, b: Scalar<'_>) -> Ordering {
    match (a, b) {
        (Scalar::Text(a), Scalar::Text(b)) => a.cmp(b),
        (Scalar::Bytes(a), Scalar::Bytes(b)) => a.cmp(b),
        (Scalar::Bool(a), Scalar::Bool(b)) => a.cmp(&b),
        (a, b) => Score::of(a).cmp(&Score::of(b)),
    }
}

fn check_buckets(buckets: &[Bucket], scalar: ScalarType, field: &str) -> Result<(), ComputeError> {
    in_range("the number of buckets", buckets.len() as u64, 1..=BUCKETS_MAX as u64, "1 to 1000")?;
    let mut names: Vec<&str> = buckets.iter().map(|bucket| bucket.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(ComputeError::RepeatedBucket { name: pair[0].to_owned() });
    }
    let mut parts = 0;
    for bucket in buckets {
        bucket.predicate.check(scalar, field, Predicate::DEPTH_MAX, &mut parts)?;
    }
    Ok(())
}
