//! Pages of requests and commands with their outcomes, in `testdata`.

use std::path::Path;

/// Compares the expected outcome of every block of `testdata/<name>` with what `outcome` returns for its input.
pub fn check(name: &str, outcome: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
    kith_sim::scenario::check_blocks(&path, |lines| outcome(&lines.join("\n")));
}
