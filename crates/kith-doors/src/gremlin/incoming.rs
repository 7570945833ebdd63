//! Messages to requests.

use super::{
    failure::no_memory,
    inlet::Unfinished,
    outbox::{Coding, Ended, Outbox},
};
use kith_gremlin::message::{self, Frame, Request};
use kith_net::Charge;
use tokio_tungstenite::tungstenite::Message;

/// A request that was received.
#[derive(Debug)]
pub(super) struct Incoming {
    pub request: Request,
    pub coding: Coding,
    /// The memory that the request takes, until this is dropped.
    _charge: Charge,
}

/// The request in a message. `None` if there is none, or it cannot be served and was answered.
///
/// # Errors
/// [`Ended`] if the connection has ended.
pub(super) async fn receive(
    message: Message,
    unfinished: &Unfinished,
    outbox: &Outbox,
) -> Result<Option<Incoming>, Ended> {
    let (frame, is_text) = match &message {
        Message::Text(text) => (Frame::Text(text), true),
        Message::Binary(bytes) => (Frame::Binary(bytes), false),
        Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => return Ok(None),
    };
    let charge = unfinished.finish(message.len());
    match message::decode(frame) {
        Ok((serializer, request)) => {
            let coding = Coding { serializer, is_text };
            let Some(_charge) = charge else {
                outbox.fail(request.id, &no_memory(), coding).await?;
                return Ok(None);
            };
            Ok(Some(Incoming { request, coding, _charge }))
        }
        Err(rejected) => {
            let coding = Coding { serializer: rejected.serializer, is_text };
            outbox.send(&rejected.response(), coding, None).await?;
            Ok(None)
        }
    }
}
