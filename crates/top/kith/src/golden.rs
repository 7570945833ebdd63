//! Pages of requests and commands with their outcomes, in `testdata`.

use kith_sim::scenario;
use std::path::{Path, PathBuf};

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

/// Compares the expected outcome of every block of `testdata/<name>` with what `outcome` returns for its input.
pub fn check(name: &str, outcome: impl Fn(&str) -> String) {
    scenario::check_blocks(&page(name), |lines| outcome(&lines.join("\n")));
}

/// Compares `testdata/<name>` with these blocks of input and what `outcome` returns for them.
pub fn check_inputs(name: &str, inputs: &[&str], outcome: impl Fn(&str) -> String) {
    scenario::check_inputs(&page(name), inputs, |lines| outcome(&lines.join("\n")));
}
