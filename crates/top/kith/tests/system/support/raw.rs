//! Calls by method or operation and bytes: what no client of ours would send.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use kith_client::security::{Dialer, GrpcChannel};
use kith_wire::frame::{Flags, Header, Op, PREFACE_BYTES, Preface};
use rustls::ClientConfig;
use std::{future::poll_fn, path::Path, sync::Arc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use tonic::{
    Request, Status,
    client::Grpc,
    client::GrpcService,
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

/// Connects over TLS to processes whose certificates are of this authority, and shows none.
pub fn connector(authority: &Path) -> TlsConnector {
    let roots = kith_client::security::pem::authorities("tls-ca", authority).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config))
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

/// Calls a method; how its first message, or its end, comes. Streams that go on for ever are left there.
pub async fn begin(dialer: &Dialer, addr: &str, path: &str, message: Bytes) -> Result<(), Status> {
    let mut grpc: Grpc<GrpcChannel> = Grpc::new(dialer.connect(addr).await?);
    grpc.ready().await?;
    let path = path.parse().expect("a path");
    let mut replies = grpc.server_streaming(Request::new(message), path, RawCodec).await?.into_inner();
    replies.message().await.map(drop)
}

/// As [`begin`], with the message compressed by this encoding of gRPC, and the bytes that it gave.
pub async fn begin_compressed(
    dialer: &Dialer,
    addr: &str,
    path: &str,
    (encoding, compressed): (&str, Vec<u8>),
) -> Result<(), Status> {
    let length = (compressed.len() as u32).to_be_bytes();
    let body = Full::new(Bytes::from([&[1][..], &length, &compressed].concat()));
    let request = tonic::codegen::http::Request::post(format!("http://{addr}{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-encoding", encoding)
        .body(tonic::body::Body::new(body))
        .expect("a request");
    let mut channel = dialer.connect(addr).await?;
    poll_fn(|cx| channel.poll_ready(cx)).await.map_err(|error| Status::from_error(error.into()))?;
    let response = channel.call(request).await.map_err(|error| Status::from_error(error.into()))?;
    let (head, mut body) = response.into_parts();
    let mut status = Status::from_header_map(&head.headers);
    if status.is_none() {
        let frame = body.frame().await.transpose()?;
        status = frame.and_then(|frame| Status::from_header_map(frame.trailers_ref()?));
    }
    match status {
        Some(status) if status.code() != tonic::Code::Ok => Err(status),
        _ => Ok(()),
    }
}

/// A framed connection over TLS that has shown this token, for one operation: how its first reply comes.
pub async fn frame(authority: &Path, addr: &str, token: &str, op: Op, body: &[u8]) -> Result<(), Status> {
    // The reply to the token says whether the connection may go further.
    frames(authority, addr, &[token], op, body).await.into_iter().collect()
}

/// As [`frame`], after these tokens in turn: how they and the operation are answered, in order.
pub async fn frames(
    authority: &Path,
    addr: &str,
    tokens: &[&str],
    op: Op,
    body: &[u8],
) -> Vec<Result<(), Status>> {
    let stream = TcpStream::connect(addr).await.expect("it listens");
    let name = "127.0.0.1".try_into().expect("a name");
    let mut stream = connector(authority).connect(name, stream).await.expect("TLS");
    let mut out = BytesMut::from(&Preface::OWN.encode()[..]);
    let mut asked: Vec<Header> = Vec::new();
    for token in tokens {
        let header = Header::request(asked.len() as u64 + 1, Op::Identify);
        header.encode_bytes(token.as_bytes(), &mut out).expect("short");
        asked.push(header);
    }
    let header = Header::request(asked.len() as u64 + 1, op).credited();
    header.encode_bytes(body, &mut out).expect("short");
    asked.push(header);
    stream.write_all(&out).await.expect("it reads");
    let mut preface = [0; PREFACE_BYTES];
    stream.read_exact(&mut preface).await.expect("it greets");
    let (mut buffer, mut received) = (BytesMut::new(), Vec::new());
    while received.len() < asked.len() {
        match kith_wire::frame::decode(&mut buffer).expect("frames") {
            Some(frame) if frame.header.flags.has(Flags::ERROR) => received.push(Err(frame.status())),
            Some(_) => received.push(Ok(())),
            None => {
                let read = stream.read_buf(&mut buffer).await.expect("it answers");
                assert!(0 < read, "closed without a word");
            }
        }
    }
    received
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
