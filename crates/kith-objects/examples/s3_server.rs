//! The S3 server of the tests as a process, for tests that are not written in Rust. It writes one line of JSON, with the variables that
//! let a client in and the folder that its bucket is, and ends when its standard input does.

#[path = "../tests/support/s3.rs"]
mod s3;

use std::io::Read;

fn main() {
    let server = s3::S3::start();
    let env: serde_json::Map<_, _> =
        server.settings().into_iter().map(|(name, value)| (name, value.into())).collect();
    println!("{}", serde_json::json!({"env": env, "bucket": server.file("")}));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
