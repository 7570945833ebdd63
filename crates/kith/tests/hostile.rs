//! Peers that take what they can: memory before anybody knows them, places of others, descriptors of files.

mod support;

#[path = "support/secured.rs"]
mod secured;

use bytes::BytesMut;
use kith_wire::{
    Message,
    frame::{self, Frame, Header, Op, PREFACE_BYTES, Preface},
    v1,
};
use rustls::{
    ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer, pki_types::pem::PemObject,
};
use secured::{Secured, access, fill, must, with};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};
use support::{
    cluster::Cluster,
    values::{create, push},
    words::{WORDS, assert_reads, judge, mget, push_version},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bound on every wait for a peer; far above what any of them takes.
const PATIENCE: Duration = Duration::from_secs(90);
const MIB: u64 = 1 << 20;

/// Memory that a process has in use.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// The most that it had in use so far.
fn most_resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Lets this process open as many files as it may: a thousand connections, beside those of the tests that run with it, are more than the
/// limit that processes begin with.
fn open_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("up to the hard limit");
}

/// How many files and sockets a process has open.
fn files_of(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("the process runs").count()
}

/// The header of a request that claims a body of `body_bytes`.
fn header(body_bytes: u32) -> BytesMut {
    let mut bytes = BytesMut::new();
    Header::request(1, Op::MultiGet).encode_head(0, &mut bytes).expect("an empty body is short");
    bytes[..4].copy_from_slice(&(16 + body_bytes).to_le_bytes());
    bytes
}

/// What strangers do who hold on to what they get.
#[derive(Clone, Copy, Debug)]
enum Stranger {
    Silent,
    PartOfHandshake,
    SitsAfterHandshake,
    ClaimsLongFrame,
    SitsInHttp2,
    BurstsInHttp2,
    FillsFrame,
    PipelinesToRedis,
}

const SITTERS: [Stranger; 5] = [
    Stranger::Silent,
    Stranger::PartOfHandshake,
    Stranger::SitsAfterHandshake,
    Stranger::ClaimsLongFrame,
    Stranger::SitsInHttp2,
];

/// Where strangers go.
#[derive(Clone, Debug)]
struct Ports {
    shared: String,
    redis: String,
}

/// A frame of HTTP/2 of stream `id`.
fn http2(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let length = &(payload.len() as u32).to_be_bytes()[1..];
    [length, &[kind, flags], &id.to_be_bytes(), payload].concat()
}

/// Whole reads of no keys, as short as they can be: their headers are named once, and pointed to from then on.
fn burst_of_http2() -> Vec<u8> {
    let literal = |name: &[u8], value: &str| [name, &[value.len() as u8], value.as_bytes()].concat();
    let method_and_scheme = vec![0x83, 0x87];
    let first = [
        method_and_scheme.clone(),
        literal(&[0x44], "/kith.v1.Store/MultiGet"),
        literal(&[0x41], "x"),
        literal(&[0x5f], "application/grpc"),
        literal(b"\x40\x02te", "trailers"),
    ];
    let rest = [method_and_scheme, vec![0xc1, 0xc0, 0xbf, 0xbe]].concat();
    let requests = (0..1_500).flat_map(|at| {
        let headers = if at == 0 { first.concat() } else { rest.clone() };
        [http2(1, 4, 2 * at + 1, &headers), http2(0, 1, 2 * at + 1, &[0; 5])].concat()
    });
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), http2(4, 0, 0, &[]), requests.collect()].concat()
}

/// Does it, and holds on until the peer closes; or for ever, without reading.
async fn hold(stranger: Stranger, ports: Ports, tls: tokio_rustls::TlsConnector) -> std::io::Result<()> {
    let addr = if let Stranger::PipelinesToRedis = stranger { ports.redis } else { ports.shared };
    let mut stream = tokio::net::TcpStream::connect(addr).await?;
    let mut rest = Vec::new();
    match stranger {
        Stranger::Silent => return stream.read_to_end(&mut rest).await.map(drop),
        Stranger::PartOfHandshake => {
            // A whole record with the beginning of a message of 60,000 bytes.
            let mut record = vec![22, 3, 1, 0x40, 0, 1, 0, 0xea, 0x60];
            record.resize(5 + 0x4000, 0);
            stream.write_all(&record).await?;
            return stream.read_to_end(&mut rest).await.map(drop);
        }
        _ => {}
    }
    let name = "127.0.0.1".try_into().expect("an address");
    let mut stream = tls.connect(name, stream).await?;
    let sent = match stranger {
        Stranger::ClaimsLongFrame => {
            [&Preface::OWN.encode()[..], &header(256 << 20), &vec![0; 1 << 20]].concat()
        }
        Stranger::FillsFrame => [&Preface::OWN.encode()[..], &header(8 << 10), &[0; (8 << 10) - 1]].concat(),
        Stranger::SitsInHttp2 => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(),
        Stranger::BurstsInHttp2 => burst_of_http2(),
        Stranger::PipelinesToRedis => b"GET pages:1\r\n".repeat(20_000),
        _ => Vec::new(),
    };
    stream.write_all(&sent).await?;
    stream.flush().await?;
    if let Stranger::BurstsInHttp2 | Stranger::PipelinesToRedis = stranger {
        std::future::pending::<()>().await;
    }
    stream.read_to_end(&mut rest).await.map(drop)
}

/// A reader whose connection stays open.
struct Connected {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Connected {
    fn start(mut command: Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("kith runs");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, answers }
    }

    fn read(&mut self) {
        let mut answer = String::new();
        let questions = self.child.stdin.as_mut().expect("it is piped");
        writeln!(questions, "{}", mget("pages", 7..8)).expect("it reads");
        questions.flush().expect("it reads");
        self.answers.read_line(&mut answer).expect("it answers");
        assert!(answer.contains("value 7 of pages"), "{answer}");
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Shakes hands with a cluster, without a certificate.
fn connector(cluster: &Secured) -> tokio_rustls::TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&cluster.authority.pem).expect("PEM")).expect("an authority");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tokio_rustls::TlsConnector::from(Arc::new(config))
}

#[test]
fn a_thousand_strangers_take_little_memory_and_keep_no_reader_out() {
    open_many_files();
    let cluster = Secured::start(|folder| {
        let file = folder.join("access.toml");
        fs::write(&file, access(&[("other", "some-token", "read = [\"*\"]")])).expect("written");
        let flags = ["--resp", "127.0.0.1:0", "--access", file.to_str().expect("UTF-8")];
        flags.map(str::to_owned).to_vec()
    });
    let (ops, reader) = (cluster.authority.papers("ops"), cluster.authority.papers("writer"));
    fill(&cluster, "pages", 100, &ops);
    // One who is connected already; and others, who come while strangers do.
    let mut connected = Connected::start(with(cluster.kith(&["run", "--input", "-"]), &reader));
    connected.read();
    let redis = cluster.redis(Some(&reader));
    let comes = || {
        let read = with(cluster.kith(&["get", "pages", "7"]), &reader).output().expect("kith runs");
        String::from_utf8_lossy(&read.stdout).contains("value 7 of pages")
            && redis.cli_all(&["get", "pages:7"]).contains("value 7 of pages")
    };

    let (tls, pid) = (connector(&cluster), cluster.router_pid());
    let ports = Ports { shared: cluster.router(0), redis: redis.addr.clone() };
    let (before, held) = (resident(pid), files_of(pid));
    for kinds in
        [&SITTERS[..], &[Stranger::BurstsInHttp2], &[Stranger::FillsFrame], &[Stranger::PipelinesToRedis]]
    {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        for at in 0..1_000 {
            runtime.spawn(hold(kinds[at % kinds.len()], ports.clone(), tls.clone()));
        }
        let mut most = 0;
        for _ in 0..20 {
            connected.read();
            most = most.max(resident(pid));
        }
        cluster.wait_until("one more reader is served beside strangers", comes);
        // All of them are hung up on, however long they would wait. The router is asked, not they: if the queue of the system was
        // full, a stranger may believe in a connection that the router never had.
        cluster.wait_until("the router holds no stranger any more", || {
            most = most.max(resident(pid));
            files_of(pid) < held + 64
        });
        runtime.shutdown_background();
        assert!(most < before + 64 * MIB, "{kinds:?}: {} MiB after {}", most / MIB, before / MIB);
    }
    connected.read();
    cluster.wait_until("one more reader is served after them", comes);
    let closed = |reason: &str| {
        let name = format!("kith_server_connections_closed_total{{reason=\"{reason}\"}}");
        cluster.metric(&name).unwrap_or_default()
    };
    assert!(0.0 < closed("unknown") + closed("crowded_out"));
}

#[test]
fn a_stranger_that_asks_and_does_not_read_is_hung_up_on_after_a_few_requests() {
    let cluster = Secured::start(|folder| {
        let file = folder.join("access.toml");
        fs::write(&file, access(&[("other", "some-token", "read = [\"*\"]")])).expect("written");
        vec!["--access".to_owned(), file.to_str().expect("UTF-8").to_owned()]
    });
    let (tls, addr) = (connector(&cluster), cluster.router(0));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    // What it was told, until it was hung up on.
    let told = async {
        let name = "127.0.0.1".try_into().expect("an address");
        let stream = tokio::net::TcpStream::connect(addr).await.expect("it listens");
        let mut stream = tls.connect(name, stream).await.expect("it speaks TLS");
        stream.write_all(&burst_of_http2()).await.expect("it reads");
        let mut told = Vec::new();
        // Bytes that it never read take back the end of what it said, if they come too late.
        let _ = stream.read_to_end(&mut told).await;
        told
    };
    let told = runtime.block_on(async { tokio::time::timeout(PATIENCE, told).await });
    let told = told.expect("it is hung up on");
    let mut answers = 0;
    let mut rest = &told[..];
    while let Some((head, more)) = rest.split_first_chunk::<9>() {
        answers += u32::from(head[3] == 1);
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        rest = more.get(length..).unwrap_or_default();
    }
    assert!(0 < answers && answers <= 8, "{answers} answers");
}

#[test]
fn peers_of_the_port_for_health_and_metrics_take_no_place_of_readers() {
    const OPEN_MAX: usize = 40;
    let cluster = Secured::start(|_| vec!["--connections-max".to_owned(), OPEN_MAX.to_string()]);
    let reader = cluster.authority.papers("writer");
    fill(&cluster, "pages", 10, &reader);
    let http = cluster.http();
    let held: Vec<TcpStream> = (0..2 * OPEN_MAX)
        .map(|_| {
            let mut stream = TcpStream::connect(&http).expect("it listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("set");
            // One that is refused may be hung up on before it has asked.
            let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: kith\r\n\r\n");
            let _ = stream.read(&mut [0; 16]);
            stream
        })
        .collect();
    let read = must(with(cluster.kith(&["get", "pages", "7"]), &reader));
    assert!(read.contains("value 7 of pages"), "{read}");
    drop(held);
}

#[test]
fn a_process_that_may_open_few_files_does_not_start_and_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let kith = env!("CARGO_BIN_EXE_kith");
    let script = format!("ulimit -n 64 && exec {kith} dev --data \"$1\" -o json");
    let output = Command::new("sh").args(["-c", &script, "sh"]).arg(folder.path()).output().expect("a shell");
    assert!(!output.status.success());
    let told =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("too_few_files") && told.contains("ulimit -n 4096"), "{told}");
}

#[test]
fn running_out_of_descriptors_is_not_damage() {
    let mut cluster = Cluster::start(&[
        "--groups",
        "1",
        "--nodes",
        "1",
        "--partitions",
        "4",
        "--processes",
        "--scrub-rate",
        "1GiB/s",
    ]);
    create(&cluster, "people", WORDS.0, WORDS.1);
    push_version(&cluster, "people", 100, 1);
    let ready = cluster.ready();
    let node = &ready["nodes"][0];
    let pid = node["pid"].as_u64().expect("a pid");
    let addr = node["addr"].as_str().expect("text").to_owned();
    let request = mget("people", 0..100);
    judge(&request, &cluster.run(std::slice::from_ref(&request), 1).0[0]).expect("read");

    let open = files_of(pid as u32) as u64;
    let process = rustix::process::Pid::from_raw(pid as i32).expect("a pid");
    let limit = rustix::process::Rlimit { current: Some(open + 4), maximum: Some(open + 4) };
    rustix::process::prlimit(Some(process), rustix::process::Resource::Nofile, limit).expect("it is ours");
    // More than it can take: as soon as one is hung up on, the next takes its place.
    let _idle: Vec<_> = (0..100).map(|_| TcpStream::connect(&addr).expect("the backlog has room")).collect();
    let log = cluster.data().join("node-000.log");
    let told = move || fs::read_to_string(&log).expect("a log file");
    cluster.wait_until("a scrub found no descriptor", |_| {
        let log = told();
        assert!(!log.contains("damage"), "{log}");
        log.contains("lacks descriptors")
    });
    judge(&request, &cluster.run(std::slice::from_ref(&request), 1).0[0]).expect("readers are answered");
    assert!(!told().contains("damage"), "nothing was repaired either");
}

/// Speaks frames by hand.
fn greeted(addr: &str) -> TcpStream {
    let mut stream = TcpStream::connect(addr).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.write_all(&Preface::OWN.encode()).expect("it reads");
    stream.read_exact(&mut [0; PREFACE_BYTES]).expect("it speaks frames");
    stream
}

/// Sends so much of a body, as far as the peer takes it.
fn send(stream: &mut TcpStream, bytes: usize) {
    let piece = vec![0; 1 << 20];
    for _ in 0..bytes >> 20 {
        if stream.write_all(&piece).is_err() {
            return;
        }
    }
}

/// The frames that come until the peer closes, or says something.
fn told(stream: &mut TcpStream) -> Option<Frame> {
    let mut bytes = BytesMut::new();
    loop {
        if let Some(frame) = frame::decode(&mut bytes).expect("frames") {
            return Some(frame);
        }
        let mut piece = [0; 4_096];
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
}

#[test]
fn frames_that_claim_much_and_never_end_take_what_the_budget_has_and_no_more() {
    let cluster = Cluster::start(&["--nodes", "1"]);
    create(&cluster, "people", WORDS.0, WORDS.1);
    push_version(&cluster, "people", 100, 1);
    let ready = cluster.ready();
    let router = &ready["routers"][0];
    let (addr, http) = (router["addr"].as_str().expect("text"), ready["http"].as_str().expect("text"));
    let pid = router["pid"].as_u64().expect("a pid") as u32;
    let read = || assert_reads(&cluster, "people", 100, 1);
    read();

    // An HTTP request that does not end is not waited for either.
    let mut http = TcpStream::connect(http).expect("it listens");
    http.set_read_timeout(Some(PATIENCE)).expect("a socket");
    http.write_all(b"GET /metrics HTTP/1.1\r\nhost: ").expect("it reads");

    let before = resident(pid);
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = greeted(addr);
        stream.write_all(&header(256 << 20)).expect("it reads");
        send(&mut stream, 250 << 20);
        held.push(stream);
    }
    let grown = resident(pid).saturating_sub(before);
    assert!(grown < 256 * MIB, "claims of 256 MiB: {} MiB", grown / MIB);
    read();

    let mut refused = 0;
    for _ in 0..5 {
        let mut stream = greeted(addr);
        stream.write_all(&header(72 << 20)).expect("it reads");
        send(&mut stream, 60 << 20);
        stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a socket");
        if let Some(frame) = told(&mut stream) {
            assert_eq!(kith_wire::detail_of(&frame.status()).code, "overloaded");
            refused += 1;
        }
        held.push(stream);
    }
    let grown = resident(pid).saturating_sub(before);
    assert!(grown < 256 * MIB, "legal claims: {} MiB", grown / MIB);
    assert!(0 < refused, "more than the budget has was taken");
    read();
    // They are given up, and what they took is there for others.
    let mut last = held.swap_remove(3);
    last.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let end = told(&mut last).expect("a reason");
    assert_eq!(kith_wire::detail_of(&end.status()).code, "slow_request");
    let mut rest = Vec::new();
    http.read_to_end(&mut rest).expect("it is closed");
}

#[test]
fn large_frames_that_end_take_what_the_budget_has_and_no_more() {
    let cluster = Cluster::start(&["--nodes", "1"]);
    create(&cluster, "people", WORDS.0, WORDS.1);
    push_version(&cluster, "people", 100, 1);
    let ready = cluster.ready();
    let router = &ready["routers"][0];
    let addr = router["addr"].as_str().expect("text");
    let pid = router["pid"].as_u64().expect("a pid") as u32;
    assert_reads(&cluster, "people", 100, 1);
    let before = resident(pid);
    // A read of so many ids of a byte each, all bytes of which come; and bytes that are no read.
    const BODY_BYTES: u32 = 79 << 20;
    let store = b"\x0a\x06people";
    let length: [u8; 4] = std::array::from_fn(|at| {
        let seven = ((BODY_BYTES - 13) >> (7 * at)) as u8 & 0x7f;
        if at < 3 { seven | 0x80 } else { seven }
    });
    let ids = [&store[..], &[0x12], &length].concat();
    for head in [&ids[..], &[0; 13]] {
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut stream = greeted(addr);
                    stream.write_all(&header(BODY_BYTES)).expect("it reads");
                    stream.write_all(head).expect("it reads");
                    stream.write_all(&[1; (1 << 20) - 13]).expect("it reads");
                    send(&mut stream, 78 << 20);
                    let code = kith_wire::detail_of(&told(&mut stream).expect("an answer").status()).code;
                    assert!(["overloaded", "out_of_range", "bad_request"].contains(&&*code), "{code}");
                });
            }
        });
    }
    // Of nodes and router in one process; the budget of requests is 192 MiB.
    let grown = most_resident(pid).saturating_sub(before);
    assert!(grown < 384 * MIB, "{} MiB", grown / MIB);
    assert_reads(&cluster, "people", 100, 1);
}

/// How those ask who do not read what they are told.
#[derive(Clone, Copy, Debug)]
enum Unread {
    Frames,
    Http2,
    Redis,
}

impl Unread {
    /// Asks for all of `large` so many times.
    fn asks(self, addr: &str, times: u32) -> TcpStream {
        let ids: Vec<u64> = (0..LARGE_KEYS).collect();
        let request =
            v1::MultiGetRequest { store: "large".to_owned(), ids, ..v1::MultiGetRequest::default() };
        let requests: Vec<u8> = match self {
            Unread::Frames => {
                let mut bytes = BytesMut::new();
                for id in 1..=times {
                    let header = Header::request(id.into(), Op::MultiGet);
                    header.encode(&request, &mut bytes).expect("it is short");
                }
                [&Preface::OWN.encode()[..], &bytes].concat()
            }
            Unread::Http2 => {
                let body = request.encode_to_vec();
                let message = [&[0][..], &(body.len() as u32).to_be_bytes(), &body].concat();
                let literal =
                    |name: &[u8], value: &str| [name, &[value.len() as u8], value.as_bytes()].concat();
                let headers = [
                    vec![0x83, 0x86],
                    literal(&[0x04], "/kith.v1.Store/MultiGet"),
                    literal(&[0x01], "x"),
                    literal(&[0x0f, 0x10], "application/grpc"),
                    literal(b"\x00\x02te", "trailers"),
                ]
                .concat();
                let requests = (0..times)
                    .flat_map(|at| [http2(1, 4, 2 * at + 1, &headers), http2(0, 1, 2 * at + 1, &message)]);
                let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), http2(4, 0, 0, &[])];
                begin.into_iter().chain(requests).collect::<Vec<_>>().concat()
            }
            Unread::Redis => {
                let keys: String = (0..LARGE_KEYS).map(|key| format!(" large:{key}")).collect();
                format!("MGET{keys}\r\n").repeat(times as usize).into_bytes()
            }
        };
        let mut stream = TcpStream::connect(addr).expect("it listens");
        stream.write_all(&requests).expect("it reads");
        stream
    }
}

/// What a value of `large` has, and how many there are: 16 MiB together.
const LARGE_BYTES: usize = 256 << 10;
const LARGE_KEYS: u64 = 64;

#[test]
fn replies_that_nobody_reads_take_what_the_budget_has_and_no_more() {
    const CONNECTIONS: usize = 20;
    let mut cluster = Cluster::start(&["--nodes", "1", "--processes", "--reply-memory", "96MiB"]);
    create(&cluster, "people", WORDS.0, WORDS.1);
    push_version(&cluster, "people", 100, 1);
    create(&cluster, "large", WORDS.0, WORDS.1);
    let rows = (0..LARGE_KEYS).map(|key| (key.to_le_bytes().to_vec(), vec![b'x'; LARGE_BYTES]));
    push(&cluster, "large", WORDS, 1, rows);
    let ready = cluster.ready();
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let (router, node) = (&ready["routers"][0], &ready["nodes"][0]);
    // What Redis clients ask in a row is one answer, and would be refused for its size.
    for (how, times, role, addr) in [
        (Unread::Frames, 3, router, "addr"),
        (Unread::Http2, 3, router, "addr"),
        (Unread::Redis, 1, router, "resp"),
        (Unread::Redis, 1, node, "resp"),
    ] {
        let addr = text(&role[addr]);
        let pid = role["pid"].as_u64().expect("a pid") as u32;
        let before = resident(pid);
        let mut held: Vec<_> = (0..CONNECTIONS).map(|_| how.asks(&addr, times)).collect();
        let mut most = 0;
        let request = mget("people", 0..100);
        cluster.wait_until("others are answered", |cluster| {
            most = most.max(resident(pid));
            judge(&request, &cluster.run(std::slice::from_ref(&request), 1).0[0]).is_ok()
        });
        cluster.wait_until("somebody who does not read is hung up on", |_| {
            most = most.max(resident(pid));
            // Who writes to a connection that is gone is told so.
            held.iter_mut().any(|stream| stream.write_all(b"\n").is_err())
        });
        let grown = most.saturating_sub(before);
        eprintln!("{how:?}: {} MiB", grown / MIB);
        assert!(grown < 320 * MIB, "{how:?}: {} MiB", grown / MIB);
        // What they held is there for who reads.
        held.clear();
        cluster.wait_until("a large read is answered", |cluster| {
            let answer = &cluster.run(&[mget("large", 0..LARGE_KEYS)], 1).0[0];
            answer["footer"]["found"] == LARGE_KEYS
        });
    }
}
