//! What a protocol provides, and what stands behind it.

use crate::Guest;
use futures::future::BoxFuture;
use kith_api::{QueryError, Service, StoreShape};
use kith_types::ErrorCode;
use std::{fmt, io, sync::Arc};
use tokio::io::{AsyncRead, AsyncWrite};

/// A protocol in which clients ask.
///
/// Contract: a request is asked through [`Guest::call`], which checks the right to read and names the door in metrics. A door that
/// asks its backend in another way checks rights itself, by [`Guest::visitor`].
pub trait Door: fmt::Debug + Send + Sync + 'static {
    /// What it is called, and what it says to peers that never reach [`Door::serve`].
    fn words(&self) -> Words;

    /// Answers the requests of one connection until the end of the stream, which comes when the peer closes it or the process stops.
    ///
    /// # Errors
    /// Those of the stream. They are logged and close the connection.
    fn serve<'a>(self: Arc<Self>, stream: &'a mut Stream, guest: Guest) -> BoxFuture<'a, io::Result<()>>;

    /// Whether the door itself ends connections that are slow, that send too much before their peer is known, or that are open
    /// when the process stops ([`Guest::end`]). The stream of any other door ends by itself then.
    fn bounds_itself(&self) -> bool {
        false
    }
}

/// The names of a door, and its words for peers that are turned away.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The label `op` of its queries in metrics, the method in the audit log, and the middle of `kith_NAME_connections_total`.
    pub name: &'static str,
    /// The label `protocol` in the metrics of all connections of the process.
    pub protocol: &'static str,
    /// One of its clients in log messages, with an article.
    pub client: &'static str,
    /// Sent to a peer for which there is no room.
    pub no_room: &'static [u8],
    /// Sent to a peer that speaks in the clear to a port that takes TLS only.
    pub tls_required: &'static [u8],
}

/// A connection, in the clear or over TLS.
pub type Stream = Box<dyn Io>;

/// Bytes in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// What stands behind doors: a service, and what a protocol has to know of it at once.
///
/// Contract: a key's answer is a value, the proof that there is none, or an error; never "none" for want of knowing. The future of
/// [`Service::call`] is polled on the connection's own task: work that takes longer than handing it over belongs on another
/// thread.
pub trait Backend: Service {
    /// The label `role` of its doors in metrics: `router`, `node`, or what a program calls itself.
    fn role(&self) -> &'static str;

    /// The stores of values that are served, and their versions, where somebody can ask for a list of them.
    fn stores(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// The types of a store's keys and values, as they are known here.
    ///
    /// # Errors
    /// If there is none of that name, it holds no values, or it serves nothing yet.
    fn shape_of(&self, store: &str) -> Result<StoreShape, QueryError>;

    /// Whether each read costs a fan-out, so that reading keys of several clients together is cheaper.
    fn fans_out(&self) -> bool {
        true
    }

    /// The error of keys for which nobody answered, by their partitions.
    fn unanswered(&self, partitions: &[u32]) -> QueryError {
        let partitions: Vec<String> = partitions.iter().map(u32::to_string).collect();
        QueryError::Remote {
            code: ErrorCode::PartitionsUnavailable,
            message: format!("no replica of partition {} answered in time", partitions.join(", ")),
            help: "look at `kith cluster status`".to_owned(),
        }
    }
}
