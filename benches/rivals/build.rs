//! Compiles the few lines of C++ between these programs and RocksDB.

fn main() {
    println!("cargo:rerun-if-changed=src/plain_table.cc");
    cc::Build::new().cpp(true).std("c++17").file("src/plain_table.cc").compile("plain_table");
    println!("cargo:rustc-link-lib=rocksdb");
}
