//! The floor of large reads: the work that any store over the network must do, and nothing else. A server finds values
//! by their number in an array and sends them; nothing is hashed, looked up, proven or named.
//!
//! Servers are processes: this program, started again with [`ROLE`] in its environment.

use super::reads;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
};

/// The variable that says which server a process is, and how many values all servers have: `1/3/100000` is index 1 of 3
/// servers with 100,000 values.
const ROLE: &str = "KITH_BENCH_GATHER";
const VALUE_BYTES: usize = 1_024;
/// The number of values that are gathered before they are sent: as many as fit into a core's own cache.
const VALUES_A_SEND: usize = 256;

/// Serves until standard input ends, if this process was started for that. Returns whether it was.
pub fn serve_if_started_for_it() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    let numbers: Vec<u64> = role.split('/').map(|text| text.parse().expect("a number")).collect();
    let [index, servers, count] = numbers[..] else { panic!("{ROLE}={role}") };
    let values: Vec<u8> = (index..count).step_by(servers as usize).flat_map(reads::value).collect();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    println!("{}", listener.local_addr().expect("it is bound"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.expect("a connection"), &values);
        }
    });
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    true
}

/// Answers requests of `count, position…`, 32 bits each, with the values of these positions, until the client is gone.
fn serve(mut client: TcpStream, values: &[u8]) {
    client.set_nodelay(true).expect("a socket");
    let (mut count, mut positions, mut out) = ([0; 4], Vec::new(), Vec::new());
    while client.read_exact(&mut count).is_ok() {
        positions.resize(4 * u32::from_le_bytes(count) as usize, 0);
        client.read_exact(&mut positions).expect("a whole request");
        for positions in positions.as_chunks::<4>().0.chunks(VALUES_A_SEND) {
            out.clear();
            for position in positions {
                let at = u32::from_le_bytes(*position) as usize * VALUE_BYTES;
                out.extend_from_slice(&values[at..at + VALUE_BYTES]);
            }
            client.write_all(&out).expect("the client reads");
        }
    }
}

/// The servers, each with its share of the values of the ids from 0 on, and a client with a connection to each.
pub struct Gather {
    servers: Vec<Server>,
    /// All values of an answer, server by server. The buffer is reused for the next answer.
    buffer: Vec<u8>,
    /// For each requested id, its server and its position in that server's share.
    places: Vec<(usize, usize)>,
}

struct Server {
    process: Child,
    connection: TcpStream,
    request: Vec<u8>,
    asked: usize,
    /// The position in the buffer at which its share begins.
    start: usize,
}

impl Gather {
    /// Starts `servers` servers that hold `count` values together.
    pub fn start(servers: usize, count: u64) -> Self {
        let program = std::env::current_exe().expect("this program");
        let servers = (0..servers).map(|index| {
            let mut process = Command::new(&program)
                .env(ROLE, format!("{index}/{servers}/{count}"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("this program runs again");
            let mut addr = String::new();
            let stdout = process.stdout.take().expect("it is piped");
            BufReader::new(stdout).read_line(&mut addr).expect("it tells its address");
            let connection = TcpStream::connect(addr.trim()).expect("it listens");
            connection.set_nodelay(true).expect("a socket");
            Server { process, connection, request: Vec::new(), asked: 0, start: 0 }
        });
        Self { servers: servers.collect(), buffer: Vec::new(), places: Vec::new() }
    }

    /// The servers' processes.
    pub fn pids(&self) -> Vec<u32> {
        self.servers.iter().map(|server| server.process.id()).collect()
    }

    /// Asks all servers, then reads their answers into one buffer.
    pub fn read(&mut self, ids: &[u64]) {
        let count = self.servers.len();
        for server in &mut self.servers {
            server.request.clear();
            server.request.extend_from_slice(&[0; 4]);
            server.asked = 0;
        }
        self.places.clear();
        for id in ids {
            let index = *id as usize % count;
            let server = &mut self.servers[index];
            server.request.extend_from_slice(&((*id as usize / count) as u32).to_le_bytes());
            self.places.push((index, server.asked));
            server.asked += 1;
        }
        for server in &mut self.servers {
            server.request[..4].copy_from_slice(&(server.asked as u32).to_le_bytes());
            server.connection.write_all(&server.request).expect("it reads");
        }
        self.buffer.resize(ids.len() * VALUE_BYTES, 0);
        let mut start = 0;
        for server in &mut self.servers {
            let end = start + server.asked * VALUE_BYTES;
            server.connection.read_exact(&mut self.buffer[start..end]).expect("it answers");
            server.start = start;
            start = end;
        }
    }

    /// The value of the id at `index` in the last answer.
    pub fn value(&self, index: usize) -> &[u8] {
        let (server, index_there) = self.places[index];
        let at = self.servers[server].start + index_there * VALUE_BYTES;
        &self.buffer[at..at + VALUE_BYTES]
    }
}

impl Drop for Gather {
    fn drop(&mut self) {
        for server in &mut self.servers {
            drop(server.process.stdin.take());
            let _ = server.process.wait();
        }
    }
}
