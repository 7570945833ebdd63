//! Computations on records: `kith compute`, `kith aggregate`, and the operations `compute` and `aggregate` of request lines.

use crate::{
    AggregateQuery, ComputeAt, ComputeQuery,
    line::{error::LineError, json::members},
};
use clap::ValueEnum;
use kith_schema::compute::{
    AggregatePlan, Bucket, Comparison, ComputeFunction, ComputePlan, GroupBy, Operand, Predicate, TopK,
};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::{Map, Value, json};

/// The names of the operations in request lines.
pub const COMPUTE: &str = "compute";
pub const AGGREGATE: &str = "aggregate";

/// The fields of the operation `compute`. Their names are a contract: `docs/queries.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeFields {
    /// The place where the computation is carried out.
    #[serde(default, skip_serializing_if = "ComputeLocation::is_nodes")]
    pub at: ComputeLocation,
    /// Fields to return unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dot: Vec<VectorFields>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cosine: Vec<VectorFields>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hadamard: Vec<VectorFields>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub count: Vec<CountFields>,
    /// Whether only the records with the best scores are returned, and how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<TopKFields>,
}

/// A vector field, and the query vector for the computation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorFields {
    pub field: String,
    #[serde(deserialize_with = "singles")]
    pub query: Vec<f32>,
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountFields {
    pub field: String,
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopKFields {
    pub by: String,
    pub k: u32,
}

/// The fields of the operation `aggregate`. Their names are a contract: `docs/queries.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AggregateFields {
    /// The place where records are counted.
    #[serde(default, skip_serializing_if = "ComputeLocation::is_nodes")]
    pub at: ComputeLocation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count_by_value: Option<ByValueFields>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count_by_bucket: Option<ByBucketFields>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByValueFields {
    pub field: String,
    pub top: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByBucketFields {
    pub field: String,
    pub buckets: Vec<BucketFields>,
}

/// A JSON object with a name and, as further members, the fields of a predicate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub struct BucketFields(pub Bucket);

/// Conditions, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredicateFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    eq: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gt: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ge: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lt: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    le: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    any_of: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    and: Option<Vec<PredicateFields>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    or: Option<Vec<PredicateFields>>,
}

/// The place where a computation on records is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComputeLocation {
    /// On the nodes
    #[default]
    Nodes,
    /// In this process, which fetches whole records
    Client,
}

impl ComputeLocation {
    fn is_nodes(&self) -> bool {
        *self == ComputeLocation::Nodes
    }

    pub fn inner(self) -> ComputeAt {
        match self {
            ComputeLocation::Nodes => ComputeAt::Nodes,
            ComputeLocation::Client => ComputeAt::Client,
        }
    }
}

impl ComputeFields {
    /// Converts a plan that nodes carry out.
    pub fn of(plan: &ComputePlan) -> Self {
        let top_k = plan.top_k.as_ref().map(|top_k| TopKFields { by: top_k.by.clone(), k: top_k.k });
        let mut fields = Self { project: plan.project.clone(), top_k, ..Self::default() };
        for operator in &plan.operators {
            let (field, name) = (operator.field.clone(), Some(operator.name.clone()));
            let (vectors, query) = match &operator.function {
                ComputeFunction::Dot(query) => (&mut fields.dot, query.clone()),
                ComputeFunction::Cosine(query) => (&mut fields.cosine, query.clone()),
                ComputeFunction::Hadamard(query) => (&mut fields.hadamard, query.clone()),
                ComputeFunction::Count => {
                    fields.count.push(CountFields { field, name });
                    continue;
                }
            };
            vectors.push(VectorFields { field, query, name });
        }
        fields
    }

    /// Converts it to a [`ComputeQuery`].
    pub fn query(&self) -> ComputeQuery {
        type Make = fn(Vec<f32>) -> ComputeFunction;
        let vectors: [(&[VectorFields], Make); 3] = [
            (&self.dot, ComputeFunction::Dot),
            (&self.cosine, ComputeFunction::Cosine),
            (&self.hadamard, ComputeFunction::Hadamard),
        ];
        let mut plan = ComputePlan { project: self.project.clone(), ..ComputePlan::new() };
        for (of, make) in vectors {
            for vector in of {
                plan = plan.operator(make(vector.query.clone()), vector.field.as_str(), vector.name.clone());
            }
        }
        for count in &self.count {
            plan = plan.operator(ComputeFunction::Count, count.field.as_str(), count.name.clone());
        }
        plan.top_k = self.top_k.as_ref().map(|top_k| TopK { by: top_k.by.clone(), k: top_k.k });
        ComputeQuery { plan, at: self.at.inner() }
    }
}

impl AggregateFields {
    /// Converts a plan that nodes carry out.
    pub fn of(plan: &AggregatePlan) -> Self {
        let field = plan.field.clone();
        match &plan.by {
            GroupBy::Value { top } => {
                Self { count_by_value: Some(ByValueFields { field, top: *top }), ..Self::default() }
            }
            GroupBy::Bucket(buckets) => {
                let buckets = buckets.iter().cloned().map(BucketFields).collect();
                Self { count_by_bucket: Some(ByBucketFields { field, buckets }), ..Self::default() }
            }
        }
    }

    /// Converts it to an [`AggregateQuery`].
    ///
    /// # Errors
    /// `bad_request` unless there is exactly one of `count_by_value` and `count_by_bucket`.
    pub fn query(&self) -> Result<AggregateQuery, LineError> {
        let (field, by) = match (&self.count_by_value, &self.count_by_bucket) {
            (Some(ByValueFields { field, top }), None) => (field, GroupBy::Value { top: *top }),
            (None, Some(ByBucketFields { field, buckets })) => {
                (field, GroupBy::Bucket(buckets.iter().map(|bucket| bucket.0.clone()).collect()))
            }
            _ => {
                return Err(LineError::bad_request("give either `count_by_value` or `count_by_bucket`"));
            }
        };
        let plan = AggregatePlan { field: field.clone(), by, reader: None };
        Ok(AggregateQuery { plan, at: self.at.inner() })
    }
}

impl TryFrom<Map<String, Value>> for BucketFields {
    type Error = String;

    fn try_from(mut fields: Map<String, Value>) -> Result<Self, String> {
        let name = match fields.remove("name") {
            Some(Value::String(name)) => name,
            Some(_) => return Err("the `name` of a bucket is text".to_owned()),
            None => return Err("a bucket has a `name`".to_owned()),
        };
        let predicate = predicate_of(Value::Object(fields))?;
        Ok(BucketFields(Bucket { name, predicate }))
    }
}

impl From<BucketFields> for Map<String, Value> {
    fn from(BucketFields(Bucket { name, predicate }): BucketFields) -> Self {
        let mut fields = members(&PredicateFields::of(&predicate));
        fields.insert("name".to_owned(), Value::from(name));
        fields
    }
}

/// Reads a predicate from its JSON object.
///
/// # Errors
/// A description of what is wrong with the object.
pub fn predicate_of(json: Value) -> Result<Predicate, String> {
    let fields: PredicateFields = serde_json::from_value(json).map_err(|error| error.to_string())?;
    fields.predicate(Predicate::DEPTH_MAX)
}

impl PredicateFields {
    fn of(predicate: &Predicate) -> Self {
        let several = |inner: &[Predicate]| Some(inner.iter().map(Self::of).collect());
        let mut fields = Self::default();
        match predicate {
            Predicate::Compare(comparison, operand) => {
                let bound = match comparison {
                    Comparison::Eq => &mut fields.eq,
                    Comparison::Gt => &mut fields.gt,
                    Comparison::Ge => &mut fields.ge,
                    Comparison::Lt => &mut fields.lt,
                    Comparison::Le => &mut fields.le,
                };
                *bound = Some(value_of(operand));
            }
            Predicate::AnyOf(operands) => fields.any_of = Some(operands.iter().map(value_of).collect()),
            Predicate::And(inner) => fields.and = several(inner),
            Predicate::Or(inner) => fields.or = several(inner),
        }
        fields
    }

    fn predicate(&self, depth: usize) -> Result<Predicate, String> {
        let too_deep = || format!("a condition is nested deeper than {}", Predicate::DEPTH_MAX);
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        let compared = [&self.eq, &self.gt, &self.ge, &self.lt, &self.le];
        let mut all = Vec::new();
        for (operand, (comparison, _)) in compared.into_iter().zip(Comparison::ALL) {
            if let Some(operand) = operand {
                all.push(Predicate::Compare(comparison, operand_of(operand)?));
            }
        }
        let several = |inner: &[PredicateFields]| {
            inner.iter().map(|inner| inner.predicate(depth)).collect::<Result<Vec<_>, _>>()
        };
        if let Some(operands) = &self.any_of {
            all.push(Predicate::AnyOf(operands.iter().map(operand_of).collect::<Result<_, _>>()?));
        }
        if let Some(inner) = &self.and {
            all.push(Predicate::And(several(inner)?));
        }
        if let Some(inner) = &self.or {
            all.push(Predicate::Or(several(inner)?));
        }
        match all.len() {
            0 => Err("a condition is one of `eq`, `gt`, `ge`, `lt`, `le`, `any_of`, `and`, `or`".to_owned()),
            1 => Ok(all.remove(0)),
            _ => Ok(Predicate::And(all)),
        }
    }
}

fn value_of(operand: &Operand) -> Value {
    match operand {
        Operand::Bool(value) => json!(value),
        Operand::Whole(value) => json!(value),
        Operand::Float(value) => json!(value),
        Operand::Text(text) => json!(text),
    }
}

fn operand_of(value: &Value) -> Result<Operand, String> {
    match value {
        Value::Bool(value) => Ok(Operand::Bool(*value)),
        Value::String(text) => Ok(Operand::Text(text.clone())),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), _, _) => Ok(Operand::Whole(whole.into())),
            (_, Some(whole), _) => Ok(Operand::Whole(whole.into())),
            (_, _, Some(float)) => Ok(Operand::Float(float)),
            (None, None, None) => Err(format!("{number} is not a number that records can hold")),
        },
        _ => Err("values are compared with a number, text or bool".to_owned()),
    }
}

/// Reads the numbers of a query vector in single precision.
fn singles<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
    let numbers = Vec::<f64>::deserialize(deserializer)?;
    single_precision(&numbers).map_err(D::Error::custom)
}

/// Converts numbers to single precision.
///
/// # Errors
/// If a number is too large for single precision.
pub fn single_precision(numbers: &[f64]) -> Result<Vec<f32>, String> {
    let single = |&number: &f64| match number as f32 {
        single if single.is_finite() => Ok(single),
        _ => Err(format!("{number} is beyond single precision")),
    };
    numbers.iter().map(single).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;

    #[test]
    fn plans_are_read_as_the_contract_has_them() {
        let fields: ComputeFields = serde_json::from_value(json!({
            "project": ["t"],
            "count": [{"field": "tags", "as": "n"}],
            "hadamard": [{"field": "v", "query": [1]}],
            "dot": [{"field": "v", "query": [0.5, -1], "as": "score"}],
            "cosine": [{"field": "v", "query": []}],
            "top_k": {"by": "score", "k": 20},
        }))
        .unwrap();
        let ComputeQuery { plan, at } = fields.query();
        assert_eq!(at, ComputeAt::Nodes);
        let names: Vec<&str> = plan.operators.iter().map(|operator| operator.name.as_str()).collect();
        assert_eq!(names, ["score", "cosine_v", "hadamard_v", "n"]);
        assert_eq!(plan.operators[0].function, ComputeFunction::Dot(vec![0.5, -1.0]));
        assert_eq!(
            (plan.project, plan.top_k),
            (vec!["t".to_owned()], Some(TopK { by: "score".into(), k: 20 }))
        );
        let refused = |json: Value| serde_json::from_value::<ComputeFields>(json).unwrap_err().to_string();
        let large = json!({"dot": [{"field": "v", "query": [1e39]}]});
        assert!(refused(large).contains("single precision"));
        let odd = json!({"dot": [{"field": "v", "query": [1], "name": "x"}]});
        assert!(refused(odd).contains("unknown field `name`"));
    }

    #[test]
    fn buckets_are_predicates_with_a_name() {
        let of = |json: Value| serde_json::from_value::<BucketFields>(json).map(|bucket| bucket.0);
        let both = of(json!({"name": "b", "ge": 18, "lt": 30.5})).unwrap();
        let expected = Predicate::And(vec![
            Predicate::Compare(Comparison::Ge, Operand::Whole(18)),
            Predicate::Compare(Comparison::Lt, Operand::Float(30.5)),
        ]);
        assert_eq!(both, Bucket { name: "b".to_owned(), predicate: expected });
        let nested = of(json!({"name": "b", "or": [{"any_of": ["a", true]}, {"eq": u64::MAX}]})).unwrap();
        let expected = Predicate::Or(vec![
            Predicate::AnyOf(vec![Operand::Text("a".to_owned()), Operand::Bool(true)]),
            Predicate::Compare(Comparison::Eq, Operand::Whole(u64::MAX.into())),
        ]);
        assert_eq!(nested.predicate, expected);
        for odd in [
            json!({"name": "b"}),
            json!({"ge": 1}),
            json!({"name": "b", "more": 1}),
            json!({"name": "b", "eq": []}),
        ] {
            assert!(of(odd.clone()).is_err(), "{odd}");
        }
    }

    #[test]
    fn one_thing_is_counted_by() {
        let code = |json: Value| {
            serde_json::from_value::<AggregateFields>(json).unwrap().query().map_err(|f| f.code)
        };
        let by_value = json!({"field": "f", "top": 3});
        assert!(code(json!({"count_by_value": by_value})).is_ok());
        assert_eq!(code(json!({})).unwrap_err(), ErrorCode::BadRequest);
        let by_bucket = json!({"field": "f", "buckets": []});
        let both = json!({"count_by_value": by_value, "count_by_bucket": by_bucket});
        assert_eq!(code(both).unwrap_err(), ErrorCode::BadRequest);
    }
}
