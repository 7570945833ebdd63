//! Plans, built step by step.

use crate::{RouterClient, Session};
use kith_api::{AggregateAnswer, AggregateQuery, ComputeAnswer, ComputeAt, ComputeQuery};
use kith_api::{BatchKeys, BatchStream, QueryError, QueryOptions, Service};
use kith_schema::{
    Schema,
    compute::{AggregatePlan, Bucket, ComputeFunction, GroupBy, Predicate},
};

/// A computation under way to be asked: `client.compute("pages").project("title").dot("embed", q).top_k("dot_embed", 20).execute(keys)`.
///
/// A value that is worked out is called `<function>_<field>`, unless [`ComputeBuilder::named`] says otherwise.
#[must_use = "nothing is asked before `execute`"]
pub struct ComputeBuilder<'a> {
    service: &'a dyn Service,
    store: String,
    query: ComputeQuery,
    options: QueryOptions,
}

/// An aggregation under way to be asked.
#[must_use = "nothing is asked before it says what to count by"]
pub struct AggregateBuilder<'a> {
    service: &'a dyn Service,
    store: String,
    at: ComputeAt,
    options: QueryOptions,
}

impl<'a> ComputeBuilder<'a> {
    /// Nothing yet, of records of `store`.
    pub fn new(service: &'a dyn Service, store: impl Into<String>) -> Self {
        let (query, options) = (ComputeQuery::default(), QueryOptions::default());
        Self { service, store: store.into(), query, options }
    }

    /// And a field as it is.
    pub fn project(mut self, field: impl Into<String>) -> Self {
        self.query.plan.project.push(field.into());
        self
    }

    /// And the dot product of a vector field with `query`.
    pub fn dot(self, field: impl Into<String>, query: impl Into<Vec<f32>>) -> Self {
        self.operator(ComputeFunction::Dot(query.into()), field)
    }

    /// And the cosine of a vector field and `query`; null if either is all zeros.
    pub fn cosine(self, field: impl Into<String>, query: impl Into<Vec<f32>>) -> Self {
        self.operator(ComputeFunction::Cosine(query.into()), field)
    }

    /// And the products of a vector field with `query`, element by element.
    pub fn hadamard(self, field: impl Into<String>, query: impl Into<Vec<f32>>) -> Self {
        self.operator(ComputeFunction::Hadamard(query.into()), field)
    }

    /// And how many items a list, map or vector has.
    pub fn count(self, field: impl Into<String>) -> Self {
        self.operator(ComputeFunction::Count, field)
    }

    fn operator(mut self, function: ComputeFunction, field: impl Into<String>) -> Self {
        self.query.plan = self.query.plan.operator(function, field, None);
        self
    }

    /// Calls what was asked for last so.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        if let Some(last) = self.query.plan.operators.last_mut() {
            last.name = name.into();
        }
        self
    }

    /// Only the `k` records with the greatest `by`, a value that is worked out or else a field of the records.
    pub fn top_k(mut self, by: impl Into<String>, k: u32) -> Self {
        self.query.plan = self.query.plan.top_k(by, k);
        self
    }

    /// Asks for fields by this schema, not by that of the version that answers: fields that the version does not have are defaults, else null.
    pub fn with_schema(mut self, reader: Schema) -> Self {
        self.query.plan.reader = Some(reader);
        self
    }

    /// Where records are worked on.
    pub fn at(mut self, at: ComputeAt) -> Self {
        self.query.at = at;
        self
    }

    /// Deadline, partial answers and the like.
    pub fn options(mut self, options: QueryOptions) -> Self {
        self.options = options;
        self
    }

    /// Asks it of the records of these keys, whose results are handed on as they arrive; without [`ComputeBuilder::top_k`].
    pub fn stream<'s>(&'s self, keys: &'s BatchKeys) -> BatchStream<'s> {
        self.service.read_compute_stream(&self.store, keys, &self.query, &self.options)
    }

    /// Asks it of the records of these keys.
    ///
    /// # Errors
    /// As [`Service::read_compute`].
    pub async fn execute(self, keys: impl Into<BatchKeys>) -> Result<ComputeAnswer, QueryError> {
        self.service.read_compute(&self.store, &keys.into(), &self.query, &self.options).await
    }
}

impl<'a> AggregateBuilder<'a> {
    /// Of records of `store`.
    pub fn new(service: &'a dyn Service, store: impl Into<String>) -> Self {
        Self { service, store: store.into(), at: ComputeAt::default(), options: QueryOptions::default() }
    }

    /// Where records are counted.
    pub fn at(mut self, at: ComputeAt) -> Self {
        self.at = at;
        self
    }

    /// Deadline, partial answers and the like.
    pub fn options(mut self, options: QueryOptions) -> Self {
        self.options = options;
        self
    }

    /// How often each value of `field` occurs; all counts are merged before the `top` highest are told.
    ///
    /// # Errors
    /// As [`Service::read_aggregate`].
    pub async fn count_by_value(
        self,
        field: impl Into<String>,
        top: u32,
        keys: impl Into<BatchKeys>,
    ) -> Result<(AggregatePlan, AggregateAnswer), QueryError> {
        self.execute(field.into(), GroupBy::Value { top }, keys.into()).await
    }

    /// How many values of `field` satisfy each predicate.
    ///
    /// # Errors
    /// As [`Service::read_aggregate`].
    pub async fn count_by_bucket(
        self,
        field: impl Into<String>,
        buckets: impl IntoIterator<Item = (String, Predicate)>,
        keys: impl Into<BatchKeys>,
    ) -> Result<(AggregatePlan, AggregateAnswer), QueryError> {
        let buckets = buckets.into_iter().map(|(name, predicate)| Bucket { name, predicate });
        self.execute(field.into(), GroupBy::Bucket(buckets.collect()), keys.into()).await
    }

    async fn execute(
        self,
        field: String,
        by: GroupBy,
        keys: BatchKeys,
    ) -> Result<(AggregatePlan, AggregateAnswer), QueryError> {
        let query = AggregateQuery { plan: AggregatePlan { field, by, reader: None }, at: self.at };
        let answer = self.service.read_aggregate(&self.store, &keys, &query, &self.options).await?;
        Ok((query.plan, answer))
    }
}

impl Session {
    /// A computation over records of `store`.
    pub fn compute(&self, store: impl Into<String>) -> ComputeBuilder<'_> {
        ComputeBuilder::new(self, store)
    }

    /// Counts over records of `store`.
    pub fn aggregate(&self, store: impl Into<String>) -> AggregateBuilder<'_> {
        AggregateBuilder::new(self, store)
    }
}

impl RouterClient {
    /// A computation over records of `store`.
    pub fn compute(&self, store: impl Into<String>) -> ComputeBuilder<'_> {
        ComputeBuilder::new(self, store)
    }

    /// Counts over records of `store`.
    pub fn aggregate(&self, store: impl Into<String>) -> AggregateBuilder<'_> {
        AggregateBuilder::new(self, store)
    }
}
