//! Bytes that this process received over its open TCP connections, as the kernel counts them for each.

use std::process::Command;

/// The bytes received so far over connections that are open now. Returns `None` with a message if `ss` is absent.
pub fn now() -> Option<u64> {
    let Ok(output) = Command::new("ss").args(["-tinpHO", "state", "established"]).output() else {
        eprintln!("skipped: ss is absent; scripts/packages.sh --bench installs it");
        return None;
    };
    let own = format!("pid={},", std::process::id());
    let text = String::from_utf8_lossy(&output.stdout);
    let of_line = |line: &str| -> u64 {
        let count = line.split_whitespace().find_map(|word| word.strip_prefix("bytes_received:"));
        count.map_or(0, |count| count.parse().expect("a number"))
    };
    Some(text.lines().filter(|line| line.contains(&own)).map(of_line).sum())
}
