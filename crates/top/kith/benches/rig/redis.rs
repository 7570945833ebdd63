//! The rival of RESP: a Redis server with the same keys and values, asked by redis-benchmark.
//!
//! It has every advantage that costs it nothing: everything in memory, no snapshots, no log of writes.

use kith_net::testing::free_address;
use std::{
    io::Write,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The time limit of a start, which is far above what it takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A running server. It is stopped when dropped.
pub struct RedisServer {
    server: Child,
    _folder: tempfile::TempDir,
    pub port: String,
    pub pid: u32,
    pub version: String,
}

impl RedisServer {
    /// Starts a server with these keys and values. Returns `None` with a message if Redis is not installed.
    pub fn start(rows: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Redis does not take port 0 for "any free port".
        let port = free_address().port().to_string();
        // One program under several names: this one comes with redis-cli, without a service that would be started.
        let mut command = Command::new("redis-check-rdb");
        command.arg0("redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.arg("--dir").arg(folder.path());
        let Ok(server) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            eprintln!("skipped: Redis is absent; scripts/packages.sh installs it");
            return None;
        };
        let pid = server.id();
        let mut redis = Self { server, _folder: folder, port, pid, version: String::new() };
        let started = Instant::now();
        while redis.cli(&["ping"]) != "PONG\n" {
            assert!(started.elapsed() < TIMEOUT, "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        let info = redis.cli(&["info", "server"]);
        let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
        redis.version = version.expect("its version").trim().to_owned();
        redis.load(rows);
        Some(redis)
    }

    fn cli(&self, arguments: &[&str]) -> String {
        let output = Command::new("redis-cli").args(["-p", &self.port]).args(arguments).output();
        String::from_utf8_lossy(&output.expect("redis-cli is there, as the server is").stdout).into_owned()
    }

    fn load(&self, rows: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) {
        let mut pipe = Command::new("redis-cli")
            .args(["-p", &self.port, "--pipe"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-cli is there");
        let mut stdin = std::io::BufWriter::new(pipe.stdin.take().expect("its input is piped"));
        for (key, value) in rows {
            write!(stdin, "*3\r\n$3\r\nSET\r\n${}\r\n", key.len()).expect("it reads");
            stdin.write_all(&key).expect("it reads");
            write!(stdin, "\r\n${}\r\n", value.len()).expect("it reads");
            stdin.write_all(&value).expect("it reads");
            stdin.write_all(b"\r\n").expect("it reads");
        }
        drop(stdin);
        assert!(pipe.wait().expect("it ends").success(), "Redis took all rows");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.server.id().to_string()]).status();
        let _ = self.server.wait();
    }
}

/// The requests per second that redis-benchmark measures against a port.
///
/// # Panics
/// If it fails.
pub fn requests_per_second(port: &str, requests: usize, keys: u64, arguments: &[String]) -> f64 {
    let output = Command::new("redis-benchmark")
        .args(["-p", port, "-n", &requests.to_string(), "-r", &keys.to_string(), "--csv"])
        .args(arguments)
        .output()
        .expect("redis-benchmark is there");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("ERR"), "redis-benchmark: {text}{errors}");
    // "test","rps",…  of the last line.
    let line = text.lines().rfind(|line| line.starts_with('"')).unwrap_or_default();
    let rps = line.split("\",\"").nth(1).and_then(|field| field.trim_matches('"').parse().ok());
    rps.unwrap_or_else(|| panic!("redis-benchmark: {text}{errors}"))
}
