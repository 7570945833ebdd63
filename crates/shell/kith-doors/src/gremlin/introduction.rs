//! Peers that have to authenticate: their first request is answered by a demand for credentials, and served once they are right.

use super::{
    failure::{failure, unauthenticated},
    incoming::ReceivedRequest,
    outbox::{AnswerCoding, ConnectionEnded, Outbox},
};
use crate::DoorCaller;
use kith_gremlin::message::{Credentials, Response};
use kith_net::server::connections::STRANGER_MESSAGES_MAX;
use uuid::Uuid;

/// The requests that wait until their peer has authenticated.
#[derive(Debug, Default)]
pub(super) struct Introduction {
    kept: Vec<ReceivedRequest>,
}

impl Introduction {
    /// Keeps a request of a peer that is unknown. The first one is answered by the demand for credentials.
    ///
    /// # Errors
    /// [`ConnectionEnded`] if the connection has ended.
    pub async fn keep(&mut self, incoming: ReceivedRequest, outbox: &Outbox) -> Result<(), ConnectionEnded> {
        let (id, coding) = (incoming.id, incoming.coding);
        if STRANGER_MESSAGES_MAX as usize <= self.kept.len() {
            let error = unauthenticated("too many requests came before credentials");
            return outbox.fail(id, &error, coding).await;
        }
        if self.kept.is_empty() {
            outbox.send(&Response::authenticate(id), coding, None).await?;
        }
        self.kept.push(incoming);
        Ok(())
    }

    /// Checks the credentials that came in the request `id`. Returns the requests that can be served now. If the credentials
    /// are wrong, these are refused.
    ///
    /// # Errors
    /// [`ConnectionEnded`] if the connection has ended.
    pub async fn check(
        &mut self,
        (id, credentials, coding): (Uuid, &Credentials, AnswerCoding),
        caller: &mut DoorCaller,
        outbox: &Outbox,
    ) -> Result<Vec<ReceivedRequest>, ConnectionEnded> {
        let kept = std::mem::take(&mut self.kept);
        // Drivers send credentials with the id of the request that was answered by the demand.
        let is_kept = kept.iter().any(|incoming| incoming.id == id);
        match caller.authenticate(credentials.password.as_bytes()) {
            Ok(()) if is_kept => Ok(kept),
            Ok(()) => {
                outbox.send(&Response::no_content(id), coding, None).await?;
                Ok(kept)
            }
            Err(error) => {
                outbox.fail(id, &error, coding).await?;
                for other in kept.iter().filter(|incoming| incoming.id != id) {
                    let response = failure(Some(other.id), &error);
                    outbox.send(&response, other.coding, None).await?;
                }
                Ok(Vec::new())
            }
        }
    }
}
