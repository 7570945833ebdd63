//! Streams directly from the nodes.

use crate::{
    Session,
    executor::DeliveryEnd,
    session::{RESTARTS_MAX, Run},
    values::{BatchRead, WantedForm},
};
use kith_client::compute::compute_stream_here;
use kith_operators::{Deliveries, Part, RecordError, Records, Value};
use kith_query::{
    BatchPiece, ComputeAt, FanOut, Outlet, QueryError, Question, Request, StreamFailure, StreamFooter,
    StreamItem, StreamStatus,
};
use kith_routing::execution::Failure;
use kith_schema::{Schema, SchemaId};
use kith_topology::ValueStore;
use kith_types::FanOutKind;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Passes records on, and counts them.
pub(crate) struct RecordDelivery {
    outlet: Outlet,
    books: Deliveries,
    known: Arc<ValueStore>,
    /// The schema of the results, if this is a computation.
    result: Option<Arc<Schema>>,
    /// The most bytes that all values together may have.
    bytes_max: u64,
}

impl RecordDelivery {
    /// Passes on the answer of a node.
    ///
    /// # Errors
    /// If the stream gets too large, or if a key was handed on before, which is a bug.
    pub async fn part(&mut self, part: Part) -> Result<(), QueryError> {
        let Part { positions, value: Value::Records(records) } = part else {
            return Err(internal("a batch read was answered by something else"));
        };
        if positions.is_empty() {
            return Ok(());
        }
        self.books.note(&positions, &records).map_err(|error| internal(&error.to_string()))?;
        if self.bytes_max < self.books.value_bytes() {
            return Err(QueryError::TooLarge { max: self.bytes_max });
        }
        let (version, schema, result) = (self.known.pinned.version(), self.schema(), self.result.clone());
        self.outlet.put(StreamItem::Piece(BatchPiece { positions, records, version, schema, result })).await;
        Ok(())
    }

    fn schema(&self) -> Option<SchemaId> {
        self.result.as_ref().map_or(self.known.schema, |result| Some(result.id()))
    }

    /// Passes on the keys that have no answer or only an error.
    async fn rest(&mut self, handed: &DeliveryEnd) -> Result<(), QueryError> {
        let positions = self.books.rest();
        let mut records = Records::unanswered(positions.len());
        for (index, position) in positions.iter().enumerate() {
            if handed.damaged.contains(position) {
                records.fail(index, RecordError::Damaged);
            }
        }
        self.part(Part { positions, value: Value::Records(records) }).await
    }

    /// Asks for the keys, and passes on the answers.
    async fn deliver(
        &mut self,
        run: &mut Run<'_>,
        fan_out: FanOut,
        keys: usize,
        store: &str,
    ) -> Result<DeliveryEnd, QueryError> {
        if keys == 0 {
            return Ok(DeliveryEnd::default());
        }
        let required = self.known.required_reads;
        if required <= 1 {
            return run.ask_in_parts(&fan_out, self).await;
        }
        // Answers that must agree are compared once all have arrived.
        let value = run.ask_agreeing(&fan_out, required).await?;
        let disagreements = value.records().map_or(0, Records::disagreements);
        if 0 < disagreements && !run.options().partial {
            return Err(QueryError::Disagreement { store: store.to_owned(), keys: disagreements });
        }
        let positions = (0..keys as u32).collect();
        self.part(Part { positions, value }).await?;
        Ok(DeliveryEnd { failures: run.take_failures(), ..DeliveryEnd::default() })
    }
}

/// Passes on values or computed results as nodes send them.
///
/// # Errors
/// Those of [`kith_query::Service::stream`].
pub(crate) async fn stream_answer(
    session: &Session,
    request: &Request,
    outlet: &Outlet,
) -> Result<(), QueryError> {
    let Request { question, options } = request;
    match question {
        Question::Values { store, keys } => {
            BatchRead { session, store, keys, wanted: WantedForm::Values, options }.stream_into(outlet).await
        }
        Question::Compute { store, keys, query } if query.at == ComputeAt::Client => {
            query.check_stream()?;
            outlet.put_all(compute_stream_here(session, store, keys, &query.plan, options)).await
        }
        Question::Compute { store, keys, query } => {
            query.check_stream()?;
            let wanted = WantedForm::Compute(query);
            BatchRead { session, store, keys, wanted, options }.stream_into(outlet).await
        }
        other => other.check_stream(),
    }
}

impl BatchRead<'_> {
    /// Runs one fan-out over the keys. Runs it again on a newer version if the nodes no longer have the pinned version and
    /// nothing was handed on yet.
    async fn stream_into(self, outlet: &Outlet) -> Result<(), QueryError> {
        let Self { session, store, keys, wanted, .. } = self;
        let started = Instant::now();
        session.check_batch(keys)?;
        let mut restarts = 0;
        loop {
            let (mut run, known, checked) = self.begin().await?;
            let books = Deliveries::new(keys.len());
            let bytes_max = session.settings().answer_bytes_max;
            let plan = checked.operator(wanted, 1 < known.required_reads);
            let result = checked.result().cloned().map(Arc::new);
            let mut handing = RecordDelivery { outlet: outlet.clone(), books, known, result, bytes_max };
            let (purpose, kind) = (wanted.purpose(), FanOutKind::NonUnion);
            let fan_out = FanOut { purpose, kind, scope: keys.scope(), plan };
            let error = match handing.deliver(&mut run, fan_out, keys.len(), store).await {
                Ok(handed) => {
                    handing.rest(&handed).await?;
                    let footer = footer(&handing, handed, run, started.elapsed());
                    handing.outlet.put(StreamItem::Footer(Box::new(footer))).await;
                    return Ok(());
                }
                Err(error) => error,
            };
            let several = 1 < handing.known.required_reads;
            let may_begin_again = restarts < RESTARTS_MAX && handing.books.is_empty();
            if !may_begin_again || !run.begins_again(&error, several).await {
                return Err(error);
            }
            restarts += 1;
        }
    }
}

fn footer(handing: &RecordDelivery, handed: DeliveryEnd, run: Run<'_>, total: Duration) -> StreamFooter {
    let counts = handing.books.counts();
    StreamFooter {
        status: StreamStatus::of(&counts),
        counts,
        failures: handed.failures.into_iter().map(failure_of).collect(),
        version: handing.known.pinned.version(),
        schema: handing.schema(),
        crc32c: None,
        total,
        service: Duration::from_micros(handed.service_us),
        profile: run.into_trace().finish(),
    }
}

fn internal(detail: &str) -> QueryError {
    QueryError::Internal { detail: detail.to_owned() }
}

fn failure_of(failure: Failure) -> StreamFailure {
    StreamFailure {
        partitions: failure.partitions.iter().map(|partition| partition.0).collect(),
        keys: failure.keys.into(),
        code: failure.code,
        nodes: failure.tried.iter().map(|node| node.0).collect(),
    }
}
