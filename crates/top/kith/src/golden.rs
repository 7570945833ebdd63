//! Golden files: blocks of an input, `----`, and the expected outcome. `BLESS=1` writes the actual outcomes into the file.

use std::{env, fs, path::Path};

/// Compares the expected outcome of every block of `testdata/<name>` with what `outcome` returns for its input.
pub fn check(name: &str, outcome: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
    let expected = fs::read_to_string(&path).unwrap();
    let blocks = expected.split("\n\n").filter(|block| !block.trim().is_empty());
    let actual: Vec<String> = blocks
        .map(|block| {
            let (head, _) = block.split_once("\n----").unwrap_or((block.trim_end(), ""));
            let input: Vec<&str> = head.lines().filter(|line| !line.starts_with('#')).collect();
            // An empty line ends a block, so empty lines of the outcome are written as a dot.
            let lines = outcome(&input.join("\n"));
            let lines: Vec<&str> =
                lines.trim_end().lines().map(|line| if line.is_empty() { "." } else { line }).collect();
            format!("{}\n----\n{}\n", head.trim_start_matches('\n'), lines.join("\n"))
        })
        .collect();
    let actual = actual.join("\n");
    if env::var_os("BLESS").is_some() {
        fs::write(&path, actual).unwrap();
    } else {
        assert!(actual == expected, "{name} differs; BLESS=1 rewrites it\n--- now:\n{actual}");
    }
}
