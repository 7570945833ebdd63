//! A read of keys that this node holds, as its doors request it.

use super::{evaluator::Evaluator, quota::WayIn};
use kith_engine::{KeyType, ValueError, ValueType, ValuesReader};
use kith_operators::{RecordError, Records, RecordsBuilder};
use kith_query::{ANSWER_BYTES_MAX, BatchAnswer, BatchKeys, QueryError, Question, Reply, Request};
use kith_schema::Schema;
use kith_wire::v1;
use std::{
    collections::BTreeSet,
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

/// The longest time for a read, in case its caller no longer waits.
const DEADLINE: Duration = Duration::from_secs(10);
/// The number of values that are read between two checks of the time.
const LOOK_EVERY: usize = 1_024;

/// One read, which can run on any thread.
pub(crate) struct OwnRead {
    pub evaluator: Arc<Evaluator>,
    pub request: Arc<Request>,
    pub version: u64,
    pub value: ValueType,
    pub reader: Arc<ValuesReader>,
    pub started: Instant,
}

impl OwnRead {
    /// Reads the keys, as a request of `client`.
    ///
    /// # Errors
    /// If the node is overloaded, the quota is used up, or a key does not have the store's key type.
    pub fn run(self, client: u64) -> Result<Reply, QueryError> {
        let Self { evaluator, request, version, value, reader, started } = self;
        let (store, keys) = match &request.question {
            Question::Values { store, keys } => (store, keys),
            other => {
                return Err(QueryError::Internal { detail: format!("no read: {:?}", other.name()) });
            }
        };
        let Some(_in_flight) = evaluator.load.start(client, started) else {
            metrics::counter!("kith_node_overloaded_total").increment(1);
            let detail = format!("node {} has too many requests in flight", evaluator.node);
            return Err(QueryError::Overloaded { detail });
        };
        evaluator.quotas.take(store, keys.len(), WayIn::Direct)?;
        let (records, missing_partitions) = match (keys, reader.key_type()) {
            (BatchKeys::Ids(ids), KeyType::Id) => {
                let keys: Vec<[u8; 8]> = ids.iter().map(|id| id.to_le_bytes()).collect();
                read(&reader, &keys, started)
            }
            (BatchKeys::Bytes(keys), KeyType::String | KeyType::Bytes) => {
                read(&reader, &keys.iter().collect::<Vec<_>>(), started)
            }
            (_, expected) => Err(QueryError::WrongKeys { store: store.clone(), expected, got: "another" }),
        }?;
        let served = vec![(store.clone(), version)];
        match records.damaged() {
            0 => {}
            damaged => evaluator.note_damaged(damaged, &[v1::Served::of_version(store.clone(), version)]),
        }
        evaluator.quotas.answered(store, WayIn::Direct, || records.value_bytes());
        let schema = reader.schema().filter(|_| value == ValueType::Record).map(Schema::id);
        if value == ValueType::Record && schema.is_none() {
            let reason = "this release cannot read it".to_owned();
            return Err(QueryError::SchemaUnavailable { store: store.clone(), version, reason });
        }
        evaluator.note_worked(started.elapsed());
        let answer = BatchAnswer { records, missing_partitions, served, profile: None, schema };
        if request.options.partial { Ok(Reply::Values(answer)) } else { whole(&evaluator, store, answer) }
    }
}

/// Returns the answer as a reply, or an error if it is not complete.
fn whole(evaluator: &Evaluator, store: &str, answer: BatchAnswer) -> Result<Reply, QueryError> {
    if !answer.missing_partitions.is_empty() {
        let reason =
            format!("this node does not hold them: {}", evaluator.whom(&evaluator.topology.borrow()));
        return Err(QueryError::PartitionsUnavailable { partitions: answer.missing_partitions, reason });
    }
    match answer.records.damaged() {
        0 => Ok(Reply::Values(answer)),
        keys => {
            let detail = format!("{keys} of the keys asked for");
            Err(QueryError::Damaged { store: store.to_owned(), detail })
        }
    }
}

/// Returns what the version has for each key: a value, a proof that it is absent, damage, or nothing if its partition is not
/// held. Also returns the partitions that are not held.
fn read<K: AsRef<[u8]>>(
    reader: &ValuesReader,
    keys: &[K],
    started: Instant,
) -> Result<(Records, Vec<u32>), QueryError> {
    let mut records = RecordsBuilder::with_capacity(keys.len());
    let mut missing = BTreeSet::new();
    let mut stopped = None;
    reader.get_many(keys, |index, value| {
        if index % LOOK_EVERY == LOOK_EVERY - 1 && DEADLINE <= started.elapsed() {
            stopped = Some(QueryError::DeadlineExceeded { deadline_ms: DEADLINE.as_millis() as u64 });
            return ControlFlow::Break(());
        }
        match value {
            Ok(Some(value)) => {
                let is_small_enough = value.len() <= ANSWER_BYTES_MAX - records.value_bytes();
                if !(is_small_enough && records.found(value)) {
                    stopped = Some(QueryError::TooLarge { max: ANSWER_BYTES_MAX as u64 });
                    return ControlFlow::Break(());
                }
            }
            Ok(None) => records.absent(),
            Err(ValueError::Damaged(_)) => records.error(RecordError::Damaged),
            Err(ValueError::NotHeld { partition }) => {
                missing.insert(partition.0);
                records.unanswered();
            }
            Err(error) => {
                stopped = Some(QueryError::BadRequest { detail: error.to_string() });
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    match stopped {
        Some(error) => Err(error),
        None => Ok((records.finish(), missing.into_iter().collect())),
    }
}
