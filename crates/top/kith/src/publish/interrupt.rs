//! Handles Ctrl-C and SIGTERM while a router publishes: asks the cluster to cancel, and reports the outcome.

use super::PublishFailure;
use crate::{failure::Failure, signals::Signals, who::who};
use futures::future::BoxFuture;
use kith_client::{QueryError, RouterClient};
use kith_types::ErrorCode;
use kith_wire::v1::{self, store_request::Command};

/// The push or load that a command follows.
pub struct Publication {
    router: RouterClient,
    store: String,
    push: String,
    signals: Signals,
    cancelling: Option<BoxFuture<'static, Result<v1::StoreReply, QueryError>>>,
}

/// An event that can occur while a publication runs.
pub enum SideEvent {
    /// The user asks for the first time to cancel it.
    Asked,
    /// The user asks again.
    AskedAgain,
    /// The cluster could not cancel it.
    Refused(QueryError),
}

impl Publication {
    /// Begins to watch for signals. From now on they do not end this process.
    ///
    /// # Errors
    /// If the process cannot listen for signals.
    pub fn new(router: &RouterClient, store: &str, push: &str) -> anyhow::Result<Self> {
        Ok(Self {
            router: router.clone(),
            store: store.to_owned(),
            push: push.to_owned(),
            signals: Signals::new()?,
            cancelling: None,
        })
    }

    /// The id of the push or load.
    pub fn push(&self) -> &str {
        &self.push
    }

    /// The store of the push or load.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Waits for the next event. This is cancel safe.
    pub async fn beside(&mut self) -> SideEvent {
        loop {
            let answered = async {
                match &mut self.cancelling {
                    Some(cancelling) => cancelling.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.signals.next() => {}
                reply = answered => {
                    self.cancelling = Some(Box::pin(std::future::pending()));
                    match reply {
                        Err(error) if error.code() != ErrorCode::PushServed => return SideEvent::Refused(error),
                        // The steps of the publication report that it was cancelled.
                        _ => continue,
                    }
                }
            }
            if self.cancelling.is_some() {
                return SideEvent::AskedAgain;
            }
            self.cancelling = Some(self.cancel());
            return SideEvent::Asked;
        }
    }

    fn cancel(&self) -> BoxFuture<'static, Result<v1::StoreReply, QueryError>> {
        let (router, store, push) = (self.router.clone(), self.store.clone(), self.push.clone());
        let command = Some(Command::Cancel(v1::CancelPush { push }));
        Box::pin(async move { router.store(v1::StoreRequest { store, who: who(), command }).await })
    }

    /// Classifies an error of a call to the router. An error without a help text comes from the connection, so it is unknown
    /// what the router did.
    pub fn unheard(&self, error: QueryError) -> PublishFailure {
        match error.help().is_empty() {
            true => PublishFailure::perhaps(self.lost(Some(&error))),
            false => PublishFailure::perhaps(error),
        }
    }

    /// Returns the error for a router that was lost while it published.
    pub fn lost(&self, error: Option<&QueryError>) -> Failure {
        lost(&self.store, &self.push, error)
    }

    /// Returns the error for a user who stopped waiting.
    pub fn left(&self) -> Failure {
        let message = format!("stopped waiting for {} before the cluster reported its outcome", self.push);
        let help = format!(
            "`kith store describe {0}` shows whether it still runs, `kith store push {0} --cancel` cancels it",
            self.store
        );
        Failure::new(ErrorCode::PublicationLeft, message, help)
    }
}

fn lost(store: &str, push: &str, error: Option<&QueryError>) -> Failure {
    let why = error.map_or_else(String::new, |error| format!(" ({error})"));
    let message = format!(
        "the connection to the router was lost before it reported whether {push} of store {store:?} is served{why}"
    );
    let help = format!(
        "look at `kith store versions {store}`: if the router is gone and the old version is still served, another router rolls \
         the push back within seconds; repeat it then"
    );
    Failure::new(ErrorCode::PublicationLost, message, help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_connection_says_where_to_look_and_to_push_again() {
        let broken = QueryError::Remote {
            code: ErrorCode::Unavailable,
            message: "error reading a body from connection: broken pipe".to_owned(),
            help: String::new(),
        };
        let failure = lost("people", "push-1", Some(&broken));
        assert_eq!(failure.code, ErrorCode::PublicationLost);
        assert!(
            failure.message.contains("push-1 of store \"people\"")
                && failure.message.ends_with("broken pipe)")
        );
        assert!(failure.help.contains("`kith store versions people`") && failure.help.contains("repeat it"));
        let named =
            PublishFailure::perhaps(failure.clone()).named("people", || unreachable!("it names the store"));
        assert_eq!(named.to_string(), failure.message);
    }
}
