//! The fuzzer: runs the target that `KITH_FUZZ_TARGET` names. libFuzzer generates the inputs and parses the command line.
#![no_main]

mod memory;
#[path = "../properties/mod.rs"]
mod properties;

use properties::{TARGETS, Target};
use std::sync::LazyLock;

#[global_allocator]
static MEMORY: memory::Bounded = memory::Bounded;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("KITH_FUZZ_TARGET").unwrap_or_default();
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    let found = TARGETS.iter().find(|target| target.name == name);
    let target = found.unwrap_or_else(|| panic!("KITH_FUZZ_TARGET={name:?} is none of {}", names.join(", ")));
    // Fixtures that are made once do not count as memory of an input.
    (target.seeds)().iter().for_each(|(_, input)| (target.check)(input));
    target
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let target = *TARGET;
    memory::limit(target.memory_bytes + properties::MEMORY_PER_BYTE * input.len());
    (target.check)(input);
    memory::limit(usize::MAX);
});
