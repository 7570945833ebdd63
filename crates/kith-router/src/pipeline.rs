//! The steps that every request takes through a router, over every protocol, whether its answer is whole or a stream: it is
//! admitted, recorded, run, noted in metrics and the slow-query log, and charged to the store's quota.
//!
//! The types enforce the order: only an [`Entered`] request becomes a [`Passage`], and only a passage returns an answer.
//! Rights are checked before, for all methods alike (`security::rights`).

use super::{
    admission::{Admission, Admitted, refused},
    counters::{RouterCounters, query_failed},
    record::Recorder,
    slow_log::SlowLog,
};
use kith_api::{
    AggregateAnswer, Answered, BatchAnswer, BatchKeys, ComputeAnswer, QueryError, StreamFooter, StreamStatus,
};
use kith_client::topology::Topology;
use kith_process::freshness::Freshness;
use kith_types::ErrorCode;
use kith_wire::v1;
use serde_json::Value;
use std::{sync::Arc, time::Instant};

/// The parts of a router that every request passes.
pub(super) struct Pipeline {
    pub admission: Admission,
    pub recorder: Option<Recorder>,
    pub slow_log: SlowLog,
    pub counters: Arc<RouterCounters>,
    pub freshness: Freshness,
}

/// A request that has a place among those in flight.
pub(super) struct Entered {
    pipeline: Arc<Pipeline>,
    topology: Arc<Topology>,
    /// The store or graph of the request.
    of: String,
    started: Instant,
    admitted: Admitted,
}

/// A request that is being run.
pub(super) struct Passage {
    entered: Entered,
    /// The name of the operation in metrics.
    op: &'static str,
}

/// What the pipeline needs to know of an answer.
pub(super) trait Accounted {
    /// Its profile.
    fn profile(&mut self) -> &mut Option<v1::Profile>;
    /// Whether nothing is missing.
    fn is_complete(&self) -> bool;
    /// The bytes of values in it that its store's quota pays for; `None` of a graph, and of a stream, which is charged piece
    /// by piece.
    fn value_bytes(&self) -> Option<u64>;
}

impl Pipeline {
    /// Admits a request for the store or graph `of` to the requests in flight.
    ///
    /// # Errors
    /// [`QueryError::Overloaded`].
    pub fn enter(self: &Arc<Self>, topology: Arc<Topology>, of: &str) -> Result<Entered, QueryError> {
        let started = Instant::now();
        let admitted = self.admission.enter(&topology, of)?;
        Ok(Entered { pipeline: Arc::clone(self), topology, of: of.to_owned(), started, admitted })
    }

    /// Appends the request to the record, if one is kept. `line` is what `kith run` reads.
    fn record(&self, line: impl FnOnce() -> Value) {
        if let Some(recorder) = &self.recorder {
            recorder.note(&line());
        }
    }
}

impl Entered {
    /// Begins a query of a graph, or of its plan. `line` is the request for the record; it is `None` if another router has
    /// recorded the request, or if there is nothing to replay.
    pub fn query(self, op: &'static str, line: Option<impl FnOnce() -> Value>) -> Passage {
        if let Some(line) = line {
            self.pipeline.record(line);
        }
        Passage { entered: self, op }
    }

    /// Begins a read of values, whose keys are charged to the store's quota. `bounds` is the outcome of checking the keys.
    ///
    /// # Errors
    /// [`QueryError::BatchTooLarge`], [`QueryError::QuotaExceeded`]; nothing is taken then.
    pub fn read(
        mut self,
        op: &'static str,
        keys: &BatchKeys,
        bounds: Result<(), QueryError>,
        line: impl FnOnce() -> Value,
    ) -> Result<Passage, QueryError> {
        bounds.map_err(|error| refused(&self.topology, &self.of, error))?;
        self.admitted.read(&self.topology, &self.of, keys.len())?;
        self.pipeline.record(line);
        Ok(Passage { entered: self, op })
    }
}

impl Passage {
    /// Ends a request with a whole answer: notes and charges it, and counts it if it is incomplete. The profile is removed
    /// unless the caller asked for it (`shows_profile`). `summary` is the request as the slow-query log shows it.
    ///
    /// # Errors
    /// That of the answer.
    pub fn end<A: Accounted>(
        self,
        answered: Result<A, QueryError>,
        shows_profile: bool,
        summary: &dyn Fn() -> Value,
    ) -> Result<A, QueryError> {
        let mut answer = self.note(answered, summary)?;
        self.show(&mut answer, shows_profile);
        Ok(answer)
    }

    /// Notes and charges a whole answer that still has to be processed.
    ///
    /// # Errors
    /// That of the answer.
    pub fn note<A: Accounted>(
        &self,
        mut answered: Result<A, QueryError>,
        summary: &dyn Fn() -> Value,
    ) -> Result<A, QueryError> {
        let ended = answered.as_mut().map(|answer| answer.profile().as_ref()).map_err(|error| error.code());
        self.note_end(ended, summary);
        let answer = answered.map_err(|error| self.refused(error))?;
        let Entered { pipeline, of, started, .. } = &self.entered;
        pipeline.counters.store(of, started.elapsed());
        if let Some(bytes) = answer.value_bytes() {
            self.charge(bytes);
        }
        Ok(answer)
    }

    /// Charges a part of a stream.
    pub fn charge(&self, bytes: u64) {
        self.entered.admitted.answered(&self.entered.of, bytes);
    }

    /// Notes the end of a stream and prepares its footer. The duration of a stream depends on its reader, so it does not
    /// count as a latency of the store.
    pub fn end_stream(&self, footer: &mut StreamFooter, shows_profile: bool, summary: &dyn Fn() -> Value) {
        self.note_end(Ok(footer.profile.as_ref()), summary);
        self.show(footer, shows_profile);
    }

    /// Notes that a stream failed.
    pub fn fail_stream(&self, error: QueryError, summary: &dyn Fn() -> Value) -> QueryError {
        self.note_end(Err(error.code()), summary);
        self.refused(error)
    }

    /// Notes that a stream was cut because its reader was too slow.
    pub fn cut_stream(&self, summary: &dyn Fn() -> Value) {
        self.note_end(Err(ErrorCode::DeadlineExceeded), summary);
    }

    /// Counts an incomplete answer as a failure, for protocols without partial answers.
    pub fn failed_after_all(&self) {
        self.entered.pipeline.counters.failed_after_all(self.op);
    }

    /// When the request arrived.
    pub fn started(&self) -> Instant {
        self.entered.started
    }

    /// The store or graph of the request.
    pub fn of(&self) -> &str {
        &self.entered.of
    }

    /// The name of the operation in metrics.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// Metrics and the slow-query log: of an answer its profile, of a failure its code.
    fn note_end(&self, ended: Result<Option<&v1::Profile>, ErrorCode>, summary: &dyn Fn() -> Value) {
        let (Entered { pipeline, started, .. }, op) = (&self.entered, self.op);
        let took = started.elapsed();
        pipeline.counters.query(took, ended.is_err());
        metrics::histogram!("kith_router_query_seconds", "op" => op).record(took.as_secs_f64());
        let (outcome, profile) = match ended {
            Ok(profile) => ("ok", profile),
            Err(code) => (code.name(), None),
        };
        if let Some(profile) = profile {
            metrics::counter!("kith_router_requests_total", "op" => op).increment(profile.requests.into());
        }
        if ended.is_err() {
            query_failed(op);
        }
        pipeline.slow_log.note(summary, took, profile, outcome);
    }

    /// Counts an incomplete answer, and removes the profile unless the caller asked for it: every query is traced for the
    /// slow-query log. A profile that stays gets the age of the metadata, if that is stale.
    fn show(&self, answer: &mut impl Accounted, shows_profile: bool) {
        let pipeline = &self.entered.pipeline;
        pipeline.counters.answer(self.op, answer.is_complete());
        let metadata_age_ms = pipeline.freshness.stale().map_or(0, |age| age.as_millis() as u64);
        let profile = answer.profile();
        *profile = profile.take().filter(|_| shows_profile);
        if let Some(profile) = profile {
            profile.metadata_age_ms = metadata_age_ms;
        }
    }

    fn refused(&self, error: QueryError) -> QueryError {
        refused(&self.entered.topology, &self.entered.of, error)
    }
}

impl Accounted for Answered {
    fn profile(&mut self) -> &mut Option<v1::Profile> {
        &mut self.profile
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn value_bytes(&self) -> Option<u64> {
        None
    }
}

/// Its plan is a profile.
impl Accounted for v1::ExplainReply {
    fn profile(&mut self) -> &mut Option<v1::Profile> {
        &mut self.plan
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn value_bytes(&self) -> Option<u64> {
        None
    }
}

impl Accounted for BatchAnswer {
    fn profile(&mut self) -> &mut Option<v1::Profile> {
        &mut self.profile
    }

    fn is_complete(&self) -> bool {
        BatchAnswer::is_complete(self)
    }

    fn value_bytes(&self) -> Option<u64> {
        Some(self.records.value_bytes())
    }
}

impl Accounted for ComputeAnswer {
    fn profile(&mut self) -> &mut Option<v1::Profile> {
        &mut self.answer.profile
    }

    fn is_complete(&self) -> bool {
        self.answer.is_complete()
    }

    fn value_bytes(&self) -> Option<u64> {
        Some(self.answer.records.value_bytes())
    }
}

impl Accounted for AggregateAnswer {
    fn profile(&mut self) -> &mut Option<v1::Profile> {
        &mut self.answer.profile
    }

    fn is_complete(&self) -> bool {
        self.answer.is_complete()
    }

    fn value_bytes(&self) -> Option<u64> {
        Some(self.answer.records.value_bytes())
    }
}

impl Accounted for StreamFooter {
    fn profile(&mut self) -> &mut Option<v1::Profile> {
        &mut self.profile
    }

    fn is_complete(&self) -> bool {
        self.status == StreamStatus::Ok
    }

    fn value_bytes(&self) -> Option<u64> {
        None
    }
}
