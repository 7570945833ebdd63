//! Compiles the wire contract without `protoc`, and keeps its descriptors for reflection.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["proto/kith.proto"], ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("kith_descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    tonic_prost_build::configure().bytes(".").codec_path("crate::MessageCodec").compile_fds(descriptors)?;
    let etcd = protox::compile(["proto/etcd.proto"], ["proto"])?;
    tonic_prost_build::configure().build_server(false).compile_fds(etcd)?;
    Ok(())
}
