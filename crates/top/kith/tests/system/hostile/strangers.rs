//! Peers that nobody knows: what they hold, and whom they keep out.

use super::{MIB, TIMEOUT, files_of, header, http2, resident};
use super::{
    secured::{SecuredCluster, access, fill, must, with},
    support::words::mget,
};
use kith_wire::frame::Preface;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A cluster with a file of who may do what, started with `flags` beside.
fn with_access(flags: &[&str]) -> SecuredCluster {
    SecuredCluster::start(|folder| {
        let file = folder.join("access.toml");
        fs::write(&file, access(&[("other", "some-token", "read = [\"*\"]")])).expect("written");
        let all = [flags, &["--access", file.to_str().expect("UTF-8")]].concat();
        all.into_iter().map(str::to_owned).collect()
    })
}

/// Lets this process open as many files as it may: a thousand connections, beside those of the tests that run with it, are more than the
/// limit that processes begin with.
fn open_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("up to the hard limit");
}

/// The behaviour of strangers who hold on to what they get.
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
fn connector(cluster: &SecuredCluster) -> tokio_rustls::TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&cluster.authority.pem).expect("PEM")).expect("an authority");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tokio_rustls::TlsConnector::from(Arc::new(config))
}

/// A router to which strangers come.
struct Siege<'a> {
    cluster: &'a SecuredCluster,
    ports: Ports,
    /// The router's process, and how many files and sockets it had open before.
    pid: u32,
    files: usize,
}

impl Siege<'_> {
    /// Lets a thousand strangers of these kinds come at once, while one reader stays and others come, until the router has hung up on all
    /// of the strangers; the most memory that it had in use meanwhile.
    fn by(&self, kinds: &[Stranger], stays: &mut Connected, comes: impl Fn() -> bool) -> u64 {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let tls = connector(self.cluster);
        for at in 0..1_000 {
            runtime.spawn(hold(kinds[at % kinds.len()], self.ports.clone(), tls.clone()));
        }
        let mut most = 0;
        for _ in 0..20 {
            stays.read();
            most = most.max(resident(self.pid));
        }
        self.cluster.wait_until("one more reader is served beside strangers", comes);
        // All of them are hung up on, however long they would wait. The router is asked, not they: if the queue of the system was
        // full, a stranger may believe in a connection that the router never had.
        self.cluster.wait_until("the router holds no stranger any more", || {
            most = most.max(resident(self.pid));
            files_of(self.pid) < self.files + 64
        });
        runtime.shutdown_background();
        most
    }
}

#[test]
fn a_thousand_strangers_take_little_memory_and_keep_no_reader_out() {
    open_many_files();
    let cluster = with_access(&["--resp", "127.0.0.1:0"]);
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

    let pid = cluster.router_pid();
    let ports = Ports { shared: cluster.router(0), redis: redis.addr.clone() };
    let before = resident(pid);
    let siege = Siege { cluster: &cluster, ports, pid, files: files_of(pid) };
    for kinds in
        [&SITTERS[..], &[Stranger::BurstsInHttp2], &[Stranger::FillsFrame], &[Stranger::PipelinesToRedis]]
    {
        let most = siege.by(kinds, &mut connected, comes);
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
    let cluster = with_access(&[]);
    let (tls, addr) = (connector(&cluster), cluster.router(0));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    // The replies until the server closed the connection.
    let replies = async {
        let name = "127.0.0.1".try_into().expect("an address");
        let stream = tokio::net::TcpStream::connect(addr).await.expect("it listens");
        let mut stream = tls.connect(name, stream).await.expect("it speaks TLS");
        stream.write_all(&burst_of_http2()).await.expect("it reads");
        let mut bytes = Vec::new();
        // Bytes that it never read take back the end of what it said, if they come too late.
        let _ = stream.read_to_end(&mut bytes).await;
        bytes
    };
    let replies = runtime.block_on(async { tokio::time::timeout(TIMEOUT, replies).await });
    let replies = replies.expect("it is hung up on");
    let mut answers = 0;
    let mut rest = &replies[..];
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
    let cluster = SecuredCluster::start(|_| vec!["--connections-max".to_owned(), OPEN_MAX.to_string()]);
    let reader = cluster.authority.papers("writer");
    fill(&cluster, "pages", 10, &reader);
    let http = cluster.http();
    let held: Vec<TcpStream> = (0..2 * OPEN_MAX)
        .map(|_| {
            let mut stream = TcpStream::connect(&http).expect("it listens");
            stream.set_read_timeout(Some(TIMEOUT)).expect("set");
            // One that is refused may be hung up on before it has asked.
            let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
            let _ = stream.read(&mut [0; 16]);
            stream
        })
        .collect();
    let read = must(with(cluster.kith(&["get", "pages", "7"]), &reader));
    assert!(read.contains("value 7 of pages"), "{read}");
    drop(held);
}
