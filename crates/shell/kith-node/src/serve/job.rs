//! One evaluation: a decoded and checked request, which can run on any thread.

use super::quota::WayIn;
use crate::versions::held::VersionReader;
use kith_engine::KeyType;
use kith_operators::{
    BatchRead, EvaluateError, Operator, Room, Share, Value, evaluate, evaluate_values, sets::Scratch,
};
use kith_query::{
    ANSWER_BYTES_MAX, BATCH_KEYS_MAX,
    convert::{ConvertError, operator_from_wire},
};
use kith_schema::LookupKeys;
use kith_types::{ByteKeys, ErrorCode, PartitionId};
use kith_wire::{
    body::{decode_keys, key_count},
    v1,
};
use std::{
    cell::RefCell,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tonic::Status;

/// The time limit of a request without a deadline.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(10);
/// The number of keys up to which a request is evaluated on the connection's own task. Handing a request over to
/// another thread costs about as much as evaluating this many short lists.
pub(crate) const KEYS_INLINE_MAX: usize = 64;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// Calls `work` with the scratch memory of this thread.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with_borrow_mut(work)
}

/// One evaluation, which can run on any thread.
pub(crate) struct Job {
    reader: VersionReader,
    keys: Vec<u64>,
    byte_keys: ByteKeys,
    partitions: Vec<PartitionId>,
    pub plan: Operator,
    /// Whether the caller verifies the proofs of values itself.
    proofs: bool,
    /// The quota that pays for it.
    pub way: WayIn,
    deadline: Instant,
    /// Whether the caller has disconnected.
    abandoned: Arc<AtomicBool>,
}

/// Tells a running job that its caller has disconnected.
pub(crate) struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Job {
    /// Returns the evaluation that a request asks for, on the version that `reader` reads.
    ///
    /// # Errors
    /// If the request cannot be decoded, or the store cannot answer it.
    pub fn new(request: v1::EvaluateRequest, reader: VersionReader, now: Instant) -> Result<Self, Status> {
        let way = WayIn::of(&request);
        let left = match request.header.as_ref().map_or(0, |header| header.deadline_us) {
            0 => DEADLINE_DEFAULT,
            micros => Duration::from_micros(micros),
        };
        let plan = plan_of(&request)?;
        if matches!(reader, VersionReader::Values(_)) {
            check_key_count(&request)?;
        }
        let byte_keys = match request.byte_keys.is_empty() {
            true => ByteKeys::default(),
            false => {
                decode_keys(&request.byte_keys).map_err(|error| refused(format!("byte keys: {error}")))?
            }
        };
        let job = Self {
            reader,
            keys: request.keys,
            byte_keys,
            partitions: request.partitions.into_iter().map(PartitionId).collect(),
            plan,
            proofs: request.proofs,
            way,
            deadline: now + left,
            abandoned: Arc::new(AtomicBool::new(false)),
        };
        job.check().map_err(|detail| refused(detail.to_owned()))?;
        Ok(job)
    }

    /// Evaluates the whole request.
    ///
    /// # Errors
    /// The errors of `kith_operators::evaluate` and `kith_operators::evaluate_values`.
    pub fn run(&self) -> Result<Value, EvaluateError> {
        self.check_wanted()?;
        let cancelled = || self.is_unwanted();
        match &self.reader {
            VersionReader::Graph(reader) => {
                let share = Share { keys: &self.keys, partitions: &self.partitions };
                SCRATCH
                    .with_borrow_mut(|scratch| evaluate(&self.plan, &share, &**reader, scratch, &cancelled))
            }
            VersionReader::Values(reader) => {
                let keys = match reader.key_type() {
                    KeyType::Id => LookupKeys::Ids(&self.keys),
                    KeyType::String | KeyType::Bytes => LookupKeys::Bytes(&self.byte_keys),
                };
                let asked = BatchRead { keys, room: Room::for_all(ANSWER_BYTES_MAX), proofs: self.proofs };
                evaluate_values(&self.plan, &asked, &**reader, reader.schema(), &cancelled)
            }
        }
    }

    /// Evaluates the plan for the keys at these indexes, from the first one on, as many as there is room for. Only for plans
    /// that treat each key separately.
    ///
    /// # Errors
    /// The errors of `kith_operators::evaluate_values`.
    pub fn run_slice(&self, indexes: Range<usize>, room: Room) -> Result<Value, EvaluateError> {
        self.check_wanted()?;
        let cancelled = || self.is_unwanted();
        let VersionReader::Values(reader) = &self.reader else {
            return Err(EvaluateError::Mistyped { operator: "lookup", got: "a graph" });
        };
        let some;
        let keys = match reader.key_type() {
            KeyType::Id => LookupKeys::Ids(&self.keys[indexes]),
            KeyType::String | KeyType::Bytes => {
                let indexes: Vec<u32> = indexes.map(|index| index as u32).collect();
                some = self.byte_keys.select(&indexes);
                LookupKeys::Bytes(&some)
            }
        };
        let asked = BatchRead { keys, room, proofs: self.proofs };
        evaluate_values(&self.plan, &asked, &**reader, reader.schema(), &cancelled)
    }

    /// Refuses to begin if the caller no longer waits. The request may have waited too long for its thread.
    fn check_wanted(&self) -> Result<(), EvaluateError> {
        if !self.is_unwanted() {
            return Ok(());
        }
        metrics::counter!("kith_node_expired_total").increment(1);
        Err(EvaluateError::Cancelled)
    }

    fn is_unwanted(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || self.deadline <= Instant::now()
    }

    /// The number of keys in the request.
    pub fn key_count(&self) -> usize {
        self.keys.len() + self.byte_keys.len()
    }

    /// Returns a guard that stops the job when it is dropped.
    pub fn abandon_on_drop(&self) -> AbandonOnDrop {
        AbandonOnDrop(Arc::clone(&self.abandoned))
    }

    /// Whether all pages are in memory.
    pub fn is_warm(&self) -> bool {
        !self.reader.is_cold()
    }

    /// Like [`Job::is_quick`], for these keys only.
    pub fn is_quick_slice(&self, indexes: &Range<usize>) -> bool {
        indexes.len() <= KEYS_INLINE_MAX && self.is_warm()
    }

    /// Whether running takes less time than handing over to another thread: few keys, and all pages in memory.
    pub fn is_quick(&self) -> bool {
        let counts = [self.keys.len(), self.byte_keys.len(), self.partitions.len()];
        counts.iter().all(|count| *count <= KEYS_INLINE_MAX) && self.is_warm()
    }

    /// Refuses what this kind of store cannot answer.
    fn check(&self) -> Result<(), &'static str> {
        let reads_values = self.plan.reads_values();
        match &self.reader {
            VersionReader::Graph(_) if !self.byte_keys.is_empty() => {
                Err("the store holds a graph: its keys are ids, without byte keys")
            }
            VersionReader::Values(_) if !self.partitions.is_empty() => {
                Err("the store holds values: they are read by key, without partitions")
            }
            VersionReader::Graph(_) if reads_values => {
                Err("the store holds a graph: there are no values to look up")
            }
            VersionReader::Graph(_) => Ok(()),
            VersionReader::Values(_) if !reads_values => {
                Err("the store holds values: they can be looked up and worked on by key, and nothing else")
            }
            VersionReader::Values(reader) => {
                let is_id = reader.key_type() == KeyType::Id;
                let strangers = if is_id { self.byte_keys.len() } else { self.keys.len() };
                if strangers == 0 { Ok(()) } else { Err("the keys are of another type than the store's") }
            }
        }
    }
}

fn plan_of(request: &v1::EvaluateRequest) -> Result<Operator, Status> {
    let plan = request.plan.as_ref().map(operator_from_wire).transpose();
    plan.and_then(|plan| plan.ok_or(ConvertError::Missing("plan"))).map_err(|error| {
        let code = match error {
            ConvertError::TooDeep(_) | ConvertError::TooWide(_) => ErrorCode::BadRequest,
            _ => ErrorCode::UnsupportedOperation,
        };
        kith_wire::status(code, error.to_string(), "use a client of this release")
    })
}

fn refused(detail: String) -> Status {
    kith_wire::status(ErrorCode::BadRequest, detail, "use a client of this release")
}

/// Refuses requests for values with more keys than routers accept, before the keys are decoded. Graphs have their own bound,
/// [`Share::KEYS_MAX`].
fn check_key_count(request: &v1::EvaluateRequest) -> Result<(), Status> {
    let count = request.keys.len().max(key_count(&request.byte_keys));
    match count <= BATCH_KEYS_MAX {
        true => Ok(()),
        false => {
            Err(refused(format!("the request has {count} keys, but must have at most {BATCH_KEYS_MAX}")))
        }
    }
}

/// Returns the size of a request. For packed byte keys, it is the count at the beginning of their body.
pub(crate) fn keys_of(request: &v1::EvaluateRequest) -> usize {
    let packed = key_count(&request.byte_keys);
    request.keys.len() + request.partitions.len() + packed
}
