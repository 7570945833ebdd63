//! The HTTP/2 streams of a connection, from the arrival of their headers until their answers have ended. hyper gives each a
//! task at once, however many there are, and h2 forgets a stream that is cancelled before its task has noticed. So the memory
//! of each is charged before anything is done for it, and a connection is not read while too many of its streams wait for
//! their tasks.

use super::{OpenConnection, UNCHARGED_BYTES, no_memory, too_many_lasting};
use crate::{Charge, server::stream::CallerConnection};
use axum::http::{Request, Response};
use futures::{FutureExt, future::BoxFuture};
use http_body::Body as _;
use http_body_util::BodyExt;
use std::{
    future::ready,
    sync::Arc,
    task::{Context, Poll},
};
use tonic::{Status, body::Body, codegen::Service};

/// The memory of a stream: what is not charged elsewhere of its request, and as much for what hyper, axum and tonic keep for
/// it (about 12 KiB).
const STREAM_BYTES: usize = UNCHARGED_BYTES + (16 << 10);
/// Methods whose requests last as long as their callers like, by the beginnings of their paths. They have a share of their own
/// of the memory for streams, because everybody may call them, and the rest must stay free for requests that end.
const LASTING: [&str; 3] =
    ["/kith.v1.Cluster/WatchTopology", "/grpc.health.v1.Health/Watch", "/grpc.reflection."];

/// A stream that counts as open until this is dropped.
#[derive(Debug)]
struct Stream {
    connected: Arc<OpenConnection>,
    has_started: bool,
    _charge: Charge,
}

impl Stream {
    /// Opens a stream for a request to `path`.
    ///
    /// # Errors
    /// `overloaded` if there is no memory for it.
    fn open(connected: &Arc<OpenConnection>, path: &str) -> Result<Self, Status> {
        let is_lasting = LASTING.iter().any(|lasting| path.starts_with(lasting));
        let mut charge = if is_lasting { connected.no_lasting_stream() } else { connected.no_stream() };
        if !charge.grow_to(STREAM_BYTES) {
            return Err(if is_lasting { too_many_lasting() } else { no_memory() });
        }
        connected.streams().opened();
        Ok(Self { connected: Arc::clone(connected), has_started: false, _charge: charge })
    }

    /// Notes that its task has its first turn.
    fn starts(&mut self) {
        if !std::mem::replace(&mut self.has_started, true) {
            self.connected.streams().started();
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.starts();
        self.connected.streams().ended();
    }
}

/// A service whose requests count as open streams of their connections. Without memory for one, it is refused at once.
#[derive(Clone, Debug)]
pub(crate) struct CountStreams<S>(pub S);

impl<S, B> Service<Request<B>> for CountStreams<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    // hyper calls this where it reads a request, and spawns the task of the returned future afterwards.
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let peer = request.extensions().get::<CallerConnection>();
        let stream = peer.map(|peer| Stream::open(&peer.connected, request.uri().path()));
        let mut stream = match stream {
            None => return self.0.call(request).boxed(),
            Some(Ok(stream)) => stream,
            Some(Err(refused)) => return ready(Ok(refused.into_http())).boxed(),
        };
        let answering = self.0.call(request);
        async move {
            stream.starts();
            let response = answering.await?;
            if response.body().is_end_stream() {
                return Ok(response);
            }
            Ok(response.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _until_its_end = &stream;
                    frame
                }))
            }))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            LASTING_BYTES_MAX, STREAMS_BYTES_MAX,
            open_streams::{STARTING_MAX, TASKS_MAX},
            testing::known,
        },
        *,
    };
    use futures::task::noop_waker;

    const QUERY: &str = "/kith.v1.Graph/Query";

    #[tokio::test]
    async fn streams_take_the_memory_for_requests_and_no_more() {
        let connected = known();
        let streams: Vec<_> = (0..12_000).map_while(|_| Stream::open(&connected, QUERY).ok()).collect();
        assert_eq!(streams.len(), STREAMS_BYTES_MAX / STREAM_BYTES);
        assert!(connected.charge().grow_to(1 << 20), "other requests have memory of their own");
        drop(streams);
        assert!(Stream::open(&connected, QUERY).is_ok());
    }

    #[tokio::test]
    async fn streams_that_last_leave_memory_for_requests_that_end() {
        let connected = known();
        let lasting =
            |count: usize| (0..count).map_while(|turn| Stream::open(&connected, LASTING[turn % 3]).ok());
        let streams: Vec<_> = lasting(12_000).collect();
        assert_eq!(streams.len(), LASTING_BYTES_MAX / STREAM_BYTES);
        let refused = Stream::open(&connected, LASTING[0]).expect_err("the share is used up");
        assert_eq!(kith_wire::code_of(&refused), kith_types::ErrorCode::Overloaded);
        let others: Vec<_> = (0..12_000).map_while(|_| Stream::open(&connected, QUERY).ok()).collect();
        assert_eq!(others.len(), (STREAMS_BYTES_MAX - LASTING_BYTES_MAX) / STREAM_BYTES);
        drop(streams);
        assert_eq!(lasting(1).count(), 1, "their memory is free again");
    }

    #[tokio::test]
    async fn a_connection_is_read_while_few_of_its_streams_wait_for_their_tasks() {
        let connected = known();
        let waker = noop_waker();
        let is_read = || connected.streams().poll_few(&Context::from_waker(&waker)).is_ready();
        let open =
            |count| (0..count).map(|_| Stream::open(&connected, QUERY).expect("there is memory")).collect();
        let mut streams: Vec<_> = open(STARTING_MAX - 1);
        assert!(is_read());
        streams.extend(open(1));
        assert!(!is_read());
        streams[3].starts();
        assert!(is_read());
        streams.pop();
        streams.iter_mut().for_each(Stream::starts);
        for _ in streams.len()..TASKS_MAX {
            assert!(is_read());
            let mut stream = Stream::open(&connected, QUERY).expect("there is memory");
            stream.starts();
            streams.push(stream);
        }
        assert!(!is_read(), "{}", streams.len());
        streams.pop();
        assert!(is_read());
    }
}
