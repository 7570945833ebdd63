//! The rival of large reads: memcached with the same values in memory, asked for many keys at once over plain sockets.

use kith_net::testing::free_address;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    ops::Range,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The time limit of a start, which is far above what it takes.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The memory that the server may use: several times the size of the values.
const MEMORY_MIB: &str = "1024";
/// The room that a value takes in an answer beside its bytes: `VALUE key flags length`, line ends, and its share of an
/// `END`.
const ROOM_BYTES: usize = 64;
/// The ways of asking that are tried. The fastest one depends on the machine and the load.
const WAYS: [Way; 5] = [
    Way { connections: 1, keys: 5_000 },
    Way { connections: 1, keys: 500 },
    Way { connections: 1, keys: 50 },
    Way { connections: 2, keys: 2_500 },
    Way { connections: 3, keys: 500 },
];
const TRIALS: usize = 15;

/// The number of connections, and the number of keys of one `get`. All requests are sent before answers are read.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub connections: usize,
    pub keys: usize,
}

/// A running server and a client. The server is stopped when dropped.
pub struct Memcached {
    server: Child,
    pub version: String,
    pub way: Way,
    connections: Vec<TcpStream>,
    request: Vec<u8>,
    /// The bytes of an answer. The buffer is reused for the next answer.
    buffer: Vec<u8>,
    /// The positions of the values in it, in the order of the ids.
    values: Vec<Range<usize>>,
}

impl Memcached {
    /// Starts a server with the values of these ids. Returns `None` with a message if memcached is not installed.
    pub fn start(rows: impl Iterator<Item = (u64, Vec<u8>)>) -> Option<Self> {
        // memcached would write a port of its own choice only to a file.
        let port = free_address().port().to_string();
        let mut command = Command::new("memcached");
        // As root, it runs only with the name of a user.
        command.args(["-l", "127.0.0.1", "-p", &port, "-U", "0", "-m", MEMORY_MIB, "-u", "nobody"]);
        let Ok(server) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            eprintln!("skipped: memcached is absent; scripts/packages.sh --bench installs it");
            return None;
        };
        let most = WAYS.iter().map(|way| way.connections).max().expect("there are ways");
        let mut memcached = Self {
            server,
            version: String::new(),
            way: WAYS[0],
            connections: Vec::new(),
            request: Vec::new(),
            buffer: Vec::new(),
            values: Vec::new(),
        };
        memcached.connections = (0..most).map(|_| connect(&port)).collect();
        memcached.load(rows);
        Some(memcached)
    }

    fn load(&mut self, rows: impl Iterator<Item = (u64, Vec<u8>)>) {
        let mut out = std::io::BufWriter::new(&self.connections[0]);
        for (id, value) in rows {
            write!(out, "set {id} 0 0 {} noreply\r\n", value.len()).expect("it reads");
            out.write_all(&value).expect("it reads");
            out.write_all(b"\r\n").expect("it reads");
        }
        out.write_all(b"version\r\n").expect("it reads");
        out.flush().expect("it reads");
        drop(out);
        let mut line = String::new();
        BufReader::new(&self.connections[0]).read_line(&mut line).expect("it answers");
        self.version = line.trim().strip_prefix("VERSION ").expect("it took all values").to_owned();
    }

    /// The server's process.
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Finds the way of asking that is fastest here, and uses it from now on.
    pub fn choose_way(&mut self, ids: &[u64]) {
        let mut best = [Duration::MAX; WAYS.len()];
        for _ in 0..TRIALS {
            for (way, best) in WAYS.iter().zip(&mut best) {
                self.way = *way;
                let started = Instant::now();
                self.read(ids);
                *best = started.elapsed().min(*best);
            }
        }
        let quickest = WAYS.iter().zip(best).min_by_key(|(_, best)| *best);
        self.way = *quickest.expect("there are ways").0;
    }

    /// Requests all values, then reads all answers into one buffer.
    ///
    /// # Panics
    /// If one has no value.
    pub fn read(&mut self, ids: &[u64]) {
        let Way { connections, keys } = self.way;
        let share = ids.len().div_ceil(connections).max(1);
        for (ids, connection) in ids.chunks(share).zip(&mut self.connections) {
            self.request.clear();
            for ids in ids.chunks(keys) {
                self.request.extend_from_slice(b"get");
                ids.iter().for_each(|id| write!(self.request, " {id}").expect("memory takes it"));
                self.request.extend_from_slice(b"\r\n");
            }
            connection.write_all(&self.request).expect("it reads");
        }
        self.values.clear();
        self.buffer.resize(ids.len() * (1_024 + ROOM_BYTES), 0);
        let mut start = 0;
        for (ids, connection) in ids.chunks(share).zip(&mut self.connections) {
            let batches = ids.len().div_ceil(keys);
            start = read_answers(connection, &mut self.buffer, start, ids, batches, &mut self.values);
        }
    }

    /// The value of the id at `index` in the last answer.
    pub fn value(&self, index: usize) -> &[u8] {
        &self.buffer[self.values[index].clone()]
    }
}

/// Reads the `batches` answers that together answer `ids` into `buffer`, from `start` on. Returns where they end.
fn read_answers(
    connection: &mut TcpStream,
    buffer: &mut [u8],
    start: usize,
    ids: &[u64],
    batches: usize,
    values: &mut Vec<Range<usize>>,
) -> usize {
    let (mut filled, mut at, mut ended) = (start, start, 0);
    let mut ids = ids.iter();
    loop {
        let count = connection.read(&mut buffer[filled..]).expect("it answers");
        assert!(count > 0, "memcached closed the connection, or its answer is longer than it can be");
        filled += count;
        while let Some(length) = buffer[at..filled].iter().position(|byte| *byte == b'\n') {
            let line = buffer[at..at + length].strip_suffix(b"\r").expect("lines end so");
            if line == b"END" {
                (at, ended) = (at + length + 1, ended + 1);
                continue;
            }
            let line = str::from_utf8(line).expect("text");
            let mut words = line.strip_prefix("VALUE ").expect("a value").split(' ');
            let key = words.next().and_then(|key| key.parse().ok());
            let bytes: usize = words.nth(1).and_then(|word| word.parse().ok()).expect("its length");
            let value = at + length + 1;
            if filled < value + bytes + 2 {
                break;
            }
            assert!(key.is_some() && key == ids.next().copied(), "values come in the order of the keys");
            values.push(value..value + bytes);
            at = value + bytes + 2;
        }
        if ended == batches {
            assert!(at == filled && ids.next().is_none(), "each key has a value, and nothing else comes");
            return filled;
        }
    }
}

fn connect(port: &str) -> TcpStream {
    let started = Instant::now();
    loop {
        if let Ok(connection) = TcpStream::connect(format!("127.0.0.1:{port}")) {
            connection.set_nodelay(true).expect("a socket");
            return connection;
        }
        assert!(started.elapsed() < TIMEOUT, "memcached does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.server.id().to_string()]).status();
        let _ = self.server.wait();
    }
}
