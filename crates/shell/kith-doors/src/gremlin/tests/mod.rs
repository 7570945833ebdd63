//! Tests of whole connections, with the client side of a WebSocket library and a service that evaluates nothing.

mod authentication;
mod connections;
mod exchanges;
mod requests;

use super::*;
use crate::{Backend, CallerRights, listener::Listener};
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use kith_gremlin::{
    bytecode::{Bytecode, Instruction},
    graphbinary::{Reader, Writer, write_value},
    value::{Map, Value},
};
use kith_net::server::connections::{
    OpenConnection,
    testing::{known, known_hasty, known_within},
};
use kith_query::{
    BatchStream, EarlyResults, GremlinAnswer, GremlinTraversal, QueryError, Question, Reply, Request,
    ServedGraph, ServedState, Service, StoreShape, gremlin::Traversal,
};
use kith_types::ErrorCode;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    sync::Semaphore,
    task::JoinHandle,
};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const GRAPHBINARY: &str = "application/vnd.graphbinary-v1.0";

/// A service that knows what to answer by the first step of a traversal, and remembers what it was asked.
struct Graphs {
    asked: Mutex<Vec<Request>>,
    under_way: AtomicUsize,
    /// `slow` needs one permit.
    gate: Semaphore,
}

impl Graphs {
    fn new() -> Arc<Self> {
        let gate = Semaphore::new(0);
        Arc::new(Self { asked: Mutex::default(), under_way: AtomicUsize::new(0), gate })
    }

    /// The last traversal that was asked for, as text, and its graph.
    fn last(&self) -> (String, String) {
        let asked = self.asked.lock();
        let Question::Gremlin { graph, query } = &asked.last().expect("a request").question else {
            panic!("no traversal");
        };
        (graph.clone(), Value::Traversal(bytecode(&query.traversal)).to_string())
    }

    /// The results of a traversal whose first step has this name and these arguments.
    async fn results(
        &self,
        name: &str,
        arguments: &[Value],
        early: Option<&EarlyResults>,
    ) -> Result<Vec<(Value, i64)>, QueryError> {
        let count = |value: Option<&Value>| match value {
            Some(Value::Int(count)) => i64::from(*count),
            Some(Value::Long(count)) => *count,
            _ => 0,
        };
        match name {
            // Its arguments, once each.
            "inject" => Ok(arguments.iter().map(|value| (value.clone(), 1)).collect()),
            // One value, as often as its argument says.
            "V" if !arguments.is_empty() => Ok(vec![(Value::text("x"), count(arguments.first()))]),
            "V" => {
                let _permit = self.gate.acquire().await.expect("never closed");
                Ok(vec![(Value::Int(1), 1)])
            }
            // Its arguments as soon as they are taken, and 0 in the end, which the gate delays. It fails if the last argument is null.
            "E" if !arguments.is_empty() => {
                let (mut left, fails) = (arguments.iter().peekable(), arguments.last() == Some(&Value::Null));
                while let Some(early) = early
                    && let Some(value) = left.next_if(|_| early.would_take(1))
                {
                    early.give(coded(vec![(value.clone(), 1)]));
                }
                let _permit = self.gate.acquire().await.expect("never closed");
                let left = left.cloned().chain([Value::Int(0)]).map(|value| (value, 1)).collect();
                if fails { Err(QueryError::DeadlineExceeded { deadline_ms: 5 }) } else { Ok(left) }
            }
            "E" => Err(QueryError::DeadlineExceeded { deadline_ms: 5 }),
            // A text of as many bytes as its argument says, after a write.
            "addV" if !arguments.is_empty() => {
                Ok(vec![(Value::text("x".repeat(count(arguments.first()) as usize)), 1)])
            }
            // It fails as if by `fail()`.
            "union" => Err(QueryError::Remote {
                code: ErrorCode::TraversalFailed,
                message: "no such luck".to_owned(),
                help: String::new(),
            }),
            _ => Err(QueryError::Overloaded { detail: "too much".to_owned() }),
        }
    }
}

/// Results as a service returns them.
fn coded(results: Vec<(Value, i64)>) -> Bytes {
    let traverser = |(value, bulk)| Value::Traverser { bulk, value: Arc::new(value) };
    let results = Value::list(results.into_iter().map(traverser).collect::<Vec<_>>());
    write_value(&results).expect("short").into()
}

/// The bytecode of a traversal, which the door has passed on as a value.
fn bytecode(traversal: &GremlinTraversal) -> Arc<Bytecode> {
    let GremlinTraversal::Decoded(decoded) = traversal else { panic!("it is coded") };
    let decoded: &Traversal = decoded.value().expect("a traversal");
    Arc::clone(&decoded.bytecode)
}

/// Counts a request until it is dropped.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Service for Graphs {
    fn call(&self, request: Arc<Request>) -> BoxFuture<'_, Result<Reply, QueryError>> {
        async move {
            self.under_way.fetch_add(1, Ordering::SeqCst);
            let _under_way = UnderWay(&self.under_way);
            self.asked.lock().push(Request::clone(&request));
            let Question::Gremlin { graph, query } = &request.question else { panic!("no traversal") };
            let bytecode = bytecode(&query.traversal);
            let step = &bytecode.steps[0];
            let early = request.options.early.as_ref();
            let results = self.results(&step.name, &step.arguments, early).await?;
            Ok(Reply::Gremlin(GremlinAnswer {
                results: coded(results),
                served: ServedGraph { name: graph.clone(), state: ServedState::Version(1) },
                profile: None,
                metrics: None,
                wrote: &*step.name == "addV",
                warnings: Vec::new(),
            }))
        }
        .boxed()
    }

    fn stream(&self, _: Arc<Request>) -> BatchStream<'_> {
        panic!("nobody streams")
    }
}

impl Backend for Graphs {
    fn role(&self) -> &'static str {
        "router"
    }

    fn shape_of(&self, _: &str) -> Result<StoreShape, QueryError> {
        panic!("the door asks for no shapes")
    }
}

/// One connection, and the service behind it.
struct Connection {
    graphs: Arc<Graphs>,
    stop: CancellationToken,
    task: JoinHandle<io::Result<()>>,
}

/// Opens a connection of `caller`. Returns the stream of the client.
fn connect(rights: CallerRights, connected: Arc<OpenConnection>) -> (DuplexStream, Connection) {
    let (stop, graphs) = (CancellationToken::new(), Graphs::new());
    let backend = Arc::clone(&graphs) as Arc<dyn Backend>;
    let listener = Listener::new(Arc::new(Gremlin), backend, None, stop.clone());
    let (client, stream) = duplex(1 << 16);
    let peer = SocketAddr::from(([127, 0, 0, 1], 7));
    let task = tokio::spawn(async move { listener.serve(Box::new(stream), peer, connected, rights).await });
    (client, Connection { graphs, stop, task })
}

/// A driver.
struct Driver {
    socket: WebSocketStream<DuplexStream>,
    connection: Connection,
}

/// The answer to a request: the codes of its responses, its values, and the last message.
#[derive(Debug, Default, PartialEq)]
struct ReceivedReply {
    codes: Vec<i64>,
    values: Vec<Value>,
    message: String,
    attributes: Map,
}

impl ReceivedReply {
    fn is_over(&self) -> bool {
        self.codes.last().is_some_and(|code| ![206, 407].contains(code))
    }
}

impl Driver {
    async fn new() -> Self {
        Self::of(CallerRights::anybody()).await
    }

    async fn of(rights: CallerRights) -> Self {
        Self::at(rights, known()).await
    }

    async fn at(rights: CallerRights, connected: Arc<OpenConnection>) -> Self {
        let (client, connection) = connect(rights, connected);
        let (socket, _) = client_async("ws://localhost/gremlin", client).await.expect("accepted");
        Self { socket, connection }
    }

    async fn send(&mut self, message: Message) {
        self.socket.send(message).await.expect("it reads");
    }

    /// Sends a request in GraphBinary.
    async fn ask(&mut self, operation: (&str, &str), arguments: Map) -> Uuid {
        let id = Uuid::from_u128(rand::random());
        self.ask_as(id, operation, arguments).await;
        id
    }

    async fn ask_as(&mut self, id: Uuid, (processor, operation): (&str, &str), arguments: Map) {
        let mut writer = Writer::default();
        writer.byte(0x81);
        writer.uuid(id);
        writer.string(operation).expect("short");
        writer.string(processor).expect("short");
        writer.map(&arguments).expect("short");
        let head = [&[GRAPHBINARY.len() as u8], GRAPHBINARY.as_bytes()].concat();
        self.send(Message::Binary([head, writer.into_bytes()].concat().into())).await;
    }

    async fn eval(&mut self, text: &str) -> Uuid {
        self.ask(("", "eval"), map(&[("gremlin", Value::text(text))])).await
    }

    /// The answer to this text.
    async fn reply_to(&mut self, text: &str) -> ReceivedReply {
        let id = self.eval(text).await;
        self.until_over(&[id]).await.remove(&id).expect("it was asked")
    }

    /// Reads responses until each of these requests has ended.
    async fn until_over(&mut self, ids: &[Uuid]) -> HashMap<Uuid, ReceivedReply> {
        let mut replies: HashMap<Uuid, ReceivedReply> =
            ids.iter().map(|id| (*id, ReceivedReply::default())).collect();
        while !replies.values().all(ReceivedReply::is_over) {
            let (id, code, response) = self.read().await;
            let reply = replies.get_mut(&id).expect("an answer to a request");
            assert!(!reply.is_over(), "one more response: {response:?}");
            reply.codes.push(code);
            reply.values.extend(response.values);
            (reply.message, reply.attributes) = (response.message, response.attributes);
        }
        replies
    }

    async fn message(&mut self) -> Message {
        let message = tokio::time::timeout(Duration::from_secs(20), self.socket.next());
        message.await.expect("in time").expect("an answer").expect("no error")
    }

    /// One response in GraphBinary.
    async fn read(&mut self) -> (Uuid, i64, ReceivedReply) {
        let Message::Binary(bytes) = self.message().await else { panic!("no frame of bytes") };
        let mut reader = Reader::new(&bytes);
        assert_eq!((reader.byte(), reader.byte()), (Ok(0x81), Ok(0)));
        let id = reader.uuid().expect("an id");
        let code = reader.i32().expect("a code");
        assert_eq!(reader.byte(), Ok(0));
        let message = reader.string().expect("a message").to_string();
        let attributes = reader.map().expect("attributes");
        reader.map().expect("meta data");
        let values = match reader.value().expect("data") {
            Value::List(values) => values.to_vec(),
            Value::Null => Vec::new(),
            other => panic!("data are a list, not {other:?}"),
        };
        reader.finish().expect("the end");
        (id, code.into(), ReceivedReply { codes: Vec::new(), values, message, attributes })
    }
}

fn map(entries: &[(&str, Value)]) -> Map {
    entries.iter().map(|(name, value)| (Value::text(*name), value.clone())).collect()
}

fn aliases(graph: &str) -> (&'static str, Value) {
    ("aliases", Value::Map(Arc::new(map(&[("g", Value::text(graph))]))))
}

/// A traversal with one step.
fn traversal(name: &str, arguments: Vec<Value>) -> Value {
    let steps = vec![Instruction::new(name, arguments)];
    Value::Traversal(Arc::new(Bytecode { sources: Vec::new(), steps }))
}
