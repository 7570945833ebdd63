//! Streams straight from the nodes.

use super::{BatchPiece, BatchStream, Outlet, StreamFailure, StreamFooter, StreamItem, StreamStatus, driven};
use crate::{
    BatchKeys, QueryError, QueryOptions, Run, Session, executor::Handed, session::RESTARTS_MAX,
    topology::ValueStore,
};
use kith_ops::{Deliveries, FanOut, Operator, Part, RecordError, Records, Value};
use kith_types::FanOutKind;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Hands records on, and keeps the books of it.
pub(crate) struct Handing {
    outlet: Outlet,
    books: Deliveries,
    known: Arc<ValueStore>,
    /// How many bytes all values may have.
    bytes_max: u64,
}

impl Handing {
    /// Hands on what a node answered.
    ///
    /// # Errors
    /// If the stream gets too large; if a key was handed on before, which is a defect.
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
        let (version, schema) = (self.known.pinned.version, self.known.schema);
        self.outlet.put(StreamItem::Piece(BatchPiece { positions, records, version, schema })).await;
        Ok(())
    }

    /// Hands on what has no answer, or an error for one.
    async fn rest(&mut self, handed: &Handed) -> Result<(), QueryError> {
        let positions = self.books.rest();
        let mut records = Records::unanswered(positions.len());
        for (index, position) in positions.iter().enumerate() {
            if handed.damaged.contains(position) {
                records.fail(index, RecordError::Damaged);
            }
        }
        self.part(Part { positions, value: Value::Records(records) }).await
    }
}

impl Session {
    /// The values of keys as nodes send them.
    pub(crate) fn stream<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        options: &'a QueryOptions,
    ) -> BatchStream<'a> {
        driven(|outlet| self.stream_into(store, keys, options, outlet))
    }

    /// One fan-out over the keys; again on a newer version if the nodes no longer have the one that it pinned and nothing of it
    /// was handed on.
    async fn stream_into(
        &self,
        store: &str,
        keys: &BatchKeys,
        options: &QueryOptions,
        mut outlet: Outlet,
    ) -> Result<(), QueryError> {
        let started = Instant::now();
        self.check_batch(keys)?;
        let mut restarts = 0;
        loop {
            let topology = self.topology();
            let known = Arc::clone(topology.store(store)?);
            keys.check_type(store, known.key)?;
            let mut run = self.begin_at(topology, &known.pinned, options)?;
            let books = Deliveries::new(keys.len());
            let bytes_max = self.settings().answer_bytes_max;
            let mut handing = Handing { outlet, books, known, bytes_max };
            let error = match run.hand_on(keys, store, &mut handing).await {
                Ok(handed) => {
                    handing.rest(&handed).await?;
                    let footer = footer(&handing, handed, run, started.elapsed());
                    handing.outlet.put(StreamItem::Footer(Box::new(footer))).await;
                    return Ok(());
                }
                Err(error) => error,
            };
            match error {
                QueryError::VersionUnavailable { .. }
                    if restarts < RESTARTS_MAX && handing.books.is_empty() =>
                {
                    run.wait_for_newer().await;
                }
                // The only replica of a share went away meanwhile; another share may have had one to spare.
                QueryError::PartitionsUnavailable { .. }
                    if 1 < handing.known.required_reads
                        && restarts < RESTARTS_MAX
                        && handing.books.is_empty() => {}
                error => return Err(error),
            }
            restarts += 1;
            outlet = handing.outlet;
        }
    }
}

impl Run<'_> {
    async fn hand_on(
        &mut self,
        keys: &BatchKeys,
        store: &str,
        handing: &mut Handing,
    ) -> Result<Handed, QueryError> {
        if keys.is_empty() {
            return Ok(Handed::default());
        }
        let (kind, plan) = (FanOutKind::NonUnion, Operator::Lookup);
        let fan_out = FanOut { purpose: "values", kind, scope: keys.scope(), plan };
        let required = handing.known.required_reads;
        if required <= 1 {
            return self.ask_in_parts(&fan_out, handing).await;
        }
        // Answers that must agree are compared when all are here.
        let value = self.ask_agreeing(&fan_out, required).await?;
        let disagreements = value.records().map_or(0, Records::disagreements);
        if 0 < disagreements && !self.is_partial_wanted() {
            return Err(QueryError::Disagreement { store: store.to_owned(), keys: disagreements });
        }
        let positions = (0..keys.len() as u32).collect();
        handing.part(Part { positions, value }).await?;
        Ok(Handed { failures: self.take_failures(), ..Handed::default() })
    }
}

fn footer(handing: &Handing, handed: Handed, run: Run<'_>, total: Duration) -> StreamFooter {
    let counts = handing.books.counts();
    StreamFooter {
        status: StreamStatus::of(&counts),
        counts,
        failures: handed.failures.into_iter().map(StreamFailure::of).collect(),
        version: handing.known.pinned.version,
        schema: handing.known.schema,
        crc32c: None,
        total,
        service: Duration::from_micros(handed.service_us),
        profile: run.into_trace().finish(),
    }
}

fn internal(detail: &str) -> QueryError {
    QueryError::Internal { detail: detail.to_owned() }
}
