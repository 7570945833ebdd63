//! Peers that take what they can: memory before anybody knows them, places of others, descriptors of files.

mod support;

#[path = "support/secured.rs"]
mod secured;

use bytes::BytesMut;
use kith_wire::frame::{self, Frame, Header, Op, PREFACE_BYTES, Preface};
use rustls::{
    ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer, pki_types::pem::PemObject,
};
use secured::{Secured, access, fill, with};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
    time::Duration,
};
use support::{
    cluster::Cluster,
    values::create,
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
}

const STRANGERS: [Stranger; 5] = [
    Stranger::Silent,
    Stranger::PartOfHandshake,
    Stranger::SitsAfterHandshake,
    Stranger::ClaimsLongFrame,
    Stranger::SitsInHttp2,
];

/// Does it, and holds on until the peer closes.
async fn hold(stranger: Stranger, addr: String, tls: tokio_rustls::TlsConnector) -> std::io::Result<()> {
    let mut stream = tokio::net::TcpStream::connect(addr).await?;
    let mut rest = Vec::new();
    match stranger {
        Stranger::Silent => {}
        Stranger::PartOfHandshake => {
            // A whole record with the beginning of a message of 60,000 bytes.
            let mut record = vec![22, 3, 1, 0x40, 0, 1, 0, 0xea, 0x60];
            record.resize(5 + 0x4000, 0);
            stream.write_all(&record).await?;
        }
        _ => {
            let name = "127.0.0.1".try_into().expect("an address");
            let mut stream = tls.connect(name, stream).await?;
            if let Stranger::ClaimsLongFrame = stranger {
                stream.write_all(&Preface::OWN.encode()).await?;
                stream.write_all(&header(256 << 20)).await?;
                for _ in 0..16 {
                    stream.write_all(&[0; 64 << 10]).await?;
                }
            }
            if let Stranger::SitsInHttp2 = stranger {
                stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await?;
            }
            stream.flush().await?;
            stream.read_to_end(&mut rest).await?;
            return Ok(());
        }
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

#[test]
fn a_thousand_strangers_take_little_memory_and_keep_no_reader_out() {
    let cluster = Secured::start(|folder| {
        let file = folder.join("access.toml");
        fs::write(&file, access(&[("other", "some-token", "read = [\"*\"]")])).expect("written");
        vec!["--access".to_owned(), file.to_str().expect("UTF-8").to_owned()]
    });
    let (ops, reader) = (cluster.authority.papers("ops"), cluster.authority.papers("writer"));
    fill(&cluster, "pages", 100, &ops);
    // One who is connected already; and others, who come while strangers do.
    let mut connected = Connected::start(with(cluster.kith(&["run", "--input", "-"]), &reader));
    connected.read();
    let comes = || {
        let read = with(cluster.kith(&["get", "pages", "7"]), &reader).output().expect("kith runs");
        String::from_utf8_lossy(&read.stdout).contains("value 7 of pages")
    };

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&cluster.authority.pem).expect("PEM")).expect("an authority");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tls = tokio_rustls::TlsConnector::from(Arc::new(config));
    let (addr, pid) = (cluster.router(0), cluster.router_pid());
    let (before, held) = (resident(pid), files_of(pid));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let strangers: Vec<_> = (0..1_000)
        .map(|at| runtime.spawn(hold(STRANGERS[at % STRANGERS.len()], addr.clone(), tls.clone())))
        .collect();
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
    drop(strangers);
    runtime.shutdown_background();
    assert!(most < before + 64 * MIB, "{} MiB after {}", most / MIB, before / MIB);
    connected.read();
    cluster.wait_until("one more reader is served after them", comes);
    let closed = |reason: &str| {
        let name = format!("kith_server_connections_closed_total{{reason=\"{reason}\"}}");
        cluster.metric(&name).unwrap_or_default()
    };
    assert!(0.0 < closed("unknown") + closed("crowded_out"));
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
