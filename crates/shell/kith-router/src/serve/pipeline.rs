//! The steps that every request takes through a router, over every protocol, whether its answer is whole or a stream: it is
//! admitted, recorded, run, noted in metrics and the slow-query log, and charged to the store's quota.
//!
//! The types enforce the order: only an [`EnteredRequest`] becomes a [`Passage`], and only a passage returns an answer.
//! Rights are checked before a request reaches the pipeline (`kith_net::server::security`).

use super::{
    admission::{Admission, AdmittedQuery, refused},
    counters::{RouterCounters, query_failed},
    record::Recorder,
    slow_log::SlowLog,
};
use kith_cluster::freshness::Freshness;
use kith_query::{
    BatchKeys, QueryError, Question, Reply, Request, StreamFooter, StreamStatus,
    line::{request_json, summary_json},
};
use kith_topology::Topology;
use kith_types::ErrorCode;
use kith_wire::v1;
use std::{sync::Arc, time::Instant};

/// The parts of a router that every request passes.
pub(crate) struct Pipeline {
    pub admission: Admission,
    pub recorder: Option<Recorder>,
    pub slow_log: SlowLog,
    pub counters: Arc<RouterCounters>,
    pub freshness: Freshness,
}

/// A request that has a place among those in flight.
pub(crate) struct EnteredRequest {
    pipeline: Arc<Pipeline>,
    topology: Arc<Topology>,
    request: Arc<Request>,
    started: Instant,
    admitted: AdmittedQuery,
}

/// A request that is being run.
pub(crate) struct Passage {
    entered: EnteredRequest,
    /// The name of the operation in metrics.
    op: &'static str,
}

impl Pipeline {
    /// Admits a request, which then counts as one of the requests in flight.
    ///
    /// # Errors
    /// [`QueryError::Overloaded`].
    pub fn enter(
        self: &Arc<Self>,
        topology: Arc<Topology>,
        request: Arc<Request>,
    ) -> Result<EnteredRequest, QueryError> {
        let started = Instant::now();
        let admitted = self.admission.enter(&topology, request.question.of())?;
        Ok(EnteredRequest { pipeline: Arc::clone(self), topology, request, started, admitted })
    }

    /// Appends the request to the record, if one is kept, unless another router has recorded it or it cannot be replayed.
    fn record(&self, request: &Request) {
        if let Some(recorder) = &self.recorder
            && !request.options.forwarded
            && let Some(line) = request_json(request)
        {
            recorder.note(&line);
        }
    }
}

impl EnteredRequest {
    /// Begins the request. If it reads keys, `bounds` checks their number, and then they are charged to the store's quota.
    ///
    /// # Errors
    /// [`QueryError::BatchTooLarge`], [`QueryError::QuotaExceeded`]; nothing is charged then.
    pub fn begin(
        mut self,
        op: &'static str,
        bounds: impl FnOnce(&BatchKeys) -> Result<(), QueryError>,
    ) -> Result<Passage, QueryError> {
        let Request { question, options } = &*self.request;
        if let Some(keys) = question.keys() {
            bounds(keys).map_err(|error| refused(&self.topology, question.of(), error))?;
            self.admitted.read(&self.topology, question.of(), keys.len())?;
        }
        self.pipeline.record(&self.request);
        let op = options.door.unwrap_or(op);
        Ok(Passage { entered: self, op })
    }
}

impl Passage {
    /// Ends a request with a whole answer: notes and charges it, and counts it if it is incomplete. The profile is removed
    /// unless the caller asked for it.
    ///
    /// # Errors
    /// The error of the answer.
    pub fn end(self, mut answered: Result<Reply, QueryError>) -> Result<Reply, QueryError> {
        let ended = match &mut answered {
            Ok(reply) => Ok(reply.profile_mut().and_then(|profile| profile.as_ref())),
            Err(error) => Err(error.code()),
        };
        self.note_end(ended);
        let mut reply = answered.map_err(|error| self.refused(error))?;
        let EnteredRequest { pipeline, request, started, .. } = &self.entered;
        pipeline.counters.store(request.question.of(), self.op, started.elapsed());
        if let Some(batch) = reply.batch() {
            self.charge(batch.records.value_bytes());
        }
        let is_complete = reply.is_complete();
        if !is_complete && request.options.door.is_some() {
            pipeline.counters.failed_after_all(self.op);
        }
        let is_shown = request.options.profile || matches!(request.question, Question::Explain { .. });
        let mut none = None;
        self.show(is_complete, reply.profile_mut().unwrap_or(&mut none), is_shown);
        Ok(reply)
    }

    /// Charges the bytes of an answer, or of one piece of a stream, to the store's quota.
    pub fn charge(&self, bytes: u64) {
        let EnteredRequest { admitted, request, .. } = &self.entered;
        admitted.answered(request.question.of(), bytes);
    }

    /// Notes the end of a stream and prepares its footer. The duration of a stream depends on its reader, so it does not
    /// count as a latency of the store.
    pub fn end_stream(&self, footer: &mut StreamFooter) {
        self.note_end(Ok(footer.profile.as_ref()));
        let is_complete = footer.status == StreamStatus::Ok;
        self.show(is_complete, &mut footer.profile, self.entered.request.options.profile);
    }

    /// Notes that a stream failed.
    pub fn fail_stream(&self, error: QueryError) -> QueryError {
        self.note_end(Err(error.code()));
        self.refused(error)
    }

    /// Notes that a stream was cut because its reader was too slow.
    pub fn cut_stream(&self) {
        self.note_end(Err(ErrorCode::DeadlineExceeded));
    }

    /// The time at which the request arrived.
    pub fn started(&self) -> Instant {
        self.entered.started
    }

    /// The request.
    pub fn request(&self) -> &Arc<Request> {
        &self.entered.request
    }

    /// Notes the end in metrics and the slow-query log: the profile of an answer, or the code of a failure.
    fn note_end(&self, ended: Result<Option<&v1::Profile>, ErrorCode>) {
        let (EnteredRequest { pipeline, started, request, .. }, op) = (&self.entered, self.op);
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
        pipeline.slow_log.note(&|| summary_json(request, op), took, profile, outcome);
    }

    /// Counts an incomplete answer, and removes the profile unless the caller asked for it: every query is traced for the
    /// slow-query log. A profile that stays gets the age of the metadata, if that is stale.
    fn show(&self, is_complete: bool, profile: &mut Option<v1::Profile>, is_shown: bool) {
        let pipeline = &self.entered.pipeline;
        pipeline.counters.answer(self.op, is_complete);
        let metadata_age_ms = pipeline.freshness.stale().map_or(0, |age| age.as_millis() as u64);
        *profile = profile.take().filter(|_| is_shown);
        if let Some(profile) = profile {
            profile.metadata_age_ms = metadata_age_ms;
        }
    }

    fn refused(&self, error: QueryError) -> QueryError {
        refused(&self.entered.topology, self.entered.request.question.of(), error)
    }
}
