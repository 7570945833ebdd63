//! Builders of computations and aggregations.

use kith_query::{
    AggregateAnswer, AggregateQuery, BatchKeys, BatchStream, ComputeAnswer, ComputeAt, ComputeQuery,
    QueryError, QueryOptions, Service,
};
use kith_schema::{
    Schema,
    compute::{AggregatePlan, Bucket, ComputeFunction, GroupBy, Predicate},
};

/// Builds a computation:
/// `ComputeBuilder::new(&client, "pages").project("title").dot("embed", q).top_k("dot_embed", 20).execute(keys)`.
///
/// A computed value is named `<function>_<field>`, unless [`ComputeBuilder::named`] gives it another name.
#[must_use = "nothing is asked before `execute`"]
pub struct ComputeBuilder<'a> {
    service: &'a dyn Service,
    store: String,
    query: ComputeQuery,
    options: QueryOptions,
}

/// Builds an aggregation.
#[must_use = "nothing is asked before it says what to count by"]
pub struct AggregateBuilder<'a> {
    service: &'a dyn Service,
    store: String,
    at: ComputeAt,
    options: QueryOptions,
}

impl<'a> ComputeBuilder<'a> {
    /// Starts an empty computation over records of `store`.
    pub fn new(service: &'a dyn Service, store: impl Into<String>) -> Self {
        let (query, options) = (ComputeQuery::default(), QueryOptions::default());
        Self { service, store: store.into(), query, options }
    }

    /// Adds a field to the result, unchanged.
    pub fn project(mut self, field: impl Into<String>) -> Self {
        self.query.plan.project.push(field.into());
        self
    }

    /// Adds the dot product of a vector field and `query`.
    pub fn dot(self, field: impl Into<String>, query: impl Into<Vec<f32>>) -> Self {
        self.operator(ComputeFunction::Dot(query.into()), field)
    }

    /// Adds the cosine of a vector field and `query`; null if either is all zeros.
    pub fn cosine(self, field: impl Into<String>, query: impl Into<Vec<f32>>) -> Self {
        self.operator(ComputeFunction::Cosine(query.into()), field)
    }

    /// Adds the element-wise product of a vector field and `query`.
    pub fn hadamard(self, field: impl Into<String>, query: impl Into<Vec<f32>>) -> Self {
        self.operator(ComputeFunction::Hadamard(query.into()), field)
    }

    /// Adds the number of items of a list, map or vector field.
    pub fn count(self, field: impl Into<String>) -> Self {
        self.operator(ComputeFunction::Count, field)
    }

    fn operator(mut self, function: ComputeFunction, field: impl Into<String>) -> Self {
        self.query.plan = self.query.plan.operator(function, field, None);
        self
    }

    /// Names the value that was added last.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        if let Some(last) = self.query.plan.operators.last_mut() {
            last.name = name.into();
        }
        self
    }

    /// Keeps only the `k` records with the greatest `by`, which is a computed value or else a field of the records.
    pub fn top_k(mut self, by: impl Into<String>, k: u32) -> Self {
        self.query.plan = self.query.plan.top_k(by, k);
        self
    }

    /// Reads fields by this schema instead of the schema of the version that answers. Fields that the version lacks get
    /// their default, or null without one.
    pub fn with_schema(mut self, reader: Schema) -> Self {
        self.query.plan.reader = Some(reader);
        self
    }

    /// Sets whether nodes or this process compute.
    pub fn at(mut self, at: ComputeAt) -> Self {
        self.query.at = at;
        self
    }

    /// Sets the deadline, partial answers and other options.
    pub fn options(mut self, options: QueryOptions) -> Self {
        self.options = options;
        self
    }

    /// Runs the computation on the records of `keys`, and returns results as they arrive. Not possible with
    /// [`ComputeBuilder::top_k`].
    pub fn stream<'s>(&'s self, keys: &'s BatchKeys) -> BatchStream<'s> {
        self.service.read_compute_stream(&self.store, keys, &self.query, &self.options)
    }

    /// Runs the computation on the records of `keys`.
    ///
    /// # Errors
    /// Those of [`Service::read_compute`].
    pub async fn execute(self, keys: impl Into<BatchKeys>) -> Result<ComputeAnswer, QueryError> {
        self.service.read_compute(&self.store, &keys.into(), &self.query, &self.options).await
    }
}

impl<'a> AggregateBuilder<'a> {
    /// Starts an aggregation over records of `store`.
    pub fn new(service: &'a dyn Service, store: impl Into<String>) -> Self {
        Self { service, store: store.into(), at: ComputeAt::default(), options: QueryOptions::default() }
    }

    /// Sets whether nodes or this process count.
    pub fn at(mut self, at: ComputeAt) -> Self {
        self.at = at;
        self
    }

    /// Sets the deadline, partial answers and other options.
    pub fn options(mut self, options: QueryOptions) -> Self {
        self.options = options;
        self
    }

    /// Counts how often each value of `field` occurs. The counts of all nodes are merged before the `top` highest are
    /// chosen.
    ///
    /// # Errors
    /// Those of [`Service::read_aggregate`].
    pub async fn count_by_value(
        self,
        field: impl Into<String>,
        top: u32,
        keys: impl Into<BatchKeys>,
    ) -> Result<(AggregatePlan, AggregateAnswer), QueryError> {
        self.execute(field.into(), GroupBy::Value { top }, keys.into()).await
    }

    /// Counts how many values of `field` satisfy each predicate.
    ///
    /// # Errors
    /// Those of [`Service::read_aggregate`].
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
