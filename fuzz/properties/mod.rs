//! The properties of every decoder of untrusted or stored bytes. It returns a value or an error, in bounded memory.
//! Each target checks more where it can: decoded values can be encoded and decoded again, and damaged files give errors
//! and never wrong answers. `docs/testing.md` explains how to run the targets.
//!
//! Two programs use these targets: the fuzzer (`fuzz/src/main.rs`), and a test over the seeds (`crates/top/kith/tests/seeds.rs`).

mod documents;
mod engine;
mod gremlin;
mod gremlin_text;
mod ids;
mod records;
mod schemas;
mod wire;

/// The name of an input that our own encoders make, and its bytes.
pub type Seed = (&'static str, Vec<u8>);

/// A decoder, or several similar ones.
pub struct Target {
    /// Its name, which is also that of the folder of its seeds.
    pub name: &'static str,
    /// Panics if an input breaks what must hold.
    pub check: fn(&[u8]),
    /// Inputs that our own encoders make.
    pub seeds: fn() -> Vec<Seed>,
    /// The memory that an input may take in addition to [`MEMORY_PER_BYTE`] for each of its bytes.
    pub memory_bytes: usize,
}

/// Memory for each byte of input. An entry of a record body may take half a byte on the wire and takes 24 bytes of memory; its target
/// decodes it several times.
pub const MEMORY_PER_BYTE: usize = 256;

/// The memory for buffers and copies of the input.
const SMALL: usize = 256 << 10;
/// The memory for buffers of builders and readers of files.
const FILES: usize = 16 << 20;
/// The memory for two copies of the longest value of a store, 64 MiB, which a frame of a few bytes can hold.
const VALUES: usize = 160 << 20;

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "ids", check: ids::check, seeds: ids::seeds, memory_bytes: SMALL },
    Target { name: "frames", check: wire::frames::check, seeds: wire::frames::seeds, memory_bytes: SMALL },
    Target { name: "resp", check: wire::resp::check, seeds: wire::resp::seeds, memory_bytes: SMALL },
    Target { name: "bodies", check: wire::bodies::check, seeds: wire::bodies::seeds, memory_bytes: SMALL },
    Target {
        name: "messages",
        check: wire::messages::check,
        seeds: wire::messages::seeds,
        memory_bytes: SMALL,
    },
    Target {
        name: "graphbinary",
        check: gremlin::graphbinary,
        seeds: gremlin::graphbinary_seeds,
        memory_bytes: FILES,
    },
    Target {
        name: "graphson",
        check: gremlin::graphson,
        seeds: gremlin::graphson_seeds,
        memory_bytes: FILES,
    },
    Target { name: "documents", check: documents::check, seeds: documents::seeds, memory_bytes: SMALL },
    Target { name: "schema", check: schemas::check, seeds: schemas::seeds, memory_bytes: FILES },
    Target { name: "infer", check: schemas::infer, seeds: schemas::infer_seeds, memory_bytes: SMALL },
    Target { name: "record", check: records::check, seeds: records::seeds, memory_bytes: FILES },
    Target {
        name: "record-json",
        check: records::check_json,
        seeds: records::json_seeds,
        memory_bytes: FILES,
    },
    Target {
        name: "gremlin-text",
        check: gremlin_text::check,
        seeds: gremlin_text::seeds,
        memory_bytes: FILES,
    },
    Target { name: "list", check: engine::lists::check, seeds: engine::lists::seeds, memory_bytes: SMALL },
    Target {
        name: "manifest",
        check: engine::manifest::check,
        seeds: engine::manifest::seeds,
        memory_bytes: FILES,
    },
    Target {
        name: "layout",
        check: engine::manifest::layout,
        seeds: engine::manifest::layout_seeds,
        memory_bytes: FILES,
    },
    Target {
        name: "summary",
        check: engine::manifest::summary,
        seeds: engine::manifest::summary_seeds,
        memory_bytes: SMALL,
    },
    Target {
        name: "chunk-set",
        check: engine::chunk_set::check,
        seeds: engine::chunk_set::seeds,
        memory_bytes: FILES,
    },
    Target {
        name: "members",
        check: engine::members::check,
        seeds: engine::members::seeds,
        memory_bytes: FILES,
    },
    Target {
        name: "postings",
        check: engine::members::postings,
        seeds: engine::members::postings_seeds,
        memory_bytes: FILES,
    },
    Target {
        name: "values",
        check: engine::values::check,
        seeds: engine::values::seeds,
        memory_bytes: VALUES,
    },
    Target { name: "patch", check: engine::patch::check, seeds: engine::patch::seeds, memory_bytes: FILES },
    Target {
        name: "damage",
        check: engine::damage::check,
        seeds: engine::damage::seeds,
        memory_bytes: FILES,
    },
];

/// Takes a byte off the front; 0 if the input is empty.
fn take(input: &mut &[u8]) -> u8 {
    match input.split_first() {
        Some((byte, rest)) => {
            *input = rest;
            *byte
        }
        None => 0,
    }
}

/// Takes a little-endian number of `N` bytes off the front; bytes that the input lacks are 0.
fn take_word<const N: usize>(input: &mut &[u8]) -> u64 {
    let mut word = [0; 8];
    let (head, rest) = input.split_at(N.min(input.len()));
    word[..head.len()].copy_from_slice(head);
    *input = rest;
    u64::from_le_bytes(word)
}
