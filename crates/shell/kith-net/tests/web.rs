//! The HTTP surfaces of a process: web pages of other hosts are refused on each of them, and health is answered however many
//! connections there are. The Gremlin port is tested in `kith-doors`.

use kith_net::server::{
    self, Addresses, BoundListener, FrontPage,
    connections::{ConnectionSettings, Connections},
    http::{self, Readiness},
    security::Security,
};
use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};
use tokio::{net::TcpListener, runtime::Runtime};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, metadata::MetadataValue, transport::Endpoint};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

/// Slow connections of each kind.
const SLOW: usize = 1_000;

struct Process {
    grpc: SocketAddr,
    http: SocketAddr,
    stop: CancellationToken,
    runtime: Runtime,
}

impl Process {
    fn start(accepted: &[&str]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let stop = CancellationToken::new();
        let (grpc, http) = runtime.block_on(async {
            let accepted_hosts = accepted.iter().map(|host| host.parse().expect("a host")).collect();
            let settings = ConnectionSettings { accepted_hosts, ..ConnectionSettings::default() };
            let connections = Connections::new(settings).expect("files enough");
            let bind = async |connections| {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
                let addr = listener.local_addr().expect("an address");
                BoundListener { addr, listener, local: None, connections }
            };
            let grpc =
                server::bind("127.0.0.1:0".parse().expect("an address"), &connections).await.expect("a port");
            let http = bind(connections.of_http()).await;
            let at = Addresses { grpc: grpc.addr, http: http.addr, resp: None, gremlin: None };
            let front = FrontPage { name: "router 0".to_owned(), does: "answers", answers_clients: true, at };
            server::spawn(grpc, server::routes(), None, &Security::default(), stop.clone());
            http::serve(http, front, Readiness::default(), stop.clone());
            (at.grpc, at.http)
        });
        Self { grpc, http, stop, runtime }
    }

    /// The status line of the answer to these bytes; empty if the connection is closed instead.
    fn response_to(&self, addr: SocketAddr, sent: &str) -> String {
        let mut stream = TcpStream::connect(addr).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("set");
        if stream.write_all(sent.as_bytes()).is_err() {
            return String::new();
        }
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.lines().next().unwrap_or_default().to_owned()
    }

    /// The code with which gRPC answers a health check with this origin.
    fn grpc_code(&self, origin: Option<&'static str>) -> Code {
        self.runtime.block_on(async {
            let endpoint = Endpoint::from_shared(format!("http://{}", self.grpc)).expect("an address");
            let mut client = HealthClient::new(endpoint.connect().await.expect("it listens"));
            let mut request = Request::new(HealthCheckRequest::default());
            if let Some(origin) = origin {
                request.metadata_mut().insert("origin", MetadataValue::from_static(origin));
            }
            client.check(request).await.map_or_else(|status| status.code(), |_| Code::Ok)
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[test]
fn web_pages_of_other_hosts_are_refused_on_every_port_and_path() {
    let process = Process::start(&["console.example"]);
    for path in ["/", "/healthz", "/readyz", "/metrics", "/nothing"] {
        for (headers, is_refused) in [
            ("host: evil.example", true),
            ("host: evil.example:7080\r\norigin: http://evil.example:7080", true),
            ("host: 127.0.0.1\r\norigin: https://evil.example", true),
            ("host: 127.0.0.1\r\norigin: null", true),
            ("host: 127.0.0.1\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors", true),
            ("host: 127.0.0.1", false),
            ("host: localhost:7080\r\norigin: http://localhost:3000", false),
            ("host: console.example\r\norigin: https://console.example", false),
            ("x: y", false),
        ] {
            let sent = format!("GET {path} HTTP/1.1\r\n{headers}\r\nconnection: close\r\n\r\n");
            let answer = process.response_to(process.http, &sent);
            assert_eq!(answer.contains("403"), is_refused, "{path} {headers}: {answer}");
            assert!(answer.starts_with("HTTP/1.1 "), "{path} {headers}: {answer}");
        }
    }
    for (origin, code) in [
        (None, Code::Ok),
        (Some("https://console.example"), Code::Ok),
        (Some("https://evil.example"), Code::PermissionDenied),
    ] {
        assert_eq!(process.grpc_code(origin), code, "{origin:?}");
    }
    // The port for gRPC and frames does not speak the HTTP of a page without TLS.
    for method in ["GET", "POST", "OPTIONS", "PUT"] {
        let sent =
            format!("{method} /kith.v1.Store/Get HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n");
        assert!(!process.response_to(process.grpc, &sent).starts_with("HTTP/1.1 2"), "{method}");
    }
}

#[test]
fn health_is_answered_within_a_second_beside_a_thousand_slow_connections() {
    let process = Process::start(&[]);
    // Nothing, the beginning of a header, a whole request after which the connection stays, and one whose answer is not read.
    let metrics = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(200);
    let kinds = [
        "",
        "GET /healthz HTTP/1.1\r\nhost: lo",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
        &metrics,
    ];
    for kind in kinds {
        let mut held = Vec::new();
        for at in 0..SLOW {
            // Those that are closed meanwhile come again, as an attacker would.
            let Ok(mut stream) = TcpStream::connect(process.http) else { panic!("connection {at} failed") };
            let _ = stream.write_all(kind.as_bytes());
            held.push(stream);
        }
        let kind = &kind[..kind.len().min(30)];
        for _ in 0..5 {
            let begun = Instant::now();
            let answer = process.response_to(
                process.http,
                "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
            );
            let after = begun.elapsed();
            assert_eq!(answer, "HTTP/1.1 200 OK", "{kind:?} after {after:?}");
            assert!(after < Duration::from_secs(1), "{kind:?}: {after:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn headers_that_do_not_end_end_their_connection_however_few_connections_there_are() {
    let process = Process::start(&[]);
    let begun = "GET /healthz HTTP/1.1\r\nhost: lo";
    let mut slow: Vec<TcpStream> = ["", begun, begun]
        .into_iter()
        .map(|sent| {
            let mut stream = TcpStream::connect(process.http).expect("it listens");
            stream.write_all(sent.as_bytes()).expect("it reads");
            stream
        })
        .collect();
    // One byte after the other makes no difference.
    let trickling = slow.pop().expect("it was opened");
    let mut written = trickling.try_clone().expect("cloned");
    let writer = thread::spawn(move || {
        while written.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    slow.push(trickling);
    for mut stream in slow {
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("set");
        let mut answer = String::new();
        if let Err(error) = stream.read_to_string(&mut answer) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    writer.join().expect("it ends with its connection");
}

/// The names of the services that one version of reflection lists.
macro_rules! listed {
    ($version:ident, $channel:expr) => {{
        use tonic_reflection::pb::$version::{
            ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
            server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
        };
        let message_request = Some(MessageRequest::ListServices(String::new()));
        let asked = ServerReflectionRequest { message_request, ..Default::default() };
        let mut client = ServerReflectionClient::new($channel);
        let answers = client.server_reflection_info(tokio_stream::iter([asked])).await.expect("it is served");
        let answer = answers.into_inner().message().await.expect("no error").expect("an answer");
        let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
            panic!("{answer:?}")
        };
        list.service.into_iter().map(|service| service.name).collect::<Vec<String>>()
    }};
}

#[test]
fn both_versions_of_reflection_list_the_services() {
    let process = Process::start(&[]);
    let addr = format!("http://{}", process.grpc);
    let (newer, older) = process.runtime.block_on(async {
        let channel = Endpoint::from_shared(addr).expect("an address").connect().await.expect("it listens");
        (listed!(v1, channel.clone()), listed!(v1alpha, channel))
    });
    for (services, version) in [(&newer, "v1"), (&older, "v1alpha")] {
        let own = format!("grpc.reflection.{version}.ServerReflection");
        for expected in ["grpc.health.v1.Health", "kith.v1.Graph", &own] {
            assert!(services.iter().any(|service| service == expected), "{expected}: {services:?}");
        }
    }
    assert_eq!(newer.len(), older.len());
}

/// A frame of HTTP/2.
fn http2(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("it is short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The frame that opens a stream for a call whose request never ends.
fn open_stream(stream: u32) -> Vec<u8> {
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/grpc.health.v1.Health/Check"),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
    ];
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let headers = headers.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat());
    http2(1, 4, stream, &headers.collect::<Vec<_>>())
}

fn connect_http2(process: &Process) -> TcpStream {
    let mut stream = TcpStream::connect(process.grpc).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("set");
    stream.set_write_timeout(Some(Duration::from_secs(20))).expect("set");
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), http2(4, 0, 0, &[])].concat();
    stream.write_all(&begin).expect("it reads");
    stream
}

#[test]
fn streams_of_a_connection_are_bounded_and_cancelling_without_end_closes_it() {
    const OPENED: u32 = 600;
    let process = Process::start(&[]);
    let mut stream = connect_http2(&process);
    let opened: Vec<u8> = (0..OPENED).flat_map(|number| open_stream(2 * number + 1)).collect();
    stream.write_all(&opened).expect("it reads");
    let mut refused = 0;
    while refused < OPENED - 512 {
        let mut head = [0; 9];
        stream.read_exact(&mut head).expect("a frame");
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).expect("the rest of it");
        // REFUSED_STREAM: the caller may try again.
        refused += u32::from(head[3] == 3 && payload == [0, 0, 0, 7]);
    }
    assert_eq!(process.grpc_code(None), Code::Ok);

    let mut stream = connect_http2(&process);
    let sent = (0..1_000_000u32).take_while(|number| {
        let number = 2 * number + 1;
        let cancelled = [open_stream(number), http2(3, 0, number, &[0, 0, 0, 8])].concat();
        stream.write_all(&cancelled).is_ok()
    });
    let sent = sent.count();
    assert!(sent < 1_000_000, "it is never closed");
    assert_eq!(process.grpc_code(None), Code::Ok);
}
