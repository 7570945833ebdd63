//! Tests of what the listener does for every door. The door of these tests answers each line with the key type of the store
//! that the line names.

use crate::{
    Backend, CONNECTIONS_MAX, CallerRights, Door, DoorCaller, DoorNames, Stream, listener::Listener, spawn,
};
use futures::{FutureExt, future, future::BoxFuture};
use kith_net::server::{
    self,
    connections::{ConnectionSettings, Connections, testing::known},
    security::{Caller, CallerIdentity, Security, testing::gate},
};
use kith_query::{BatchStream, QueryError, Reply, Request, Service, StoreShape};
use kith_schema::{KeyType, ValueType};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicU64, atomic::Ordering},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream, duplex},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
struct Shapes;

impl Door for Shapes {
    fn names(&self) -> DoorNames {
        DoorNames {
            name: "shapes",
            protocol: "shapes",
            client: "a client",
            no_room: b"full\n",
            tls_required: b"tls\n",
        }
    }

    fn serve<'a>(
        self: Arc<Self>,
        stream: &'a mut Stream,
        caller: DoorCaller,
    ) -> BoxFuture<'a, io::Result<()>> {
        async move {
            let mut stream = BufStream::new(stream);
            let mut line = String::new();
            while stream.read_line(&mut line).await? != 0 {
                let reply = match caller.shape(line.trim()).await {
                    Ok(shape) => shape.key.to_string(),
                    Err(error) => error.code().name().to_owned(),
                };
                line.clear();
                stream.write_all(format!("{reply}\n").as_bytes()).await?;
                stream.flush().await?;
            }
            Ok(())
        }
        .boxed()
    }
}

/// A backend whose stores all have ids as keys. It counts its requests.
#[derive(Default)]
struct Ids(AtomicU64);

impl Service for Ids {
    fn call(&self, request: Arc<Request>) -> BoxFuture<'_, Result<Reply, QueryError>> {
        assert_eq!(request.options.door, Some("shapes"));
        self.0.fetch_add(1, Ordering::Relaxed);
        future::ready(self.shape_of(request.question.of()).map(Reply::Shape)).boxed()
    }

    fn stream(&self, _: Arc<Request>) -> BatchStream<'_> {
        panic!("nobody streams")
    }
}

impl Backend for Ids {
    fn role(&self) -> &'static str {
        "router"
    }

    fn stores(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    fn shape_of(&self, _: &str) -> Result<StoreShape, QueryError> {
        Ok(StoreShape { key: KeyType::Id, value: ValueType::Text })
    }

    fn fans_out(&self) -> bool {
        false
    }
}

fn listener(stop: &CancellationToken, backend: &Arc<Ids>) -> Listener {
    Listener::new(Arc::new(Shapes), Arc::clone(backend) as Arc<dyn Backend>, None, stop.clone())
}

#[test]
fn more_than_so_many_are_turned_away() {
    let listener = listener(&CancellationToken::new(), &Arc::default());
    let mut all: Vec<_> = (0..CONNECTIONS_MAX).map(|_| listener.enter().expect("there is room")).collect();
    assert!(listener.enter().is_none());
    all.pop();
    assert!(listener.enter().is_some());
}

#[tokio::test]
async fn a_stranger_is_refused_a_few_times_and_asks_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let rights =
        CallerRights::new(gate(folder.path(), Some("")), Caller::new(CallerIdentity::Nobody), "shapes");
    let (mut peer, stream) = duplex(1 << 16);
    let peer_addr = SocketAddr::from(([127, 0, 0, 1], 7));
    let (stop, backend) = (CancellationToken::new(), Arc::default());
    let listener = listener(&stop, &backend);
    let talk = async {
        peer.write_all(&b"pages\n".repeat(100)).await.expect("it reads");
        let mut replies = String::new();
        peer.read_to_string(&mut replies).await.expect("it ends");
        replies
    };
    let (served, replies) = tokio::join!(listener.serve(Box::new(stream), peer_addr, known(), rights), talk);
    served.expect("no failure");
    // The door had read these lines before the end of the stream. They are refused without checking the gate again.
    assert_eq!(replies, "unauthenticated\n".repeat(100));
    assert_eq!(backend.0.load(Ordering::Relaxed), 0);
}

/// Opens a listener that authenticates nobody. Returns its address and its backend.
async fn open(settings: ConnectionSettings, stop: &CancellationToken) -> (SocketAddr, Arc<Ids>) {
    let connections = Connections::new(settings).expect("files enough");
    let addr = SocketAddr::from(([127, 0, 0, 1], 0));
    let bound = server::bind(addr, &connections).await.expect("a port");
    let (addr, backend) = (bound.addr, Arc::<Ids>::default());
    let behind = Arc::clone(&backend) as Arc<dyn Backend>;
    spawn(bound, Arc::new(Shapes), behind, &Security::default(), stop.clone());
    (addr, backend)
}

async fn read(stream: &mut TcpStream) -> String {
    let mut reply = String::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_string(&mut reply));
    read.await.expect("it ends").expect("it is closed in order");
    reply
}

#[tokio::test]
async fn a_connection_that_asks_nothing_is_closed_and_one_that_asks_is_not() {
    let settings =
        ConnectionSettings { idle: Some(Duration::from_millis(400)), ..ConnectionSettings::default() };
    let (addr, backend) = open(settings, &CancellationToken::new()).await;
    let mut idle = TcpStream::connect(addr).await.expect("it listens");
    let mut busy = TcpStream::connect(addr).await.expect("it listens");
    let asks = async {
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            busy.write_all(b"pages\n").await.expect("it is open");
            let mut reply = [0; 3];
            busy.read_exact(&mut reply).await.expect("it is open");
            assert_eq!(&reply, b"id\n");
        }
    };
    let (reply, ()) = tokio::join!(read(&mut idle), asks);
    assert_eq!((reply.as_str(), backend.0.load(Ordering::Relaxed)), ("", 12));
}

#[tokio::test]
async fn the_end_of_the_process_ends_connections_after_their_answers() {
    let stop = CancellationToken::new();
    let (addr, _) = open(ConnectionSettings::default(), &stop).await;
    let mut stream = TcpStream::connect(addr).await.expect("it listens");
    stream.write_all(b"pages\n").await.expect("it reads");
    let mut reply = [0; 3];
    stream.read_exact(&mut reply).await.expect("an answer");
    stop.cancel();
    assert_eq!(read(&mut stream).await, "");
}

#[tokio::test]
async fn who_comes_when_all_places_are_taken_learns_so_in_words_of_the_door() {
    let settings = ConnectionSettings { open_max: Some(1), ..ConnectionSettings::default() };
    let (addr, _) = open(settings, &CancellationToken::new()).await;
    let mut first = TcpStream::connect(addr).await.expect("it listens");
    first.write_all(b"pages\n").await.expect("it reads");
    let mut reply = [0; 3];
    first.read_exact(&mut reply).await.expect("an answer");
    let mut second = TcpStream::connect(addr).await.expect("it listens");
    assert_eq!(read(&mut second).await, "full\n");
}
