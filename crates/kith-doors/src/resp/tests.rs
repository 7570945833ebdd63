//! Whole connections over a pair of streams in memory, with stores that need no cluster.

use super::{connection, endpoint::Endpoint, visitor::Visitor};
use crate::Backend;
use futures::{FutureExt, future::BoxFuture};
use kith_api::{
    BatchAnswer, BatchKeys, BatchStream, QueryError, Question, Reply, Request, Service, StoreShape,
};
use kith_net::server::{
    connections::testing::{known, known_within},
    security::{Caller, Identity, testing::gate},
};
use kith_ops::{RecordError, RecordsBuilder};
use kith_schema::{KeyType, RecordWriter, Scalar, Schema, ValueType};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    sync::Semaphore,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

/// Damaged, and held by nobody.
const DAMAGED: u64 = 13;
const UNANSWERED: u64 = 14;
const UNANSWERED_REPLY: &str = "-ERR partitions_unavailable: no replica of partition 5 answered in time (look at `kith cluster status`)\r\n";
const SCHEMA: &str = r#"{"fields":[{"name":"n","type":"u64"}]}"#;

/// `ids` and `texts` have a value for every key that is no multiple of ten; `people` have records; `large` has long values; of `huge` there is room
/// for two in an answer.
struct Stores {
    reads: AtomicU64,
    /// One permit is needed for each read.
    gate: Semaphore,
}

impl Stores {
    fn new(reads: usize) -> Arc<Self> {
        Arc::new(Self { reads: AtomicU64::new(0), gate: Semaphore::new(reads) })
    }

    fn open() -> Arc<Self> {
        Self::new(Semaphore::MAX_PERMITS)
    }
}

impl Backend for Stores {
    fn role(&self) -> &'static str {
        "router"
    }

    fn stores(&self) -> Vec<(String, u64)> {
        vec![("ids".to_owned(), 3)]
    }

    fn shape_of(&self, store: &str) -> Result<StoreShape, QueryError> {
        let value = if store == "people" { ValueType::Record } else { ValueType::Bytes };
        let key = match store {
            "ids" | "people" | "large" | "huge" => KeyType::Id,
            "texts" => KeyType::String,
            name => {
                let known = vec!["ids".to_owned()];
                return Err(QueryError::UnknownStore { name: name.to_owned(), known });
            }
        };
        Ok(StoreShape { key, value })
    }

    fn fans_out(&self) -> bool {
        false
    }
}

impl Service for Stores {
    fn call(&self, request: Arc<Request>) -> BoxFuture<'_, Result<Reply, QueryError>> {
        async move {
            match &request.question {
                Question::Values { store, keys } => {
                    assert!(request.options.partial && request.options.door == Some("resp"));
                    self.values(store, keys).await
                }
                Question::Schema { store, .. } if store == "people" => Ok(Reply::Schema(schema())),
                other => panic!("RESP asks no {other:?}"),
            }
        }
        .boxed()
    }

    fn stream(&self, _: Arc<Request>) -> BatchStream<'_> {
        panic!("RESP streams nothing")
    }
}

impl Stores {
    async fn values(&self, store: &str, keys: &BatchKeys) -> Result<Reply, QueryError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.gate.acquire().await.expect("never closed").forget();
        if store == "huge" && 2 < keys.len() {
            return Err(QueryError::TooLarge { max: 2 });
        }
        let schema = (store == "people").then(schema);
        let mut records = RecordsBuilder::with_capacity(0);
        for place in 0..keys.len() {
            let key = match keys {
                BatchKeys::Ids(ids) => ids[place],
                BatchKeys::Bytes(keys) => keys.get(place).len() as u64,
            };
            match key {
                DAMAGED => records.error(RecordError::Damaged),
                UNANSWERED => records.unanswered(),
                key if key % 10 == 0 => records.absent(),
                key => assert!(records.found(&value(store, key, schema.as_ref()))),
            }
        }
        let records = records.finish();
        let missing_partitions = if records.counts().unanswered == 0 { vec![] } else { vec![5] };
        let served = vec![(store.to_owned(), 3)];
        let schema = schema.map(|schema| schema.id());
        Ok(Reply::Values(BatchAnswer { records, missing_partitions, served, profile: None, schema }))
    }
}

fn schema() -> Schema {
    SCHEMA.parse().expect("a schema")
}

fn value(store: &str, key: u64, schema: Option<&Schema>) -> Vec<u8> {
    match schema {
        Some(schema) => {
            let mut writer = RecordWriter::new(schema);
            writer.set(0, Scalar::U64(key)).expect("a number");
            let mut record = Vec::new();
            writer.finish(&mut record).expect("a record");
            record
        }
        None if store == "large" => vec![b'x'; 20_000],
        None => format!("v{key}").into_bytes(),
    }
}

/// A connection, and its end.
struct Conversation {
    peer: DuplexStream,
    stop: CancellationToken,
    served: JoinHandle<std::io::Result<()>>,
}

impl Conversation {
    fn with(stores: &Arc<Stores>, buffer_bytes: usize) -> Self {
        Self::of(Visitor::anybody(), stores, buffer_bytes)
    }

    fn of(visitor: Visitor, stores: &Arc<Stores>, buffer_bytes: usize) -> Self {
        let (peer, stream) = duplex(buffer_bytes);
        let addr = SocketAddr::from(([127, 0, 0, 1], 7));
        let endpoint = Endpoint::new(Arc::clone(stores) as Arc<dyn Backend>, addr);
        let connected = endpoint.connect(addr);
        let place = known();
        let stop = CancellationToken::new();
        let served =
            tokio::spawn(connection::serve(stream, connected, place, endpoint, visitor, stop.clone()));
        Self { peer, stop, served }
    }

    fn start() -> Self {
        Self::with(&Stores::open(), 1 << 20)
    }

    /// Sends bytes in these pieces, and no more after them: all that comes back.
    async fn exchange(self, pieces: &[&[u8]]) -> Vec<u8> {
        let (mut reader, mut writer) = tokio::io::split(self.peer);
        let write = async {
            for piece in pieces {
                // It may have hung up.
                if writer.write_all(piece).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            let _ = writer.shutdown().await;
        };
        let mut replies = Vec::new();
        let (_, read) = tokio::join!(write, reader.read_to_end(&mut replies));
        read.expect("replies can be read");
        self.served.await.expect("no panic").expect("no failure of the stream");
        replies
    }

    /// Sends lines, as inline commands: the replies as text.
    async fn say(self, lines: &str) -> String {
        String::from_utf8(self.exchange(&[lines.as_bytes()]).await).expect("text")
    }
}

async fn said(lines: &str) -> String {
    Conversation::start().say(lines).await
}

fn get(key: &str) -> Vec<u8> {
    format!("*2\r\n$3\r\nGET\r\n${}\r\n{key}\r\n", key.len()).into_bytes()
}

#[tokio::test]
async fn values_absence_and_failure_are_told_apart() {
    assert_eq!(said("GET ids:7\r\nget ids:20\r\n").await, "$2\r\nv7\r\n$-1\r\n");
    assert_eq!(said("GET texts:a:b\r\n").await, "$2\r\nv3\r\n");
    assert_eq!(said("GET people:7\r\nSTRLEN people:7\r\n").await, "$7\r\n{\"n\":7}\r\n:7\r\n");
    assert_eq!(said("STRLEN ids:7\r\nSTRLEN ids:20\r\n").await, ":2\r\n:0\r\n");
    assert_eq!(said("EXISTS ids:7 ids:20 ids:7 texts:a\r\n").await, ":3\r\n");
    assert!(said("GET ids:13\r\n").await.starts_with("-ERR damaged: "));
    assert_eq!(said("GET ids:14\r\n").await, UNANSWERED_REPLY);
    assert!(said("EXISTS ids:14 ids:7\r\n").await.starts_with("-ERR partitions_unavailable"));
}

#[tokio::test]
async fn one_command_reads_any_stores_and_fails_as_a_whole() {
    let all = said("MGET ids:1 texts:ab people:3 ids:10 ids:1\r\n").await;
    assert_eq!(all, "*5\r\n$2\r\nv1\r\n$2\r\nv2\r\n$7\r\n{\"n\":3}\r\n$-1\r\n$2\r\nv1\r\n");
    let failed = said("MGET ids:1 ids:14 ids:2\r\nMGET ids:1\r\nMGET nowhere:1 ids:1\r\n").await;
    assert_eq!(
        failed,
        format!(
            "{UNANSWERED_REPLY}*1\r\n$2\r\nv1\r\n\
             -ERR unknown_store: there is no store \"nowhere\" (stores of values: ids)\r\n"
        )
    );
}

#[tokio::test]
async fn commands_that_are_too_large_together_are_answered_one_by_one() {
    let stores = Stores::open();
    let lines = "PING\r\nGET huge:1\r\nMGET huge:2 ids:3 huge:20 texts:ab\r\nMGET huge:1 huge:2 huge:3\r\nFOO\r\nSTRLEN huge:12\r\nEXISTS huge:1 huge:2\r\nGET ids:7\r\n";
    let told = Conversation::with(&stores, 1 << 20).say(lines).await;
    let told: Vec<&str> = told.split("\r\n").collect();
    assert_eq!(told[..11], ["+PONG", "$2", "v1", "*4", "$2", "v2", "$2", "v3", "$-1", "$2", "v2"]);
    assert!(told[11].starts_with("-ERR too_large: "), "{}", told[11]);
    assert!(told[12].starts_with("-ERR unknown command 'FOO'"), "{}", told[12]);
    assert_eq!(told[13..], [":3", ":2", "$2", "v7", ""]);
    // Together three groups, then each command alone.
    assert_eq!(stores.reads.load(Ordering::Relaxed), 3 + 1 + 3 + 1 + 1 + 1 + 1);
}

#[tokio::test]
async fn a_round_for_which_there_is_no_memory_is_refused_and_the_connection_goes_on() {
    let addr = SocketAddr::from(([127, 0, 0, 1], 7));
    let endpoint = Endpoint::new(Stores::open(), addr);
    let connected = endpoint.connect(addr);
    let place = known_within(30_000);
    let (mut peer, stream) = duplex(1 << 20);
    let stop = CancellationToken::new();
    let served = connection::serve(stream, connected, Arc::clone(&place), endpoint, Visitor::anybody(), stop);
    let served = tokio::spawn(served);
    let mut told = [0; 1_000];
    for (sent, begins) in [
        ("MGET large:1 large:2\r\n", "-ERR overloaded: replies that wait"),
        ("GET ids:1\r\n", "$2\r\nv1\r\n"),
    ] {
        peer.write_all(sent.as_bytes()).await.expect("it reads");
        let length = peer.read(&mut told).await.expect("it answers");
        let told = String::from_utf8_lossy(&told[..length]);
        assert!(told.starts_with(begins), "{told}");
    }
    assert_eq!(place.reply_bytes(), 0, "what was charged is given back");
    served.abort();
}

#[tokio::test]
async fn keys_that_cannot_be_are_refused_before_anything_is_read() {
    let stores = Stores::open();
    let told = Conversation::with(&stores, 1 << 20)
        .say("GET ids\r\nGET ids:x\r\nGET ids:-1\r\nGET ids:18446744073709551616\r\nGET :1\r\n")
        .await;
    let starts: Vec<&str> = told.lines().map(|line| line.split(": ").next().unwrap()).collect();
    let wrong = "-ERR wrong_key_type";
    assert_eq!(starts, ["-ERR bad_request", wrong, wrong, wrong, "-ERR unknown_store"]);
    let long = format!("texts:{}", "k".repeat(64 * 1024 + 1));
    let told = Conversation::with(&stores, 1 << 20).exchange(&[&get(&long)]).await;
    assert!(told.starts_with(b"-ERR out_of_range: "), "{}", told.escape_ascii());
    assert_eq!(said("GET ids:007\r\n").await, "$2\r\nv7\r\n");
}

#[tokio::test]
async fn a_conversation_begins_as_clients_begin_it() {
    let two = said("HELLO\r\nPING\r\n").await;
    assert!(two.starts_with("*14\r\n$6\r\nserver\r\n$4\r\nkith\r\n") && two.ends_with("+PONG\r\n"), "{two}");
    let three = said(
        "GET ids:10\r\nHELLO 3 SETNAME feeds\r\nGET ids:10\r\nCLIENT GETNAME\r\nRESET\r\nGET ids:10\r\n",
    );
    let three = three.await;
    assert!(three.starts_with("$-1\r\n%7\r\n") && three.contains("$5\r\nproto\r\n:3\r\n"), "{three}");
    assert!(three.ends_with("_\r\n$5\r\nfeeds\r\n+RESET\r\n$-1\r\n"), "{three}");
    let refused =
        said("HELLO 4\r\nHELLO x\r\nHELLO 3 AUTH default secret\r\nHELLO 3 LOUD\r\nAUTH secret\r\n").await;
    let lines: Vec<&str> = refused.lines().collect();
    assert_eq!(lines[0], "-NOPROTO unsupported protocol version");
    assert_eq!(lines[1], "-ERR Protocol version is not an integer or out of range");
    assert!(lines[2].starts_with("-ERR AUTH <password> called without any password configured"));
    assert_eq!(lines[3], "-ERR Syntax error in HELLO option 'LOUD'");
    assert_eq!(lines[2], lines[4]);
    let client = said(
        "CLIENT ID\r\nCLIENT GETNAME\r\nCLIENT SETNAME a\r\nCLIENT SETINFO lib-name redis-py\r\nCLIENT LIST\r\nCLIENT KILL x\r\n",
    );
    let client = client.await;
    assert!(client.starts_with(":1\r\n$-1\r\n+OK\r\n+OK\r\n$"), "{client}");
    assert!(client.contains(
        "id=1 addr=127.0.0.1:7 laddr=127.0.0.1:7 name=a age=0 idle=0 db=0 resp=2 lib-name=redis-py lib-ver=\n"
    ));
    assert!(client.ends_with("-ERR unknown subcommand 'KILL'.\r\n"), "{client}");
}

/// A file of rights: `ads`, whose token is "ads-token", may read the store `ids`.
fn access() -> String {
    let hash: String = Sha256::digest("ads-token").iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[[subject]]\nname = \"ads\"\ntoken-sha256 = [\"{hash}\"]\nread = [\"ids\"]\n")
}

/// One who came in by a gate with that file, and showed no certificate.
fn nobody(folder: &Path) -> Visitor {
    let own = Caller::new(Identity::Nobody);
    crate::Visitor::new(gate(folder, Some(&access())), own, "resp").into()
}

/// What one is answered who came in by a gate with that file, and showed no certificate.
async fn said_to_nobody(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let visitor = nobody(folder.path());
    let replies = Conversation::of(visitor, &Stores::open(), 1 << 20).exchange(&[bytes]).await;
    String::from_utf8(replies).expect("text")
}

#[tokio::test]
async fn who_is_known_to_nobody_is_answered_as_by_redis() {
    let told = said_to_nobody(
        b"PING\r\nGET ids:7\r\nGET nowhere\r\nINFO\r\nHELLO 3\r\nFOO\r\nGET\r\nAUTH guess\r\nAUTH eve ads-token\r\n\
          AUTH a b c\r\nHELLO 3 AUTH default guess\r\nRESET\r\nQUIT\r\nPING\r\n",
    );
    let told = told.await;
    let lines: Vec<&str> = told.lines().collect();
    let noauth = "-NOAUTH Authentication required.";
    let wrongpass = "-WRONGPASS invalid username-password pair or user is disabled.";
    assert_eq!(lines[..4], [noauth; 4]);
    assert!(lines[4].starts_with("-NOAUTH HELLO must be called with the client already authenticated"));
    assert!(lines[5].starts_with("-ERR unknown command 'FOO'") && lines[6].starts_with("-ERR wrong number"));
    assert_eq!(lines[7..], [wrongpass, wrongpass, "-ERR syntax error", wrongpass, "+RESET", "+OK"]);
}

#[tokio::test]
async fn who_is_known_to_nobody_is_hung_up_on_after_a_few_commands() {
    let told = said_to_nobody(&b"GET ids:7\r\n".repeat(1_000)).await;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[..16], ["-NOAUTH Authentication required."; 16]);
    assert_eq!(lines[16..], ["-NOAUTH too many commands before AUTH: closing the connection"]);
    // Who is known once more begins anew.
    let told = said_to_nobody(&b"AUTH ads-token\r\nRESET\r\nPING\r\n".repeat(40)).await;
    assert_eq!(told, "+OK\r\n+RESET\r\n-NOAUTH Authentication required.\r\n".repeat(40));
}

#[tokio::test]
async fn a_token_opens_what_its_subject_may_read_until_it_is_put_away() {
    for auth in ["AUTH ads-token", "AUTH ads ads-token", "auth default ads-token"] {
        let lines = format!("{auth}\r\nGET ids:7\r\nPING\r\nRESET\r\nGET ids:7\r\n");
        let told = said_to_nobody(lines.as_bytes()).await;
        let expected = "+OK\r\n$2\r\nv7\r\n+PONG\r\n+RESET\r\n-NOAUTH Authentication required.\r\n";
        assert_eq!(told, expected, "{auth}");
    }
    let hello =
        said_to_nobody(b"HELLO 3 AUTH ads ads-token SETNAME feeds\r\nCLIENT GETNAME\r\nGET ids:10\r\n");
    let hello = hello.await;
    assert!(hello.starts_with("%7\r\n") && hello.ends_with("$5\r\nfeeds\r\n_\r\n"), "{hello}");

    // One store that may not be read, whether it is there or not: the whole command, and no other.
    let told = said_to_nobody(
        b"AUTH ads-token\r\nMGET ids:1 texts:a ids:2\r\nEXISTS nowhere:1\r\nSTRLEN texts:a\r\nMGET ids:1\r\nGET texts:a\r\n",
    );
    let told = told.await;
    let lines: Vec<&str> = told.lines().collect();
    let refused =
        |line: &str, store: &str| line.starts_with(&format!("-NOPERM ads may not read store \"{store}\" ("));
    assert!(refused(lines[1], "texts") && refused(lines[2], "nowhere"), "{told}");
    assert!(refused(lines[3], "texts") && refused(lines[7], "texts"), "{told}");
    assert_eq!(lines[4..7], ["*1", "$2", "v1"]);
}

#[tokio::test]
async fn who_is_known_is_named_in_the_list_of_clients() {
    let told =
        said_to_nobody(b"AUTH ads-token\r\nCLIENT LIST\r\nCLIENT INFO\r\nRESET\r\nCLIENT LIST\r\n").await;
    let named = "id=1 addr=127.0.0.1:7 laddr=127.0.0.1:7 name= age=0 idle=0 db=0 user=ads resp=2 lib-name= lib-ver=\n";
    assert_eq!(told.matches(named).count(), 2, "{told}");
    assert!(told.ends_with("+RESET\r\n-NOAUTH Authentication required.\r\n"), "{told}");
}

#[tokio::test]
async fn who_is_known_to_nobody_may_send_little() {
    let told = said_to_nobody(b"*11\r\n").await;
    assert_eq!(told, "-ERR Protocol error: too many arguments before AUTH; authenticate first\r\n");
    let long = [b"AUTH ads-token\r\n*31\r\n$4\r\nMGET\r\n", &b"$5\r\nids:1\r\n".repeat(30)[..]].concat();
    let told = said_to_nobody(&long).await;
    assert_eq!(told, format!("+OK\r\n*30\r\n{}", "$2\r\nv1\r\n".repeat(30)));
}

#[tokio::test]
async fn what_is_not_there_is_refused_in_the_words_of_redis() {
    let told = said("FOO a b\r\nGET\r\nGET a:1 b:2\r\nPING a b\r\nSELECT 0\r\nSELECT 1\r\nSELECT x\r\nCLUSTER INFO\r\nSET ids:1 x\r\n").await;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines[..8],
        [
            "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' ",
            "-ERR wrong number of arguments for 'get' command",
            "-ERR wrong number of arguments for 'get' command",
            "-ERR wrong number of arguments for 'ping' command",
            "+OK",
            "-ERR DB index is out of range",
            "-ERR value is not an integer or out of range",
            "-ERR This instance has cluster support disabled",
        ]
    );
    assert!(lines[8].starts_with("-ERR stores are read-only: 'SET'") && lines[8].contains("kith store push"));
    assert_eq!(said("ECHO a\r\nPING b\r\nQUIT\r\nPING\r\n").await, "$1\r\na\r\n$1\r\nb\r\n+OK\r\n");
    assert_eq!(said("PING\r\nPOST / HTTP/1.1\r\nPING\r\n").await, "+PONG\r\n");
}

#[tokio::test]
async fn the_server_describes_itself() {
    assert_eq!(said("COMMAND COUNT\r\n").await, ":16\r\n");
    let some = said("COMMAND INFO get nothing\r\nCOMMAND DOCS mget nothing\r\n").await;
    assert!(
        some.starts_with(
            "*2\r\n*6\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n$-1\r\n"
        )
    );
    assert!(some.contains("*2\r\n$4\r\nmget\r\n*6\r\n$7\r\nsummary\r\n"), "{some}");
    assert!(said("COMMAND\r\n").await.starts_with("*16\r\n*6\r\n$4\r\nauth\r\n:-2\r\n"));
    assert_eq!(
        said("CONFIG GET save data*\r\n").await,
        "*4\r\n$9\r\ndatabases\r\n$1\r\n1\r\n$4\r\nsave\r\n$0\r\n\r\n"
    );
    assert_eq!(said("CONFIG GET nothing\r\n").await, "*0\r\n");
    assert!(said("CONFIG SET save x\r\n").await.starts_with("-ERR CONFIG SET is not possible here"));
    let info = said("INFO\r\n").await;
    assert!(
        info.contains("# Server\r\nkith_version:") && info.contains("# Stores\r\nids:version=3\r\n"),
        "{info}"
    );
    let stats = said("PING\r\nINFO stats\r\n").await;
    assert!(stats.contains("total_commands_processed:2\r\n") && !stats.contains("# Server"), "{stats}");
    assert_eq!(said("INFO nothing\r\n").await, "$0\r\n\r\n");
}

#[tokio::test]
async fn what_breaks_the_protocol_is_answered_after_what_came_before() {
    let bytes = b"*2\r\n$3\r\nGET\r\n$5\r\nids:7\r\n*1\r\n:1\r\nPING\r\n";
    let replies = Conversation::start().exchange(&[bytes]).await;
    let expected = b"$2\r\nv7\r\n-ERR Protocol error: expected '$', got ':'\r\n";
    assert_eq!(replies, expected, "{}", replies.escape_ascii());
    let huge = b"*1\r\n$999999999\r\n";
    assert_eq!(
        Conversation::start().exchange(&[huge]).await,
        b"-ERR Protocol error: invalid bulk length\r\n"
    );
}

#[tokio::test]
async fn a_thousand_commands_in_a_row_are_one_read() {
    let stores = Stores::open();
    let keys: Vec<u64> =
        (0..1_000).map(|key| key * 7 % 1_009).filter(|key| ![DAMAGED, UNANSWERED].contains(key)).collect();
    let bytes: Vec<u8> = keys.iter().flat_map(|key| get(&format!("ids:{key}"))).collect();
    let replies = Conversation::with(&stores, 1 << 20).exchange(&[&bytes]).await;
    let expected: String = keys
        .iter()
        .map(|key| match key % 10 {
            0 => "$-1\r\n".to_owned(),
            _ => format!("${}\r\nv{key}\r\n", format!("v{key}").len()),
        })
        .collect();
    assert_eq!(String::from_utf8(replies).unwrap(), expected);
    // What one read of the socket brings: at least 16 KiB.
    let reads = stores.reads.load(Ordering::Relaxed);
    assert!(reads <= 4, "{reads} reads");
}

#[tokio::test]
async fn one_who_does_not_read_is_not_worked_for() {
    let stores = Stores::open();
    let mut slow = Conversation::with(&stores, 8 << 10);
    let command = get("large:1");
    let mut sent = 0;
    // Each reply is longer than what the stream holds: it stops taking commands.
    while let Ok(written) = tokio::time::timeout(Duration::from_millis(200), slow.peer.write(&command)).await
    {
        sent += written.expect("it is there");
        assert!(sent < 1 << 20, "it goes on taking commands");
    }
    let started = stores.reads.load(Ordering::Relaxed);
    assert!(started < 10, "{started} reads for one who does not read");
    let whole = sent / command.len();
    let mut reply = vec![0; whole * (b"$20000\r\n".len() + 20_000 + 2)];
    slow.peer.read_exact(&mut reply).await.expect("all replies");
    assert!(reply.starts_with(b"$20000\r\nxxx") && reply.ends_with(b"xxx\r\n"));
    slow.stop.cancel();
    slow.served.await.expect("no panic").expect("it ends");
}

#[tokio::test]
async fn stopping_answers_the_round_that_is_under_way() {
    let stores = Stores::new(0);
    let mut conversation = Conversation::with(&stores, 1 << 20);
    conversation.peer.write_all(&get("ids:7")).await.expect("it reads");
    while stores.reads.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    conversation.stop.cancel();
    stores.gate.add_permits(1);
    let mut reply = Vec::new();
    conversation.peer.read_to_end(&mut reply).await.expect("it closes");
    assert_eq!(reply, b"$2\r\nv7\r\n");
    conversation.served.await.expect("no panic").expect("it ends");

    let idle = Conversation::start();
    idle.stop.cancel();
    idle.served.await.expect("no panic").expect("it ends at once");
}

/// Commands of every kind, and keys that are there, absent, failing and none.
fn commands() -> impl Strategy<Value = Vec<Vec<String>>> {
    let key = prop_oneof![
        (0u64..30).prop_map(|key| format!("ids:{key}")),
        "[a-z]{0,12}".prop_map(|key| format!("texts:{key}")),
        Just("people:5".to_owned()),
        Just("nothing".to_owned()),
    ];
    let command = prop_oneof![
        key.clone().prop_map(|key| vec!["GET".to_owned(), key]),
        prop::collection::vec(key, 1..5).prop_map(|keys| [vec!["MGET".to_owned()], keys].concat()),
        Just(vec!["PING".to_owned()]),
        Just(vec!["HELLO".to_owned(), "3".to_owned()]),
        Just(vec!["RESET".to_owned()]),
        "[a-z]{1,5}".prop_map(|word| vec!["ECHO".to_owned(), word]),
        Just(vec!["SET".to_owned(), "ids:1".to_owned(), "x".to_owned()]),
    ];
    prop::collection::vec(command, 1..20)
}

fn encoded(commands: &[Vec<String>]) -> Vec<u8> {
    let mut bytes = kith_wire::resp::Replies::default();
    for command in commands {
        bytes.array(command.len());
        command.iter().for_each(|argument| bytes.bulk(argument.as_bytes()));
    }
    bytes.bytes().to_vec()
}

fn noise() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"*1\r\n$4\r\nPING\r\n".to_vec()),
        1 => Just(b"*".to_vec()),
        1 => Just(b"$".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        1 => "[0-9]{1,3}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn exchanged(bytes: &[u8], piece_bytes: usize) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let pieces: Vec<&[u8]> = bytes.chunks(piece_bytes.max(1)).collect();
    runtime.block_on(async { Conversation::start().exchange(&pieces).await })
}

/// Whether the bytes are whole replies, one behind the other.
fn are_replies(mut bytes: &[u8]) -> bool {
    let mut left = 0u64;
    while left != 0 || !bytes.is_empty() {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return false };
        let (line, rest) = (&bytes[1..end], &bytes[end + 2..]);
        let number = std::str::from_utf8(line).ok().and_then(|line| line.parse::<i64>().ok());
        left = left.saturating_sub(1);
        bytes = match (bytes[0], number) {
            (b'+' | b'-' | b'_', _) | (b':', Some(_)) | (b'$', Some(-1)) => rest,
            (b'*', Some(count)) => {
                left += count as u64;
                rest
            }
            (b'%', Some(count)) => {
                left += 2 * count as u64;
                rest
            }
            (b'$', Some(length)) if length as usize + 2 <= rest.len() => &rest[length as usize + 2..],
            _ => return false,
        };
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn replies_do_not_depend_on_how_commands_are_cut(commands in commands(), piece in 1usize..40) {
        let bytes = encoded(&commands);
        let whole = exchanged(&bytes, bytes.len());
        prop_assert!(are_replies(&whole));
        prop_assert_eq!(exchanged(&bytes, piece), whole);
    }

    #[test]
    fn any_bytes_are_answered_with_replies_or_not_at_all(bytes in noise(), piece in 1usize..40) {
        prop_assert!(are_replies(&exchanged(&bytes, piece)));
    }
}
