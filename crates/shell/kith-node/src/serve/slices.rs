//! Reads by key in slices. Each slice is evaluated when its part of the reply may be sent. Between two slices only the
//! request is kept: no thread and no answer.

use super::{
    answer::EncodableAnswer,
    evaluator::Evaluator,
    job::{AbandonOnDrop, Job, KEYS_INLINE_MAX, keys_of},
    load::InFlight,
};
use crate::threads::evaluate_aside;
use futures::{
    StreamExt,
    future::ready,
    stream::{self, BoxStream},
};
use kith_net::server::framed::{FrameReply, Piece};
use kith_operators::{EvaluateError, Records, Room, SliceSizes, Value};
use kith_query::ANSWER_BYTES_MAX;
use kith_wire::v1;
use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};
use tonic::Status;

/// The way in which a reply is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyDivision {
    /// Into messages. Each is sent as soon as there is credit for it (`docs/design/0010-streaming.md`).
    Messages,
    /// Into parts of one message. Each is made when the connection asks for it, and sent while it is in the processor's
    /// cache (`docs/design/0004-framed-path.md`). A read with few keys, or with pages to wait for, is not divided.
    Parts,
}

/// A reply in parts: the first part, and the slices that produce the others.
pub(crate) struct Parts {
    first: EncodableAnswer,
    rest: Option<Slices>,
}

/// A read in progress.
struct Slices {
    evaluator: Arc<Evaluator>,
    job: Arc<Job>,
    sizes: SliceSizes,
    served: Vec<v1::Served>,
    /// The number of bytes that the values of the remaining slices may have.
    bytes_left: usize,
    /// The time spent on slices.
    worked: Duration,
    cut: ReplyDivision,
    _abandon: AbandonOnDrop,
    _in_flight: InFlight,
}

/// The result of a slice.
struct SliceResult {
    value: Value,
    /// The number of its keys that were read.
    keys: usize,
    value_bytes: usize,
    damaged: u64,
}

impl Evaluator {
    /// Like `evaluate`, but a read of many values is divided, and only its first slice is evaluated before this returns.
    ///
    /// # Errors
    /// The errors of `evaluate`.
    pub(crate) async fn evaluate_in_parts(
        self: Arc<Self>,
        request: v1::EvaluateRequest,
        cut: ReplyDivision,
    ) -> Result<Parts, Status> {
        let started = Instant::now();
        let keys = keys_of(&request);
        let load = Arc::clone(&self.load);
        let parts = self.first_part(request, started, cut).await;
        match &parts {
            // Such a request is counted with its last part.
            Ok(Parts { rest: Some(_), .. }) => {}
            whole => load.note(keys, whole.as_ref().ok().map(|_| started.elapsed())),
        }
        parts
    }

    async fn first_part(
        self: Arc<Self>,
        request: v1::EvaluateRequest,
        started: Instant,
        cut: ReplyDivision,
    ) -> Result<Parts, Status> {
        let in_flight = self.admit(&request, started)?;
        if let Some(graph) = self.live.find(&request.name).map_err(|error| error.to_status())? {
            let first = self.evaluated_live(&graph, &request, started).await?;
            return Ok(Parts { first, rest: None });
        }
        let served = vec![v1::Served::of_version(request.name.clone(), request.version)];
        let job = self.let_in(request, &served, started)?;
        let is_cut = match cut {
            ReplyDivision::Messages => job.plan.is_key_by_key(),
            ReplyDivision::Parts => {
                job.plan.is_key_by_key() && KEYS_INLINE_MAX < job.key_count() && job.is_warm()
            }
        };
        if !is_cut {
            let first = self.answer(job, served, started).await?;
            return Ok(Parts { first, rest: None });
        }
        let mut slices = Slices {
            sizes: match cut {
                ReplyDivision::Messages => SliceSizes::new(job.key_count()),
                ReplyDivision::Parts => SliceSizes::even(job.key_count()),
            },
            _abandon: job.abandon_on_drop(),
            job: Arc::new(job),
            evaluator: self,
            served,
            bytes_left: ANSWER_BYTES_MAX,
            worked: Duration::ZERO,
            _in_flight: in_flight,
            cut,
        };
        let first = slices.next().await.unwrap_or_else(|| Err(Status::internal("a read without keys")))?;
        let rest = (!slices.sizes.is_over()).then_some(slices);
        Ok(Parts { first, rest })
    }
}

impl Parts {
    /// Returns the reply as a gRPC stream.
    pub fn into_stream(self) -> BoxStream<'static, Result<v1::EvaluateReply, Status>> {
        let Self { first, rest } = self;
        let rest = stream::unfold(rest, |slices: Option<Slices>| async move {
            let mut slices = slices?;
            let part = slices.next_counted().await?;
            Some((part.map(EncodableAnswer::into_message), Some(slices)))
        });
        stream::once(ready(Ok(first.into_message()))).chain(rest).boxed()
    }

    /// Returns the reply for frames.
    pub fn into_reply(self) -> FrameReply {
        let Some(slices) = self.rest else { return self.first.into_reply() };
        let first = slices.piece(self.first, false);
        let rest = stream::unfold(slices, |mut slices: Slices| async move {
            if slices.cut == ReplyDivision::Parts {
                // Let other connections be read meanwhile.
                tokio::task::yield_now().await;
            }
            let part = slices.next_counted().await?;
            let piece = part.map(|part| slices.piece(part, slices.sizes.is_over()));
            Some((piece, slices))
        });
        FrameReply::Pieces(stream::once(ready(Ok(first))).chain(rest).boxed())
    }
}

impl Slices {
    /// Returns the answer to the next slice; `None` after the last.
    async fn next(&mut self) -> Option<Result<EncodableAnswer, Status>> {
        let slice = self.sizes.next_slice()?;
        Some(self.evaluate(slice).await)
    }

    /// Like `next`, for the slices after the first. The request is counted with its last part, or with the error that ends
    /// it.
    async fn next_counted(&mut self) -> Option<Result<EncodableAnswer, Status>> {
        let part = self.next().await?;
        if part.is_err() || self.sizes.is_over() {
            let took = part.is_ok().then_some(self.worked);
            self.evaluator.load.note(self.job.key_count(), took);
        }
        Some(part)
    }

    fn piece(&self, part: EncodableAnswer, is_last: bool) -> Piece {
        match self.cut {
            ReplyDivision::Messages => part.into_piece(is_last),
            ReplyDivision::Parts => part.into_part(is_last),
        }
    }

    async fn evaluate(&mut self, slice: Range<usize>) -> Result<EncodableAnswer, Status> {
        let started = Instant::now();
        let room = Room { bytes_max: self.bytes_left, enough: SliceSizes::ENOUGH };
        let is_here = match self.cut {
            ReplyDivision::Messages => self.job.is_quick_slice(&slice),
            // The pages of the version may have been evicted since.
            ReplyDivision::Parts => self.job.is_warm(),
        };
        let sliced = if is_here {
            sliced(&self.job, slice, room)
        } else {
            let job = Arc::clone(&self.job);
            let joined = evaluate_aside(move || sliced(&job, slice, room)).await;
            joined.map_err(|error| Status::internal(format!("evaluation ended unexpectedly: {error}")))?
        };
        let sliced = sliced.map_err(|error| self.evaluator.failed(&error, &self.served))?;
        self.evaluator.note_damaged(sliced.damaged, &self.served);
        let bytes = || sliced.value_bytes as u64;
        let left = self.evaluator.quotas.charge_answer(&self.served, self.job.way, bytes);
        let took = started.elapsed();
        self.worked += took;
        self.bytes_left = self.bytes_left.saturating_sub(sliced.value_bytes);
        self.sizes.read(sliced.keys, sliced.value_bytes, took);
        let is_last = self.sizes.is_over();
        if is_last {
            self.evaluator.note_worked(self.worked);
        }
        let rest = v1::EvaluateReply {
            value: None,
            load: is_last.then(|| self.evaluator.load.load(Instant::now())),
            served: if is_last || self.cut == ReplyDivision::Messages {
                self.served.clone()
            } else {
                Vec::new()
            },
            service_us: if is_last { u64::try_from(self.worked.as_micros()).unwrap_or(u64::MAX) } else { 0 },
            slices: Vec::new(),
            quota_left: if is_last { left.into() } else { 0 },
        };
        Ok(EncodableAnswer { value: sliced.value, rest })
    }
}

/// Reads as many keys of a slice as there is room for.
fn sliced(job: &Job, slice: Range<usize>, room: Room) -> Result<SliceResult, EvaluateError> {
    let value = job.run_slice(slice, room)?;
    let records = value.records();
    Ok(SliceResult {
        keys: records.map_or(0, Records::len),
        value_bytes: records.map_or(0, |records| records.value_bytes() as usize),
        damaged: records.map_or(0, Records::damaged),
        value,
    })
}
