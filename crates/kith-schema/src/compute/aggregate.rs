//! Counts over records: how many hold each value of a field, or a value in each of some buckets.

use super::computation::in_range;
use super::predicate::{Bucket, Predicate};
use super::{ComputeError, Score};
use crate::record::{FieldView, RecordError};
use crate::{FieldType, Incompatible, Projection, Scalar, ScalarType, Schema};
use std::cmp::Ordering;

/// The most buckets of a plan.
pub const BUCKETS_MAX: usize = 1_000;

/// The most values that an answer tells of.
pub const TOP_MAX: u32 = 100_000;

/// What is counted, as the asker states it.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregatePlan {
    /// The field: of one value, or a list of them, which counts by item. A null is no value.
    pub field: String,
    /// By what.
    pub by: GroupBy,
    /// As of [`super::ComputePlan::reader`].
    pub reader: Option<Schema>,
}

/// What records are counted by.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupBy {
    /// Each value by itself.
    Value {
        /// How many values to tell of, those of the highest counts.
        top: u32,
    },
    /// Buckets, whose values may overlap.
    Bucket(Vec<Bucket>),
}

/// A plan that was checked against a schema.
#[derive(Clone, Debug)]
pub struct Aggregation {
    plan: AggregatePlan,
    /// The field alone.
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
    /// Checks `plan` against the schema of the records that it is to be run over, or the one that it brings.
    ///
    /// # Errors
    /// [`ComputeError`].
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

    /// How many buckets; `None` if each value counts by itself.
    pub fn buckets(&self) -> Option<&[Bucket]> {
        match &self.plan.by {
            GroupBy::Bucket(buckets) => Some(buckets),
            GroupBy::Value { .. } => None,
        }
    }

    /// Resolves it for records that were written under `writer`.
    ///
    /// # Errors
    /// [`Incompatible`] if the field there is of a type that does not widen to the reader's.
    pub fn over(&self, writer: &Schema) -> Result<Aggregate<'_>, Incompatible> {
        Ok(Aggregate { aggregation: self, projection: Projection::resolve(writer, &self.input)? })
    }

    /// The value that [`code`] made bytes of.
    ///
    /// # Errors
    /// What does not hold, if it made none of this type.
    pub fn value<'v>(&self, coded: &'v [u8]) -> Result<Scalar<'v>, &'static str> {
        Scalar::decode(self.scalar, coded)
    }
}

impl Aggregate<'_> {
    /// What it carries out.
    pub fn aggregation(&self) -> &Aggregation {
        self.aggregation
    }

    /// Calls `each` with every value of the field in a record.
    ///
    /// # Errors
    /// [`RecordError`] if the bytes are no record; `each` may have been called for some of its values.
    pub fn values(&self, record: &[u8], mut each: impl FnMut(Scalar<'_>)) -> Result<(), RecordError> {
        match self.projection.view(record)?.at(0)? {
            Some(FieldView::Scalar(value)) => each(value),
            Some(FieldView::List(list)) => {
                // Proven before any counts, so that a record counts whole or not at all.
                let items = || list.iter().map(|item| item.map_err(|why| self.damaged(why)));
                items().try_for_each(|item| item.map(|_| ()))?;
                items().try_for_each(|item| item.map(&mut each))?;
            }
            // The check of the plan lets nothing else through.
            Some(FieldView::Vector(_) | FieldView::Map(_)) | None => {}
        }
        Ok(())
    }

    fn damaged(&self, why: &'static str) -> RecordError {
        RecordError::DamagedField { field: self.aggregation.plan.field.clone(), why }
    }
}

impl GroupBy {
    /// The word in requests and messages.
    pub fn name(&self) -> &'static str {
        match self {
            GroupBy::Value { .. } => "count_by_value",
            GroupBy::Bucket(_) => "count_by_bucket",
        }
    }
}

/// Puts the bytes of a value into `out`: equal values have equal bytes.
pub fn code(value: Scalar<'_>, out: &mut Vec<u8>) {
    out.clear();
    match value {
        Scalar::Bool(value) => out.push(u8::from(value)),
        Scalar::I32(value) => out.extend_from_slice(&value.to_le_bytes()),
        Scalar::I64(value) | Scalar::Timestamp(value) => out.extend_from_slice(&value.to_le_bytes()),
        Scalar::U64(value) => out.extend_from_slice(&value.to_le_bytes()),
        // Adding 0.0 makes -0.0 its equal.
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
