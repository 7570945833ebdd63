//! Writes one row, with retries.

use super::{
    rows::{Row, hex},
    window::Outcome,
};
use futures::future::BoxFuture;
use kith_build::rows::graph::{AssociationRow, ObjectRow};
use kith_client::{QueryError, QueryOptions, Service};
use kith_live::{Conditions, Mutation, ObjectAnswer, Ticket, Write, WriteId};
use kith_query::{GraphAnswer, GraphQuery, ObjectGetQuery, Operation, ServedGraph};
use kith_types::{ErrorClass, ErrorCode, Workflow};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// The deadline of one attempt. While leadership moves, the attempt waits up to this long for the next leader.
const DEADLINE: Duration = Duration::from_secs(10);
/// The pause after the first failure. It doubles after each further failure.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Writes the rows of one import.
pub struct Writer {
    pub service: Arc<dyn Service>,
    pub graph: String,
    /// The type of the rows.
    pub kind: String,
    /// The name of the import. The names of its writes are derived from it and from their rows. Repeating a write therefore
    /// has no effect, whether its answer was lost or the import was interrupted.
    pub import: String,
    /// The time for which to repeat a write that fails because of an outage.
    pub retry_for: Duration,
    /// Once this is cancelled, no write is repeated any more.
    pub stop: CancellationToken,
    /// A ticket of everything that this run has written or found.
    pub ticket: Mutex<Ticket>,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Done(Outcome),
    /// The row cannot be written, for this reason.
    Refused(String),
}

impl Writer {
    /// Writes a row.
    ///
    /// # Errors
    /// If the cluster accepts no writes; the row may be written later. After `outcome_unknown` the row may have been
    /// written.
    pub async fn write(&self, row: &Row) -> Result<Fate, QueryError> {
        let fate = match row {
            Row::Object(object) => self.object(row, object).await,
            Row::Association(association) => self.association(row, association).await,
        };
        match fate {
            Err(error) if concerns_row(error.code()) => Ok(Fate::Refused(error.to_string())),
            fate => fate,
        }
    }

    async fn association(&self, row: &Row, it: &AssociationRow) -> Result<Fate, QueryError> {
        let (kind, data) = (self.kind.clone(), it.data.clone());
        let add = Mutation::AddAssociation { id1: it.id1, kind, id2: it.id2, time: Some(it.time), data };
        let existed = self.send(row, add).await?;
        Ok(Fate::Done(if existed { Outcome::Existed } else { Outcome::Added }))
    }

    /// Adds an object. If it exists, updates it to the fields of the row, unless it already has them.
    async fn object(&self, row: &Row, ObjectRow { id, data, .. }: &ObjectRow) -> Result<Fate, QueryError> {
        let add = Mutation::AddObject {
            kind: self.kind.clone(),
            data: data.clone(),
            id: Some(*id),
            near: None,
            text_id: None,
        };
        match self.send(row, add).await {
            Ok(_) => return Ok(Fate::Done(Outcome::Added)),
            Err(error) if error.code() == ErrorCode::ObjectExists => {}
            Err(error) => return Err(error),
        }
        let deleted = || Ok(Fate::Refused(format!("object {id} was deleted while it was imported")));
        let Some(found) = self.find(*id).await? else { return deleted() };
        if found.kind != self.kind {
            return Ok(Fate::Refused(format!("object {id} exists already, as type {:?}", found.kind)));
        }
        match data {
            Some(data) if !has(&found.data, data) => {
                let existed = self.send(row, Mutation::UpdateObject { id: *id, data: data.clone() }).await?;
                if existed { Ok(Fate::Done(Outcome::Existed)) } else { deleted() }
            }
            _ => Ok(Fate::Done(Outcome::Existed)),
        }
    }

    /// Sends a write until its outcome is known. Returns whether the object or association existed before.
    async fn send(&self, row: &Row, mutation: Mutation) -> Result<bool, QueryError> {
        let write_id = Some(self.name(row, &mutation));
        let write = Write { mutation, conditions: Conditions::default(), write_id };
        let options = QueryOptions { deadline: Some(DEADLINE), ..QueryOptions::default() };
        let written = self.repeated(|| self.service.write(&self.graph, &write, &options)).await?;
        self.ticket.lock().merge(&written.ticket);
        Ok(written.done.existed)
    }

    /// Returns the object as it is stored now.
    async fn find(&self, id: u64) -> Result<Option<ObjectAnswer>, QueryError> {
        let operation = Operation::ObjectGet(ObjectGetQuery { ids: vec![id], is_single: true });
        let query =
            GraphQuery { operation, edge_type: None, direction: None, workflow: Workflow::Interactive };
        let options = QueryOptions { deadline: Some(DEADLINE), critical: true, ..QueryOptions::default() };
        let answered = self.repeated(|| self.service.query(&self.graph, &query, &options)).await?;
        // The object may have been written a moment ago, by somebody else.
        let found = answered.served.iter().filter_map(ServedGraph::ticket);
        found.for_each(|found| self.ticket.lock().merge(found));
        match answered.answer {
            GraphAnswer::Object(object) => Ok(object),
            other => Err(QueryError::Internal { detail: format!("an object was answered by {other:?}") }),
        }
    }

    /// Repeats a call until it succeeds, fails for a permanent reason, or has failed for `retry_for`.
    async fn repeated<'s, T>(
        &'s self,
        ask: impl Fn() -> BoxFuture<'s, Result<T, QueryError>>,
    ) -> Result<T, QueryError> {
        let (started, mut pause) = (Instant::now(), PAUSE_FIRST);
        loop {
            let error = match ask().await {
                Err(error) if may_pass(error.code()) => error,
                ended => return ended,
            };
            if self.retry_for <= started.elapsed() + pause {
                return Err(error);
            }
            let is_stopped = self.stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none();
            if is_stopped {
                return Err(error);
            }
            pause = PAUSE_MAX.min(pause * 2);
        }
    }

    fn name(&self, row: &Row, mutation: &Mutation) -> WriteId {
        let mut hash = Sha256::new();
        hash.update(self.import.as_bytes());
        hash.update(mutation.name().as_bytes());
        row.hash_into(&mut hash);
        let name = format!("import-{}", &hex(&hash.finalize())[..40]);
        name.parse().expect("letters, digits and a hyphen")
    }
}

/// Whether an object has all fields of `wanted` with the same values. Both are JSON objects.
fn has(object: &str, wanted: &str) -> bool {
    let parse = |text: &str| serde_json::from_str::<Map<String, Value>>(text).ok();
    let (Some(object), Some(wanted)) = (parse(object), parse(wanted)) else { return false };
    wanted.iter().all(|(name, value)| object.get(name) == Some(value))
}

/// Whether the write failed because of its row, so that another row may succeed.
fn concerns_row(code: ErrorCode) -> bool {
    use ErrorCode::{BadFields, BadRequest, TooLarge, UniqueTaken};
    matches!(code, BadRequest | BadFields | TooLarge | UniqueTaken)
}

/// Whether an error may be temporary: an outage, a change of leaders, overload, or a write whose answer was lost.
fn may_pass(code: ErrorCode) -> bool {
    match code.class() {
        ErrorClass::Unavailable | ErrorClass::DeadlineExceeded | ErrorClass::Aborted => true,
        ErrorClass::ResourceExhausted => code != ErrorCode::DatabaseFull,
        _ => code == ErrorCode::OutcomeUnknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_what_is_wanted_of_it() {
        let object = r#"{"name":"Ada","born":null,"tags":["a"]}"#;
        for wanted in ["{}", r#"{"name":"Ada"}"#, r#"{"tags":["a"],"born":null}"#] {
            assert!(has(object, wanted), "{wanted}");
        }
        for wanted in [r#"{"name":"Bob"}"#, r#"{"born":0}"#, r#"{"tags":[]}"#, r#"{"age":null}"#, "1"] {
            assert!(!has(object, wanted), "{wanted}");
        }
    }

    #[test]
    fn outages_pass_and_errors_of_rows_do_not() {
        for code in ["not_leader", "overloaded", "database_unavailable", "unreachable", "outcome_unknown"] {
            assert!(may_pass(ErrorCode::of_name(code)), "{code}");
        }
        for code in
            ["bad_fields", "object_exists", "permission_denied", "database_full", "unknown_type", "internal"]
        {
            assert!(!may_pass(ErrorCode::of_name(code)), "{code}");
        }
    }
}
