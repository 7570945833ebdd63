//! Redis clients as people have them: redis-cli, redis-py, redis-benchmark; and a connection of bytes.

use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

/// Of every wait for a reply; far above what any takes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The interpreter that has the distribution's redis-py.
const PYTHON: &str = "/usr/bin/python3";

/// Where Redis clients are served.
#[derive(Clone, Debug)]
pub struct Redis {
    pub addr: String,
    /// `None`: in the clear.
    pub tls: Option<Tls>,
}

/// How TLS is spoken.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The authority that is believed.
    pub ca: PathBuf,
    /// The certificate that is shown, and its key.
    pub papers: Option<(PathBuf, PathBuf)>,
}

impl Redis {
    /// The first router's.
    pub fn of_router(ready: &Value) -> Self {
        Self { addr: ready["resp"].as_str().expect("an address").to_owned(), tls: None }
    }

    /// A node's.
    pub fn of_node(ready: &Value, node: usize) -> Self {
        Self { addr: ready["nodes"][node]["resp"].as_str().expect("an address").to_owned(), tls: None }
    }

    fn port(&self) -> &str {
        self.addr.rsplit_once(':').expect("host:port").1
    }

    /// A program of Redis that connects here.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.stdin(Stdio::null()).args(["-p", self.port()]);
        if let Some(Tls { ca, papers }) = &self.tls {
            command.args(["--tls", "--cacert"]).arg(ca);
            if let Some((cert, key)) = papers {
                command.arg("--cert").arg(cert).arg("--key").arg(key);
            }
        }
        command
    }

    /// The output of redis-cli, with the errors that it is answered with.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let output = self.command("redis-cli").args(arguments).output();
        let output = output.expect("redis-cli runs: scripts/packages.sh installs it");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Its output, with errors of its own.
    pub fn cli_all(&self, arguments: &[&str]) -> String {
        let output = self.command("redis-cli").args(arguments).output();
        let output = output.expect("redis-cli runs: scripts/packages.sh installs it");
        String::from_utf8([output.stdout, output.stderr].concat()).expect("text")
    }

    /// Its output for commands, a line each, over one connection.
    pub fn cli_lines(&self, arguments: &[&str], lines: &str) -> String {
        let mut command = self.command("redis-cli");
        let mut child = command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-cli runs: scripts/packages.sh installs it");
        child.stdin.take().expect("its input is piped").write_all(lines.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        String::from_utf8(output.stdout).expect("text")
    }

    /// A redis-cli that goes on asking over its one connection.
    pub fn dialogue(&self, arguments: &[&str]) -> Dialogue {
        let mut child = self
            .command("redis-cli")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-cli runs: scripts/packages.sh installs it");
        let reader = BufReader::new(child.stdout.take().expect("its output is piped"));
        Dialogue { stdin: child.stdin.take(), reader, child }
    }

    /// The output of redis-benchmark, which must succeed.
    pub fn benchmark(&self, arguments: &[&str]) -> String {
        let output = self.command("redis-benchmark").args(arguments).output();
        let output = output.expect("redis-benchmark runs: scripts/packages.sh installs it");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && err.is_empty(), "{}: {out}\n{err}", output.status);
        out.into_owned()
    }

    /// Runs a script with `client`, redis-py's, `connect`, which makes others with further arguments, and `keys`, what it was given: the JSON
    /// that it leaves in `result`.
    pub fn python(&self, script: &str, keys: &Value) -> Value {
        let program = format!(
            "import functools, json, redis, sys\nkeys = json.load(sys.stdin)\nconnect = functools.partial(redis.Redis, host='127.0.0.1', port={}, socket_timeout=60{})\nclient = connect()\n{script}\njson.dump(result, sys.stdout)\n",
            self.port(),
            self.python_tls()
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

    fn python_tls(&self) -> String {
        let Some(Tls { ca, papers }) = &self.tls else { return String::new() };
        let mut options = format!(", ssl=True, ssl_check_hostname=True, ssl_ca_certs={ca:?}");
        if let Some((cert, key)) = papers {
            options += &format!(", ssl_certfile={cert:?}, ssl_keyfile={key:?}");
        }
        options
    }

    /// A connection of bytes.
    pub fn connect(&self) -> Raw {
        let stream = TcpStream::connect(&self.addr).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Raw { reader: BufReader::new(stream) }
    }
}

/// A redis-cli that waits for the next command. Dropped, it ends.
pub struct Dialogue {
    child: Child,
    stdin: Option<ChildStdin>,
    reader: BufReader<ChildStdout>,
}

impl Dialogue {
    /// The first line of the reply to a command.
    pub fn ask(&mut self, line: &str) -> String {
        let stdin = self.stdin.as_mut().expect("it is open");
        writeln!(stdin, "{line}").expect("it reads");
        let mut reply = String::new();
        // Errors end with an empty line.
        while reply.trim().is_empty() {
            reply.clear();
            assert!(0 < self.reader.read_line(&mut reply).expect("text"), "redis-cli has ended");
        }
        reply.trim_end().to_owned()
    }
}

impl Drop for Dialogue {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
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
