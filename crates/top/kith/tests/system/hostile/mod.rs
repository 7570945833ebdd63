//! Peers that take what they can: memory before anybody knows them, places of others, descriptors of files.

mod budgets;
mod strangers;

use crate::support::{self, secured};
use bytes::BytesMut;
use kith_wire::frame::{Header, Op};
use std::{fs, net::TcpStream, process::Command, time::Duration};
use support::{
    cluster::Cluster,
    values::create,
    words::{WORDS, assert_reads, judge, mget, push_version},
};

/// Bound on every wait for a peer; far above what any of them takes.
const TIMEOUT: Duration = Duration::from_secs(90);
const MIB: u64 = 1 << 20;

/// A cluster with a store of texts that has been read; `flags` as of `kith dev`.
fn started(flags: &[&str]) -> Cluster {
    let cluster = Cluster::start(flags);
    create(&cluster, "people", WORDS.0, WORDS.1);
    push_version(&cluster, "people", 100, 1);
    assert_reads(&cluster, "people", 100, 1);
    cluster
}

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

/// A frame of HTTP/2 of stream `id`.
fn http2(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let length = &(payload.len() as u32).to_be_bytes()[1..];
    [length, &[kind, flags], &id.to_be_bytes(), payload].concat()
}

#[test]
fn a_process_that_may_open_few_files_does_not_start_and_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let kith = env!("CARGO_BIN_EXE_kith");
    let script = format!("ulimit -n 64 && exec {kith} dev --data \"$1\" -o json");
    let output = Command::new("sh").args(["-c", &script, "sh"]).arg(folder.path()).output().expect("a shell");
    assert!(!output.status.success());
    let output_text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output_text.contains("too_few_files") && output_text.contains("ulimit -n 4096"), "{output_text}");
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
    let read_log = move || fs::read_to_string(&log).expect("a log file");
    cluster.wait_until("a scrub found no descriptor", |_| {
        let log = read_log();
        assert!(!log.contains("damage"), "{log}");
        log.contains("lacks descriptors")
    });
    judge(&request, &cluster.run(std::slice::from_ref(&request), 1).0[0]).expect("readers are answered");
    assert!(!read_log().contains("damage"), "nothing was repaired either");
}
