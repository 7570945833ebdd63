//! Streams of a session and of a router client (`docs/design/0010-streaming.md`).

mod here;
mod router;
mod session;

pub(crate) use here::compute_stream_here;
pub(crate) use session::RecordDelivery;
