//! Redis clients as people have them: redis-cli, redis-py, redis-benchmark; and a connection of bytes.

use serde_json::Value;
use std::{
    io::{BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    process::{Command, Stdio},
    time::Duration,
};

/// Of every wait for a reply; far above what any takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// The interpreter that has the distribution's redis-py.
const PYTHON: &str = "/usr/bin/python3";

/// Where Redis clients are served.
#[derive(Clone, Debug)]
pub struct Redis {
    pub addr: String,
}

impl Redis {
    /// The first router's.
    pub fn of_router(ready: &Value) -> Self {
        Self { addr: ready["resp"].as_str().expect("an address").to_owned() }
    }

    /// A node's.
    pub fn of_node(ready: &Value, node: usize) -> Self {
        Self { addr: ready["nodes"][node]["resp"].as_str().expect("an address").to_owned() }
    }

    fn port(&self) -> &str {
        self.addr.rsplit_once(':').expect("host:port").1
    }

    /// What redis-cli prints, errors among it.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let output = command("redis-cli").args(["-p", self.port()]).args(arguments).output();
        let output = output.expect("redis-cli runs: scripts/packages.sh installs it");
        String::from_utf8(output.stdout).expect("text")
    }

    /// What redis-benchmark prints, which must go well.
    pub fn benchmark(&self, arguments: &[&str]) -> String {
        let output = command("redis-benchmark").args(["-p", self.port()]).args(arguments).output();
        let output = output.expect("redis-benchmark runs: scripts/packages.sh installs it");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && err.is_empty(), "{}: {out}\n{err}", output.status);
        out.into_owned()
    }

    /// Runs a script with `client`, a connection of redis-py, and `keys`, what it was given: the JSON that it leaves in `result`.
    pub fn python(&self, script: &str, keys: &Value) -> Value {
        let program = format!(
            "import json, redis, sys\nkeys = json.load(sys.stdin)\nclient = redis.Redis(port={}, socket_timeout=60)\n{script}\njson.dump(result, sys.stdout)\n",
            self.port()
        );
        let mut child = Command::new(PYTHON)
            .args(["-c", &program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs: scripts/packages.sh installs it");
        let mut stdin = child.stdin.take().expect("its input is piped");
        stdin.write_all(keys.to_string().as_bytes()).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "redis-py: {script}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// A connection of bytes.
    pub fn connect(&self) -> Raw {
        let stream = TcpStream::connect(&self.addr).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Raw { reader: BufReader::new(stream) }
    }
}

fn command(name: &str) -> Command {
    let mut command = Command::new(name);
    command.stdin(Stdio::null());
    command
}

/// A connection of bytes.
pub struct Raw {
    reader: BufReader<TcpStream>,
}

impl Raw {
    pub fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).expect("it takes bytes");
    }

    /// Exactly so many bytes.
    pub fn receive(&mut self, bytes: usize) -> Vec<u8> {
        let mut received = vec![0; bytes];
        self.reader.read_exact(&mut received).expect("it answers");
        received
    }

    /// Says that nothing more comes; all that is still answered.
    pub fn end(mut self) -> Vec<u8> {
        self.reader.get_mut().shutdown(Shutdown::Write).expect("it is open");
        self.rest()
    }

    /// All that comes until it is closed.
    pub fn rest(mut self) -> Vec<u8> {
        let mut received = Vec::new();
        self.reader.read_to_end(&mut received).expect("it closes in order");
        received
    }
}
