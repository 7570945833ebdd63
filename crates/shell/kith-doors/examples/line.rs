//! A door for a protocol of one's own, in lines of text: `get STORE KEY`, `degree GRAPH ID`, `auth TOKEN`. `cargo run -p
//! kith-doors --example line -- ROUTER LISTEN` opens it in front of the cluster of a router.

use futures::{FutureExt, SinkExt, StreamExt, future::BoxFuture};
use kith_doors::{Backend, ChargedReply, Door, DoorCaller, DoorNames, Stream, spawn};
use kith_net::server::{bind, connections::Connections, security::Security};
use kith_query::{
    BatchStream, DegreeQuery, GraphAnswer::Degrees, GraphQuery, Operation, QueryAnswer, QueryError,
    QueryOptions, Question, Reply, Request, Service, StoreShape,
};
use kith_session::{Session, SessionSettings};
use std::{env, error::Error, io, sync::Arc};
use tokio_util::{codec::Framed, codec::LinesCodec, sync::CancellationToken};

#[derive(Debug)]
pub(crate) struct Line;

impl Door for Line {
    fn names(&self) -> DoorNames {
        let (no_room, tls_required) = (b"error too_many_connections: come later\n", b"error tls_required\n");
        DoorNames { name: "line", protocol: "line", client: "a line client", no_room, tls_required }
    }

    fn serve<'a>(
        self: Arc<Self>,
        stream: &'a mut Stream,
        mut caller: DoorCaller,
    ) -> BoxFuture<'a, io::Result<()>> {
        let mut lines = Framed::new(stream, LinesCodec::new_with_max_length(8 << 10));
        async move {
            while let Some(line) = lines.next().await {
                // The reply is kept until its text is sent. Until then it counts as memory for replies.
                let answered = answer(&line.map_err(io::Error::other)?, &mut caller).await;
                let outcome =
                    answered.unwrap_or_else(|error| (format!("error {}: {error}", error.code()), None));
                lines.send(outcome.0.replace('\n', "\\n")).await.map_err(io::Error::other)?;
            }
            Ok(())
        }
        .boxed()
    }
}

async fn answer(line: &str, caller: &mut DoorCaller) -> Result<(String, Option<ChargedReply>), QueryError> {
    let wrong = |detail: &str| QueryError::BadRequest { detail: detail.to_owned() };
    let question = match *line.split_whitespace().collect::<Vec<_>>() {
        ["auth", token] => return caller.authenticate(token.as_bytes()).map(|()| ("ok".to_owned(), None)),
        ["get", store, key] => {
            Question::Values { keys: caller.keys(store, &[key]).await?, store: store.to_owned() }
        }
        ["degree", graph, id] => {
            let ids = vec![id.parse().map_err(|_| wrong("an id is a number"))?];
            let operation = Operation::Degree(DegreeQuery { ids, filter: None });
            let (edge_type, direction, workflow) = Default::default();
            let query = GraphQuery { operation, edge_type, direction, workflow };
            Question::Graph { graph: graph.to_owned(), query }
        }
        _ => return Err(wrong("write `get STORE KEY`, `degree GRAPH ID` or `auth TOKEN`")),
    };
    let reply = caller.call(question, QueryOptions::default()).await?;
    let value = match &*reply {
        Reply::Graph(QueryAnswer { answer: Degrees(degrees), .. }) => {
            degrees[0].map(|it| it.to_string().into())
        }
        Reply::Values(answer) => caller.text(answer, 0).await?,
        _ => None,
    };
    let text = value.map_or("(none)".to_owned(), |value| String::from_utf8_lossy(&value).into_owned());
    Ok((text, Some(reply)))
}

/// A backend that reaches a cluster over the network. A door in a router needs none: see `RouterOptions::doors`.
struct Cluster(Session);

impl Service for Cluster {
    fn call(&self, request: Arc<Request>) -> BoxFuture<'_, Result<Reply, QueryError>> {
        self.0.call(request)
    }

    fn stream(&self, request: Arc<Request>) -> BatchStream<'_> {
        self.0.stream(request)
    }
}

impl Backend for Cluster {
    fn role(&self) -> &'static str {
        "client"
    }

    fn shape_of(&self, store: &str) -> Result<StoreShape, QueryError> {
        let topology = self.0.topology();
        let store = topology.store(store)?;
        Ok(StoreShape { key: store.key, value: store.value })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [router, listen] = arguments.as_slice() else { return Err("usage: line ROUTER LISTEN".into()) };
    let session = Session::connect(vec![router.clone()], SessionSettings::default()).await?;
    let bound = bind(listen.parse()?, &Connections::new(Default::default())?).await?;
    println!("listening on {}", bound.addr);
    let (security, never) = (Security::default(), CancellationToken::new());
    spawn(bound, Arc::new(Line), Arc::new(Cluster(session)), &security, never).wait().await;
    Ok(())
}
