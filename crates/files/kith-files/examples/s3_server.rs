//! Runs the S3 server of the tests as a process, for tests that are not written in Rust. The process writes one line of
//! JSON with the environment variables for a client and the folder of its bucket. It ends when its standard input is
//! closed.

use kith_files::testing::S3;
use std::io::Read;

fn main() {
    let server = S3::start();
    let env: serde_json::Map<_, _> =
        server.settings().into_iter().map(|(name, value)| (name, value.into())).collect();
    println!("{}", serde_json::json!({"env": env, "bucket": server.file("")}));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
