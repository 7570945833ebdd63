//! Decompresses gRPC requests before anything else reads them. So rights are checked on what a method will see, and every
//! service accepts compressed requests. Answers are not compressed.

use super::{
    connections::{OpenConnection, no_memory, requests},
    stream::CallerConnection,
};
use crate::Charge;
use axum::{
    body::{Body, BodyDataStream},
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue},
    middleware::Next,
    response::Response,
};
use bytes::{BufMut, Bytes, BytesMut};
use futures::{StreamExt, stream};
use kith_types::ErrorCode;
use kith_wire::REQUEST_BYTES_MAX;
use std::{io::Read, sync::Arc};
use tokio::sync::Semaphore;
use tonic::{Status, service::Routes};

const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPTED: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const ACCEPTED_ENCODINGS: HeaderValue = HeaderValue::from_static("identity,gzip,zstd");

/// The length of the prefix of a gRPC message: a byte that says whether it is compressed, and the length.
const PREFIX_BYTES: usize = 5;
/// How many bytes are charged and decompressed at a time.
const PIECE_BYTES: usize = 64 << 10;
/// The longest buffer of a decompressed message: one piece more than a message may have, which shows that it is too long.
const MESSAGE_BYTES_MAX: usize = PREFIX_BYTES + REQUEST_BYTES_MAX + 2 * PIECE_BYTES;
/// The largest window of zstd, as a power of two: 8 MiB, as at level 19.
const WINDOW_LOG_MAX: u32 = 23;
/// How many messages are decompressed at the same time. It bounds the windows, which are not charged.
static DECOMPRESSING: Semaphore = Semaphore::const_new(4);

/// Wraps routes so that compressed requests reach them decompressed.
pub(crate) fn accepted(routes: Routes) -> Routes {
    Routes::from(routes.into_axum_router().layer(axum::middleware::from_fn(decompress)))
}

async fn decompress(mut request: Request, next: Next) -> Response {
    let encoding = match Encoding::of(request.headers()) {
        Ok(Some(encoding)) => encoding,
        Ok(None) => return next.run(request).await,
        Err(status) => {
            let mut response: Response = status.into_http();
            response.headers_mut().insert(ACCEPTED, ACCEPTED_ENCODINGS);
            return response;
        }
    };
    let Some(peer) = request.extensions().get::<CallerConnection>() else { return next.run(request).await };
    let connected = Arc::clone(&peer.connected);
    request.headers_mut().remove(ENCODING);
    let is_charged = !requests::is_streamed(&request);
    next.run(request.map(|body| decompressed(body, encoding, &connected, is_charged))).await
}

/// How messages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Gzip,
    Zstd,
}

impl Encoding {
    /// How the messages of a request are compressed; `None` if they are not.
    ///
    /// # Errors
    /// `unsupported_operation`, as gRPC prescribes, if they are compressed otherwise.
    fn of(headers: &HeaderMap) -> Result<Option<Self>, Status> {
        match headers.get(&ENCODING).map(HeaderValue::as_bytes) {
            None | Some(b"identity") => Ok(None),
            Some(b"gzip") => Ok(Some(Self::Gzip)),
            Some(b"zstd") => Ok(Some(Self::Zstd)),
            Some(other) => {
                let message = format!("requests cannot be compressed with `{}`", other.escape_ascii());
                let help = "compress them with gzip or zstd, or not at all";
                Err(kith_wire::status(ErrorCode::UnsupportedOperation, message, help))
            }
        }
    }

    fn reader(self, message: &[u8]) -> Result<Box<dyn Read + '_>, Status> {
        match self {
            Self::Gzip => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(message))),
            Self::Zstd => {
                let mut reader = zstd::Decoder::with_buffer(message).map_err(damaged)?;
                reader.window_log_max(WINDOW_LOG_MAX).map_err(damaged)?;
                Ok(Box::new(reader))
            }
        }
    }

    /// Decompresses one message, and puts the prefix of an uncompressed message before it. Each piece is charged before it
    /// is decompressed: twice, because the reader of the request copies it.
    fn expand(self, message: &[u8], charge: &mut Charge) -> Result<Bytes, Status> {
        let held = charge.bytes();
        let mut reader = self.reader(message)?;
        let mut out = Vec::new();
        out.put_bytes(0, PREFIX_BYTES);
        loop {
            let bytes = out.len() - PREFIX_BYTES;
            if REQUEST_BYTES_MAX < bytes {
                return Err(too_large());
            }
            if out.capacity() < out.len() + PIECE_BYTES {
                let capacity = (2 * out.capacity()).clamp(out.len() + PIECE_BYTES, MESSAGE_BYTES_MAX);
                // While it grows, the old buffer is there too; later the copy of its reader is.
                if !charge.grow_to(held + 2 * capacity) {
                    return Err(no_memory());
                }
                out.reserve_exact(capacity - out.len());
            }
            let piece = Read::take(&mut reader, PIECE_BYTES as u64).read_to_end(&mut out);
            if piece.map_err(damaged)? == 0 {
                break;
            }
        }
        let length = u32::try_from(out.len() - PREFIX_BYTES).expect("a request is shorter than 4 GiB");
        out[1..PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
        Ok(out.into())
    }
}

/// Wraps a body so that its messages are decompressed as they are read. `is_charged`: the bytes of the body are charged where
/// they arrive.
fn decompressed(body: Body, encoding: Encoding, connected: &Arc<OpenConnection>, is_charged: bool) -> Body {
    let messages = Messages {
        body: body.into_data_stream(),
        arrived: BytesMut::new(),
        encoding,
        charge: connected.charge(),
        is_charged,
        is_over: false,
    };
    Body::from_stream(stream::unfold(messages, |mut messages| async {
        match messages.next().await {
            Ok(Some(message)) => Some((Ok(message), messages)),
            Ok(None) => None,
            Err(status) => {
                messages.is_over = true;
                Some((Err(status), messages))
            }
        }
    }))
}

/// The messages of a request.
struct Messages {
    body: BodyDataStream,
    /// The bytes that have arrived of the next messages.
    arrived: BytesMut,
    encoding: Encoding,
    /// Pays for the last message that was decompressed, and for what has arrived unless it is charged already.
    charge: Charge,
    is_charged: bool,
    is_over: bool,
}

impl Messages {
    /// The next message, uncompressed, with its prefix.
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        if self.is_over {
            return Ok(None);
        }
        // The caller has taken the last message and asks for more.
        self.charge.shrink_to(if self.is_charged { 0 } else { self.arrived.len() });
        loop {
            if let Some(bytes) = whole(&self.arrived)? {
                let message = self.arrived.split_to(bytes).freeze();
                return self.plain(message).await.map(Some);
            }
            match self.body.next().await {
                Some(piece) => {
                    let piece = piece.map_err(|error| Status::from_error(error.into()))?;
                    if !self.is_charged && !self.charge.grow_to(2 * (self.arrived.len() + piece.len())) {
                        return Err(no_memory());
                    }
                    self.arrived.extend_from_slice(&piece);
                }
                None => {
                    self.is_over = true;
                    // An incomplete message is refused where the request is decoded.
                    let rest = self.arrived.split().freeze();
                    return Ok((!rest.is_empty()).then_some(rest));
                }
            }
        }
    }

    async fn plain(&mut self, message: Bytes) -> Result<Bytes, Status> {
        match message[0] {
            0 => return Ok(message),
            1 => {}
            _ => return Err(bad("the first byte of a message is neither 0 nor 1")),
        }
        let turn = DECOMPRESSING.acquire().await.expect("it is never closed");
        let (encoding, mut charge) = (self.encoding, self.charge.take());
        let work = move || {
            let expanded = encoding.expand(&message[PREFIX_BYTES..], &mut charge);
            (expanded, charge)
        };
        // It takes too long for a thread that serves connections.
        let (expanded, charge) = tokio::task::spawn_blocking(work).await.map_err(|error| {
            kith_wire::status(ErrorCode::Internal, format!("decompressing a request failed: {error}"), "")
        })?;
        drop(turn);
        self.charge = charge;
        expanded
    }
}

/// The length of the first message with its prefix; `None` if it has not arrived whole.
fn whole(arrived: &[u8]) -> Result<Option<usize>, Status> {
    let Some([_, length @ ..]) = arrived.first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
    let bytes = u32::from_be_bytes(*length) as usize;
    if REQUEST_BYTES_MAX < bytes {
        return Err(too_large());
    }
    Ok((PREFIX_BYTES + bytes <= arrived.len()).then_some(PREFIX_BYTES + bytes))
}

fn too_large() -> Status {
    let message = format!("a message of the request is longer than {REQUEST_BYTES_MAX} bytes");
    kith_wire::status(ErrorCode::TooLarge, message, "ask for less at once")
}

fn damaged(error: std::io::Error) -> Status {
    bad(&format!("a compressed message of the request cannot be decompressed: {error}"))
}

fn bad(message: &str) -> Status {
    let help = "send it uncompressed, or compressed as the header `grpc-encoding` says, with a window of at most 8 MiB";
    kith_wire::status(ErrorCode::BadRequest, message, help)
}

#[cfg(test)]
mod tests {
    use super::{super::connections::testing::known, *};
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 3).unwrap()
    }

    fn message(is_compressed: bool, bytes: &[u8]) -> Vec<u8> {
        let length = (bytes.len() as u32).to_be_bytes();
        [&[u8::from(is_compressed)][..], &length, bytes].concat()
    }

    /// The result of a reader for a body that arrives in pieces of this size: whole messages, or the code of the error.
    async fn read(
        connected: &Arc<OpenConnection>,
        encoding: Encoding,
        body: &[u8],
        piece: usize,
    ) -> Result<Vec<u8>, String> {
        let pieces: Vec<Result<Bytes, Status>> =
            body.chunks(piece).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let body = decompressed(
            Body::from_stream(stream::iter(pieces)),
            encoding,
            connected,
            piece.is_multiple_of(2),
        );
        let mut body = body.into_data_stream();
        let mut all = Vec::new();
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|error| Status::from_error(error.into()));
            all.extend_from_slice(&piece.map_err(|status| kith_wire::code_of(&status).name().to_owned())?);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn messages_are_decompressed_however_they_arrive() {
        let connected = known();
        let long: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        for (encoding, of) in [(Encoding::Gzip, gzip as fn(&[u8]) -> Vec<u8>), (Encoding::Zstd, zstd)] {
            let body = [
                message(true, &of(b"one")),
                message(false, b"two"),
                message(true, &of(&long)),
                message(true, &of(b"")),
            ];
            let plain =
                [message(false, b"one"), message(false, b"two"), message(false, &long), message(false, b"")];
            for piece in [7, 4_096, 1 << 20] {
                let outcome = read(&connected, encoding, &body.concat(), piece).await;
                assert!(outcome == Ok(plain.concat()), "{encoding:?} in pieces of {piece}");
            }
        }
        assert_eq!(connected.request_bytes(), 0);
    }

    #[tokio::test]
    async fn a_bomb_is_refused_and_what_is_damaged_too() {
        let connected = known();
        let zeros = vec![0; REQUEST_BYTES_MAX + (1 << 20)];
        for (encoding, of) in [(Encoding::Gzip, gzip as fn(&[u8]) -> Vec<u8>), (Encoding::Zstd, zstd)] {
            let refused = async |body: &[u8]| read(&connected, encoding, body, 4_096).await.unwrap_err();
            assert_eq!(refused(&message(true, &of(&zeros))).await, "too_large", "{encoding:?}");
            let whole = of(b"a text that is long enough to be cut");
            assert_eq!(
                refused(&message(true, &whole[..whole.len() - 9])).await,
                "bad_request",
                "{encoding:?}"
            );
            assert_eq!(refused(&message(true, b"nothing of the kind")).await, "bad_request", "{encoding:?}");
            assert_eq!(refused(&[1, 0xff, 0xff, 0xff, 0xff]).await, "too_large", "{encoding:?}");
            assert_eq!(refused(&[7, 0, 0, 0, 1, 1]).await, "bad_request", "{encoding:?}");
        }
        assert_eq!(connected.request_bytes(), 0);
    }

    #[tokio::test]
    async fn what_has_no_memory_is_refused_before_it_is_decompressed() {
        let connected = known();
        let mut others = connected.charge();
        let free = 1 << 20;
        let mut taken = 0;
        // All that this connection has, but a MiB.
        while others.grow_to(taken + free) {
            taken += free;
        }
        others.shrink_to(taken - free);
        let body = message(true, &gzip(&vec![0; 4 << 20]));
        assert_eq!(read(&connected, Encoding::Gzip, &body, 4_096).await.unwrap_err(), "overloaded");
        assert_eq!(connected.request_bytes(), taken - free);
    }
}
