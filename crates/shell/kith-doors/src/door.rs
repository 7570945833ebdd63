//! The trait that a protocol implements, and the trait of the service behind it.

use crate::DoorCaller;
use futures::future::BoxFuture;
use kith_query::{QueryError, Service, StoreShape};
use kith_types::ErrorCode;
use std::{fmt, io, sync::Arc};
use tokio::io::{AsyncRead, AsyncWrite};

/// A protocol in which clients send requests.
///
/// Contract: a door sends its requests through [`DoorCaller::call`], which checks the right to read and names the door in metrics. A
/// door that asks its backend in another way checks rights itself, with [`DoorCaller::rights`].
pub trait Door: fmt::Debug + Send + Sync + 'static {
    /// The door's names, and what it sends to peers that never reach [`Door::serve`].
    fn names(&self) -> DoorNames;

    /// Answers the requests of one connection until the end of the stream, which comes when the peer closes it or the
    /// process stops.
    ///
    /// # Errors
    /// Errors of the stream. They are logged and close the connection.
    fn serve<'a>(
        self: Arc<Self>,
        stream: &'a mut Stream,
        caller: DoorCaller,
    ) -> BoxFuture<'a, io::Result<()>>;

    /// Whether the door itself ends connections that are slow, that send too much before their peer has authenticated, or that
    /// are open when the process stops ([`DoorCaller::end`]). For any other door, the stream ends in these cases.
    fn bounds_itself(&self) -> bool {
        false
    }
}

/// The names of a door, and the bytes that it sends to peers that are refused.
#[derive(Clone, Copy, Debug)]
pub struct DoorNames {
    /// The label `op` of its queries in metrics, the method in the audit log, and the middle of `kith_NAME_connections_total`.
    pub name: &'static str,
    /// The label `protocol` in the metrics of all connections of the process.
    pub protocol: &'static str,
    /// The name of one of its clients in log messages, with an article.
    pub client: &'static str,
    /// Sent to a peer that is refused because there are too many connections.
    pub no_room: &'static [u8],
    /// Sent to a peer that does not use TLS on a port that requires it.
    pub tls_required: &'static [u8],
}

/// The stream of a connection, with or without TLS.
pub type Stream = Box<dyn Io>;

/// A stream of bytes in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// The service behind a door, with synchronous methods that a protocol may need while it reads a command.
///
/// Contract: a key's answer is a value, the proof that there is none, or an error. A backend that does not know never
/// answers "none". The future of [`Service::call`] is polled on the connection's own task: if the work takes longer than
/// handing it over to another thread, it belongs on another thread.
pub trait Backend: Service {
    /// The label `role` of its doors in metrics: `router`, `node`, or what a program calls itself.
    fn role(&self) -> &'static str;

    /// The stores of values that are served, and their versions, for protocols that can list them.
    fn stores(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// The types of a store's keys and values, as this process knows them.
    ///
    /// # Errors
    /// If there is no store of that name, it holds no values, or it has no served version yet.
    fn shape_of(&self, store: &str) -> Result<StoreShape, QueryError>;

    /// Whether each read costs a fan-out, so that reading keys of several clients together is cheaper.
    fn fans_out(&self) -> bool {
        true
    }

    /// The error for keys that no replica answered; `partitions` are the partitions of these keys.
    fn unanswered(&self, partitions: &[u32]) -> QueryError {
        let partitions: Vec<String> = partitions.iter().map(u32::to_string).collect();
        QueryError::Remote {
            code: ErrorCode::PartitionsUnavailable,
            message: format!("no replica of partition {} answered in time", partitions.join(", ")),
            help: "look at `kith cluster status`".to_owned(),
        }
    }
}
