//! One connection as its door sees it.

use crate::{AuthError, Backend, CallerRights, DEFAULT_USER, DoorNames};
use kith_net::{
    Charge,
    server::connections::{OpenConnection, STRANGER_MESSAGES_MAX},
};
use kith_operators::Record;
use kith_query::{BatchAnswer, BatchKeys, QueryError, QueryOptions, Question, Reply, Request, StoreShape};
use kith_schema::{KeyType, RecordView, Schema, SchemaId};
use kith_types::ErrorCode;
use metrics::Counter;
use std::{
    net::SocketAddr,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// The peer of one connection: its identity, its rights, and the memory that its replies may take. A clone is the same peer, but
/// gets an identity of its own by [`DoorCaller::authenticate`].
#[derive(Clone)]
pub struct DoorCaller {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) names: DoorNames,
    pub(crate) rights: CallerRights,
    pub(crate) connected: Arc<OpenConnection>,
    pub(crate) peer: SocketAddr,
    pub(crate) end: CancellationToken,
    /// How often this peer was refused while it was unauthenticated.
    pub(crate) refusals: Arc<AtomicU64>,
    pub(crate) auth_failures: Counter,
}

/// A reply, or a part of one, whose bytes are charged to the memory for replies until it is dropped.
#[derive(Debug)]
pub struct ChargedReply<T = Reply> {
    reply: T,
    _charge: Charge,
}

impl<T> Deref for ChargedReply<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.reply
    }
}

impl DoorCaller {
    /// Sends `question` to the backend on behalf of the peer, if the peer may read the graph or store. An incomplete answer
    /// counts as a failure in metrics, under the door's name. Keep the reply until its bytes are sent, because dropping it
    /// ends the charge for its memory.
    ///
    /// # Errors
    /// `unauthenticated`, `permission_denied`; `overloaded` if there is no memory for the reply, or `partly_written` if it is
    /// the reply of a traversal that wrote; errors of the backend.
    pub async fn call(&self, question: Question, options: QueryOptions) -> Result<ChargedReply, QueryError> {
        if self.is_given_up() {
            return Err(given_up());
        }
        self.allowed(self.rights.check_question(&question))?;
        let _under_way = self.connected.request();
        let options = QueryOptions { door: Some(self.names.name), ..options };
        let reply = self.backend.call(Arc::new(Request { question, options })).await?;
        let bytes = bytes(&reply);
        let wrote = matches!(&reply, Reply::Gremlin(answer) if answer.wrote);
        let charged = self.charge(reply, bytes);
        charged.map_err(|error| if wrote { QueryError::results_lost(error) } else { error })
    }

    /// Charges `bytes` to the memory for replies, for a reply or a part of it.
    ///
    /// # Errors
    /// `overloaded` if there is no memory for it.
    pub(crate) fn charge<T>(&self, reply: T, bytes: usize) -> Result<ChargedReply<T>, QueryError> {
        let charge = self.connected.charge_reply(bytes);
        let charge = charge.map_err(|status| QueryError::from_status(&status))?;
        Ok(ChargedReply { reply, _charge: charge })
    }

    /// The result of a check of rights. Counts a refusal.
    fn allowed(&self, checked: Result<(), Status>) -> Result<(), QueryError> {
        checked.map_err(|status| {
            self.note_refusal();
            QueryError::from_status(&status)
        })
    }

    /// Gives the peer the identity of the subject that has this token.
    ///
    /// # Errors
    /// `unauthenticated` if no subject has the token, `bad_request` if this process has no access file. The peer then keeps
    /// its identity.
    pub fn authenticate(&mut self, token: &[u8]) -> Result<(), QueryError> {
        if self.is_given_up() {
            return Err(given_up());
        }
        let (code, message, help) = match self.rights.authenticate(DEFAULT_USER, token) {
            Ok(()) => {
                self.refusals.store(0, Ordering::Relaxed);
                self.connected.is_known_now();
                return Ok(());
            }
            Err(AuthError::NothingToProve) => {
                (ErrorCode::BadRequest, "this process has no tokens", "send requests without one")
            }
            Err(AuthError::Wrong) => {
                self.auth_failures.increment(1);
                self.note_refusal();
                (ErrorCode::Unauthenticated, "no subject has this token", "ask an administrator for one")
            }
        };
        Err(QueryError::Remote { code, message: message.to_owned(), help: help.to_owned() })
    }

    /// Counts a refusal. An unauthenticated peer is disconnected after some refusals, because each one is a line of the audit
    /// log.
    fn note_refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        if self.is_given_up() {
            self.end.cancel();
        }
    }

    fn is_given_up(&self) -> bool {
        STRANGER_MESSAGES_MAX <= self.refusals.load(Ordering::Relaxed) && !self.rights.is_known()
    }

    /// Gives the peer back the identity that the connection itself has.
    pub fn forget_token(&mut self) {
        self.rights.reset();
    }

    /// The types of a store's keys and values.
    ///
    /// # Errors
    /// As [`DoorCaller::call`].
    pub async fn shape(&self, store: &str) -> Result<StoreShape, QueryError> {
        let question = Question::Shape { store: store.to_owned() };
        match &*self.call(question, QueryOptions::default()).await? {
            Reply::Shape(shape) => Ok(*shape),
            other => Err(QueryError::Internal { detail: format!("a shape was answered by {other:.60?}") }),
        }
    }

    /// Parses the texts of keys by the key type of the store.
    ///
    /// # Errors
    /// As [`DoorCaller::call`]; `wrong_key_type` if the store's keys are ids and one of the texts is not a number.
    pub async fn keys(&self, store: &str, texts: &[&str]) -> Result<BatchKeys, QueryError> {
        let expected = self.shape(store).await?.key;
        let id = |text: &&str| {
            let wrong = |_| QueryError::WrongKeys { store: store.to_owned(), expected, got: "text" };
            text.parse::<u64>().map_err(wrong)
        };
        Ok(match expected {
            KeyType::Id => BatchKeys::Ids(texts.iter().map(id).collect::<Result<_, _>>()?),
            KeyType::String | KeyType::Bytes => BatchKeys::Bytes(texts.iter().collect()),
        })
    }

    /// The schema of the records of a version; `id` is the one that an answer of that version names.
    ///
    /// # Errors
    /// As [`DoorCaller::call`].
    pub async fn schema(&self, store: &str, version: u64, id: SchemaId) -> Result<Schema, QueryError> {
        let question = Question::Schema { store: store.to_owned(), version, id };
        match &*self.call(question, QueryOptions::default()).await? {
            Reply::Schema(schema) => Ok(schema.clone()),
            other => Err(QueryError::Internal { detail: format!("a schema was answered by {other:.60?}") }),
        }
    }

    /// The value of the key at `index` of an answer, with records as JSON. `None` means that the store provably lacks the key.
    ///
    /// # Errors
    /// If the key has no proven answer, or the schema of its record is unavailable.
    pub async fn text(&self, answer: &BatchAnswer, index: usize) -> Result<Option<Vec<u8>>, QueryError> {
        let internal = |detail: String| QueryError::Internal { detail };
        let bytes = match answer.records.get(index) {
            Some(Record::Found(bytes)) => bytes,
            Some(Record::Absent) => return Ok(None),
            Some(Record::Unanswered) => return Err(self.backend.unanswered(&answer.missing_partitions)),
            Some(Record::Error(error)) => {
                let (code, help) = (error.code(), "look at `kith cluster status`".to_owned());
                let message = format!("the value of a key cannot be read: {code}");
                return Err(QueryError::Remote { code, message, help });
            }
            Some(Record::Unsent) | None => return Err(internal("a key has no answer".to_owned())),
        };
        let (Some(id), Some((store, version))) = (answer.schema, answer.served.first()) else {
            return Ok(Some(bytes.to_vec()));
        };
        let schema = self.schema(store, *version, id).await?;
        let json = RecordView::new(&schema, bytes).and_then(|record| record.to_json());
        json.map(|json| Some(json.into_bytes())).map_err(|fault| internal(fault.to_string()))
    }

    /// The peer's identity and rights.
    pub fn rights(&self) -> &CallerRights {
        &self.rights
    }

    /// The peer's place among the connections of the process, which accounts for the memory of its requests and replies.
    pub fn connected(&self) -> &Arc<OpenConnection> {
        &self.connected
    }

    /// The address of the peer.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Cancelled when the connection must end after the requests that are under way.
    pub fn end(&self) -> &CancellationToken {
        &self.end
    }
}

/// The error for an unauthenticated peer that was refused too often.
fn given_up() -> QueryError {
    QueryError::Remote {
        code: ErrorCode::Unauthenticated,
        message: "too many requests before a token: closing the connection".to_owned(),
        help: "send a token first".to_owned(),
    }
}

/// Roughly how many bytes the variable part of a reply takes.
fn bytes(reply: &Reply) -> usize {
    match reply {
        Reply::Values(_) | Reply::Computed(_) | Reply::Aggregated(_) => {
            reply.batch().map_or(0, |batch| batch.records.value_bytes() as usize)
        }
        Reply::Graph(answered) => answered.answer.bytes(),
        Reply::Gremlin(answer) => answer.results.len(),
        Reply::Plan(_) | Reply::Written(_) | Reply::Shape(_) | Reply::Schema(_) => 0,
    }
}
