//! Compares the engine alone with RocksDB and its PlainTable: batches of 5,000 keys out of a million, values of 100
//! bytes and of 1 KiB, one thread, no network, everything mapped and in memory. Measured is the processor time per key,
//! in turn on the same keys, and every value is compared. Then the memory of each is measured, in a process of its own
//! that has read every value.
//!
//! There are two uses: one reads the first word of each value, the other copies all values into one buffer, as for an
//! answer. The lines of the report differ in what they prove:
//!
//! - "copied, proven by the client": Kith compares keys and copies each value with its proof, as a node does for a client that verifies.
//!   The client computes the checksums. This line is held against 0.25 of `Get`.
//! - "what the client proves": the checksums of the copied values, and nothing else.
//! - "first words" and "copied": Kith computes every value's checksum itself, as a node does for a client that does not verify.
//! - `Get` and `MultiGet`: PlainTable proves nothing.
//! - "floor": the same bytes from memory and their checksums; nothing is looked up.
//!
//! `KITH_BENCH_KEYS` sets the number of rows (1,000,000), and `KITH_BENCH_ROUNDS` the number of rounds (41).

use kith_engine::{
    FileKind, KeyType, Manifest, ValuesReader,
    
};
use kith_files::{ValuesBuilder, ValuesOptions};
use kith_rivals::{
    Side,
    floor::Floor,
    plain_table::{Api, PlainTable},
    print, rounds, setting,
};
use kith_types::{KeyRef, PartitionCount, PartitionId, StoreVersion, ValueProof, fmix64};
use std::{
    hint::black_box,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::Command,
};

/// The number of keys of one call.
const BATCH: usize = 5_000;
/// The number of batches of one timing.
const BATCHES: usize = 10;
/// The number of partitions of a cluster by default.
const PARTITIONS: u32 = 24;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, dir] = &arguments[..] {
        println!("{}", resident_after_reading(role, Path::new(dir)));
        return;
    }
    let rows = setting("KITH_BENCH_KEYS", 1_000_000) as u64;
    println!("{rows} keys of 8 bytes, batches of {BATCH}, one thread; nanoseconds of processor a key");
    for value_bytes in [100, 1_024] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let both = Both::build(dir.path(), rows, value_bytes);
        both.compare(setting("KITH_BENCH_ROUNDS", 41));
        both.weigh();
    }
}

/// The same rows in both.
struct Both {
    rows: u64,
    value_bytes: usize,
    ours: PathBuf,
    theirs: PathBuf,
    manifest: Manifest,
}

/// The random bytes that values are taken from. The first word of a value is never that of its neighbour.
fn noise(value_bytes: usize) -> Vec<u8> {
    (0..8 * 65_536 + value_bytes as u64).step_by(8).flat_map(|at| fmix64(at).to_le_bytes()).collect()
}

fn value(noise: &[u8], value_bytes: usize, id: u64) -> &[u8] {
    &noise[(fmix64(id) % 65_536) as usize * 8..][..value_bytes]
}

impl Both {
    fn build(dir: &Path, rows: u64, value_bytes: usize) -> Self {
        let noise = noise(value_bytes);
        let value = |id| value(&noise, value_bytes, id);
        let theirs = dir.join("rocksdb");
        PlainTable::build(&theirs, (0..rows).map(|id| (id.to_le_bytes(), value(id))));
        let partitions = PartitionCount::new(PARTITIONS).expect("a count");
        let options = ValuesOptions::new("rows", StoreVersion(1), partitions, dir.join("rows"));
        let mut builder = ValuesBuilder::new(ValuesOptions { key: KeyType::Id, ..options }).expect("a build");
        for id in 0..rows {
            builder.row(&id.to_le_bytes(), value(id)).expect("a row");
        }
        let (manifest, _) = builder.finish(&mut |_| {}).expect("built");
        Self { rows, value_bytes, ours: dir.join("rows/1"), theirs, manifest }
    }

    fn compare(&self, count: usize) {
        let mut opened = self.opened(count);
        println!("values of {} bytes", self.value_bytes);
        opened.look(count);
        opened.copy(self.value_bytes, count);
        opened.prove(self.value_bytes, count);
    }

    fn opened(&self, count: usize) -> Opened {
        let reader = open(&self.ours);
        let [mut one, mut many] = [Api::Get, Api::MultiGet].map(|api| PlainTable::open(&self.theirs, api));
        // Pages are mapped once, by both.
        check_all(self.rows, self.value_bytes, &reader, &mut one, &mut many);
        let noise = noise(self.value_bytes);
        let floor =
            Floor::new(self.value_bytes, (0..self.rows).map(|id| value(&noise, self.value_bytes, id)));
        let keys = (0..=count).map(|round| keys(round as u64, self.rows)).collect();
        Opened { reader, one, many, floor, keys }
    }

    /// Measures the resident memory after every value was read, for each side in a process of its own.
    fn weigh(&self) {
        let program = std::env::current_exe().expect("this program");
        let resident = |role: &str, dir: &Path| -> u64 {
            let output = Command::new(&program).arg(role).arg(dir).output().expect("this program runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
        };
        let index: u64 = self
            .manifest
            .files
            .iter()
            .filter(|entry| entry.name.ends_with(FileKind::Index.extension()))
            .map(|entry| entry.bytes)
            .sum();
        let pure = self.rows * (8 + self.value_bytes as u64);
        let (ours, theirs) = (resident("kith", &self.ours), resident("rocksdb", &self.theirs));
        println!(
            "  memory: Kith {:.1} bytes a key, of keys, values and index ({:.1}): {:.3}; RocksDB {:.1} bytes a key",
            ours as f64 / self.rows as f64,
            (pure + index) as f64 / self.rows as f64,
            ours as f64 / (pure + index) as f64,
            theirs as f64 / self.rows as f64
        );
    }
}

/// Both engines, opened, and the keys of each round.
struct Opened {
    reader: ValuesReader,
    one: PlainTable,
    many: PlainTable,
    floor: Floor,
    keys: Vec<Vec<[u8; 8]>>,
}

impl Opened {
    /// Only the first word of each value is read.
    fn look(&mut self, count: usize) {
        let Self { reader, one, many, floor, keys } = self;
        let mut sides: [Side<'_>; 4] = [
            ("Kith, first words", Box::new(|round| per_batch(&keys[round], |keys| touch(reader, keys)))),
            ("Get", Box::new(|round| per_batch(&keys[round], |keys| one.touch(keys)))),
            ("MultiGet", Box::new(|round| per_batch(&keys[round], |keys| many.touch(keys)))),
            ("floor", Box::new(|round| per_batch(&keys[round], |keys| floor.touch(keys)))),
        ];
        let took = rounds(&mut sides, count, BATCH * BATCHES);
        print(&sides, &took);
    }

    /// All values are copied into one buffer.
    fn copy(&mut self, value_bytes: usize, count: usize) {
        let Self { reader, one, many, floor, keys } = self;
        let mut unproven = Copied::with_room(value_bytes);
        let mut ours = Vec::with_capacity(BATCH * value_bytes);
        let mut bare = Vec::with_capacity(BATCH * value_bytes);
        let [mut theirs, mut grouped] = [(); 2].map(|()| vec![0; BATCH * value_bytes]);
        let mut sides: [Side<'_>; 5] = [
            (
                "Kith, copied, proven by the client",
                Box::new(|round| {
                    per_batch(&keys[round], |keys| {
                        copy_with_proofs(reader, keys, &mut unproven);
                        last_word(&unproven.bytes)
                    })
                }),
            ),
            (
                "Kith, copied",
                Box::new(|round| {
                    per_batch(&keys[round], |keys| {
                        ours.clear();
                        copy(reader, keys, &mut ours);
                        last_word(&ours)
                    })
                }),
            ),
            (
                "Get",
                Box::new(|round| {
                    per_batch(&keys[round], |keys| {
                        one.copy(keys, &mut theirs);
                        last_word(&theirs)
                    })
                }),
            ),
            (
                "MultiGet",
                Box::new(|round| {
                    per_batch(&keys[round], |keys| {
                        many.copy(keys, &mut grouped);
                        last_word(&grouped)
                    })
                }),
            ),
            (
                "floor",
                Box::new(|round| {
                    per_batch(&keys[round], |keys| {
                        bare.clear();
                        floor.copy(keys, &mut bare);
                        last_word(&bare)
                    })
                }),
            ),
        ];
        let took = rounds(&mut sides, count, BATCH * BATCHES);
        print(&sides, &took);
    }

    /// It is measured by itself: it proves the values of one batch again and again, so its number differs from those of
    /// the others.
    fn prove(&self, value_bytes: usize, count: usize) {
        let batch = &self.keys[0][..BATCH];
        let mut received = Copied::with_room(value_bytes);
        copy_with_proofs(&self.reader, batch, &mut received);
        let prove = |_| (0..BATCHES).map(|_| prove(batch, value_bytes, &received)).sum();
        let mut sides: [Side<'_>; 1] = [("what the client proves", Box::new(prove))];
        let took = rounds(&mut sides, count, BATCH * BATCHES);
        print(&sides, &took);
    }
}

fn open(dir: &Path) -> ValuesReader {
    let all: Vec<PartitionId> = (0..PARTITIONS).map(PartitionId).collect();
    ValuesReader::open(dir, &all).expect("a whole version")
}

/// Random keys that exist.
fn keys(round: u64, rows: u64) -> Vec<[u8; 8]> {
    let random = |index: usize| fmix64(round << 32 | index as u64) % rows;
    (0..BATCH * BATCHES).map(|index| random(index).to_le_bytes()).collect()
}

fn per_batch(keys: &[[u8; 8]], mut read: impl FnMut(&[[u8; 8]]) -> u64) -> u64 {
    keys.chunks(BATCH).map(&mut read).fold(0, u64::wrapping_add)
}

fn touch(reader: &ValuesReader, keys: &[[u8; 8]]) -> u64 {
    let mut sum = 0u64;
    reader.get_many(keys, |_, value| {
        let value = value.expect("undamaged").expect("it is there");
        sum = sum.wrapping_add(u64::from_le_bytes(*value.first_chunk().expect("a word")));
        ControlFlow::Continue(())
    });
    sum
}

fn copy(reader: &ValuesReader, keys: &[[u8; 8]], out: &mut Vec<u8>) {
    reader.get_many(keys, |_, value| {
        out.extend_from_slice(value.expect("undamaged").expect("it is there"));
        ControlFlow::Continue(())
    });
}

/// The values as a node sends them to a client that proves them.
struct Copied {
    bytes: Vec<u8>,
    proofs: Vec<ValueProof>,
}

impl Copied {
    fn with_room(value_bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(BATCH * value_bytes), proofs: Vec::with_capacity(BATCH) }
    }
}

fn copy_with_proofs(reader: &ValuesReader, keys: &[[u8; 8]], out: &mut Copied) {
    out.bytes.clear();
    out.proofs.clear();
    reader.get_many_with_proofs(keys, |_, value| {
        let value = value.expect("undamaged").expect("it is there");
        out.bytes.extend_from_slice(value.bytes);
        out.proofs.push(value.proof.expect("values are stored as they are"));
        ControlFlow::Continue(())
    });
}

/// Does what a client does with the values that it received, and returns how many of them are intact, which is all of
/// them.
fn prove(keys: &[[u8; 8]], value_bytes: usize, received: &Copied) -> u64 {
    let values = received.bytes.chunks(value_bytes).zip(&received.proofs);
    let holds = keys
        .iter()
        .zip(values)
        .filter(|(key, (value, proof))| proof.holds(KeyRef::Id(u64::from_le_bytes(**key)), value));
    let count = holds.count();
    assert_eq!(count, keys.len(), "every value holds");
    count as u64
}

fn last_word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.last_chunk().expect("a word"))
}

/// Compares every value of both, byte by byte.
fn check_all(
    rows: u64,
    value_bytes: usize,
    reader: &ValuesReader,
    one: &mut PlainTable,
    many: &mut PlainTable,
) {
    let noise = noise(value_bytes);
    for start in (0..rows).step_by(BATCH) {
        let ids = start..rows.min(start + BATCH as u64);
        let keys: Vec<[u8; 8]> = ids.clone().map(u64::to_le_bytes).collect();
        let expected: Vec<u8> = ids.flat_map(|id| value(&noise, value_bytes, id)).copied().collect();
        let mut got = Vec::new();
        copy(reader, &keys, &mut got);
        assert!(got == expected, "Kith answers rightly");
        for table in [&mut *one, &mut *many] {
            got.fill(0);
            table.copy(&keys, &mut got);
            assert!(got == expected, "RocksDB answers rightly");
        }
    }
}

/// The resident bytes that this process gained when it opened a side and read every value.
fn resident_after_reading(role: &str, dir: &Path) -> u64 {
    let rows = setting("KITH_BENCH_KEYS", 1_000_000) as u64;
    let batches = (0..rows).step_by(BATCH).map(|start| start..rows.min(start + BATCH as u64));
    let keys = |ids: std::ops::Range<u64>| ids.map(u64::to_le_bytes).collect::<Vec<_>>();
    let before = resident();
    match role {
        "kith" => {
            let reader = open(dir);
            for ids in batches {
                black_box(touch(&reader, &keys(ids)));
            }
            resident() - before
        }
        "rocksdb" => {
            let mut table = PlainTable::open(dir, Api::Get);
            for ids in batches {
                black_box(table.touch(&keys(ids)));
            }
            resident() - before
        }
        other => panic!("nobody is called {other}"),
    }
}

/// The bytes of this process that are in memory, including mapped files.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux keeps it");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}
