//! Tests how long a request to an object store is repeated if the store does not answer or returns errors.

use kith_engine::Source;
use kith_files::objects::{Access, Location, Objects};
use parking_lot::Mutex;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// The time limit of a test, which is far above the retry times and far below the minute after which the library would
/// give up.
const DEADLINE: Duration = Duration::from_secs(25);

/// The behaviour of a server on one connection.
type Serve = fn(TcpStream, &Methods);
type Methods = Arc<Mutex<Vec<String>>>;

/// Starts a server that runs `serve` on every connection. Returns access to it, and the methods of the requests that it
/// has received.
fn server(serve: Serve) -> (Access, Methods) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let methods = Methods::default();
    let seen = Arc::clone(&methods);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let seen = Arc::clone(&seen);
            thread::spawn(move || serve(stream, &seen));
        }
    });
    let settings = [
        ("aws_endpoint_url", endpoint.as_str()),
        ("aws_access_key_id", "key"),
        ("aws_secret_access_key", "secret"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    (Access { settings, retry_for: Duration::from_secs(2) }, methods)
}

/// Answers every request with 503.
fn unavailable(stream: TcpStream, methods: &Methods) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|bytes| 0 < bytes) {
        if line.trim().is_empty() {
            let answer = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
            if reader.get_mut().write_all(answer).is_err() {
                return;
            }
        } else if line.trim_end().ends_with("HTTP/1.1") {
            let method = line.split(' ').next().unwrap_or_default().to_owned();
            methods.lock().push(method);
        }
        line.clear();
    }
}

/// Reads requests and never answers.
fn mute(mut stream: TcpStream, _: &Methods) {
    let mut bytes = [0; 4096];
    while stream.read(&mut bytes).is_ok_and(|count| 0 < count) {}
}

fn read(access: &Access, narrow: impl FnOnce(Objects) -> Objects) -> Duration {
    let location: Location = "s3://bucket/store".parse().expect("a place");
    let objects = narrow(Objects::open(&location, access).expect("the settings are valid"));
    let begun = Instant::now();
    let mut bytes = [0; 16];
    Source::read(&objects, "manifest.json", 0, &mut bytes).expect_err("nobody answers");
    begun.elapsed()
}

#[test]
fn a_read_that_failed_is_not_followed_by_another_question() {
    let (access, methods) = server(unavailable);
    read(&access, |objects| objects);
    let methods = methods.lock();
    assert!(1 < methods.len() && methods.iter().all(|method| method == "GET"), "{methods:?}");
}

#[test]
fn a_store_that_says_nothing_is_given_up_when_settings_say() {
    let (access, _) = server(mute);
    let taken = read(&access, |objects| objects);
    assert!(taken < DEADLINE, "{taken:?}");
}

#[test]
fn the_time_of_repeats_can_be_narrowed_for_one_location() {
    let (access, _) = server(mute);
    let access = Access { retry_for: Duration::from_secs(600), ..access };
    let taken = read(&access, |objects| objects.repeating_for(Duration::from_secs(2)).join("values"));
    assert!(taken < DEADLINE, "{taken:?}");
}
