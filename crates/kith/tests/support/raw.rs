//! Calls by method or operation and bytes: what no client of ours would send.

use bytes::{Buf, BufMut, Bytes};
use kith_client::security::{Dialer, GrpcChannel};
use tonic::{
    Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// Messages as they are on the wire.
#[derive(Clone, Copy, Default)]
struct RawCodec;

impl Codec for RawCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(item);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Calls `/package.Service/Method` with one encoded message; every message of the reply.
pub async fn call(dialer: &Dialer, addr: &str, path: &str, message: Bytes) -> Result<Vec<Bytes>, Status> {
    let mut grpc: Grpc<GrpcChannel> = Grpc::new(dialer.connect(addr).await?);
    grpc.ready().await?;
    let path = path.parse().expect("a path");
    let mut replies = grpc.server_streaming(Request::new(message), path, RawCodec).await?.into_inner();
    let mut all = Vec::new();
    while let Some(reply) = replies.message().await? {
        all.push(reply);
    }
    Ok(all)
}

/// How a call ended: `ok`, or the code of its error.
pub fn outcome<T>(result: &Result<T, Status>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(status) => match kith_wire::detail_of(status).code {
            code if code.is_empty() => format!("{:?}: {}", status.code(), status.message()),
            code => code,
        },
    }
}
