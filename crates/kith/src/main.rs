//! The `kith` command line.
fn main() {}
