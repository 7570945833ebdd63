//! Ctrl-C and SIGTERM while a router publishes: the cluster is asked to cancel, and what came of it is told.

use super::Unpublished;
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

/// Something happened beside the publication.
pub enum Beside {
    /// Somebody wants it ended: for the first time.
    Asked,
    /// And again.
    AskedAgain,
    /// The cluster could not do so.
    Refused(QueryError),
}

impl Publication {
    /// From now on signals do not end this process.
    ///
    /// # Errors
    /// If the system gives no signals.
    pub fn new(router: &RouterClient, store: &str, push: &str) -> anyhow::Result<Self> {
        Ok(Self {
            router: router.clone(),
            store: store.to_owned(),
            push: push.to_owned(),
            signals: Signals::new()?,
            cancelling: None,
        })
    }

    /// Its id.
    pub fn push(&self) -> &str {
        &self.push
    }

    /// Its store.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Waits for the next thing to happen. May be dropped and called again.
    pub async fn beside(&mut self) -> Beside {
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
                        Err(error) if error.code() != ErrorCode::PushServed => return Beside::Refused(error),
                        // The publication itself says what came of it.
                        _ => continue,
                    }
                }
            }
            if self.cancelling.is_some() {
                return Beside::AskedAgain;
            }
            self.cancelling = Some(self.cancel());
            return Beside::Asked;
        }
    }

    fn cancel(&self) -> BoxFuture<'static, Result<v1::StoreReply, QueryError>> {
        let (router, store, push) = (self.router.clone(), self.store.clone(), self.push.clone());
        let command = Some(Command::Cancel(v1::CancelPush { push }));
        Box::pin(async move { router.store(v1::StoreRequest { store, who: who(), command }).await })
    }

    /// An error while the router is asked. One that does not say what to do is the connection's: nobody knows then what the
    /// router did.
    pub fn unheard(&self, error: QueryError) -> Unpublished {
        match error.help().is_empty() {
            true => Unpublished::perhaps(self.lost(Some(&error))),
            false => Unpublished::perhaps(error),
        }
    }

    /// The router went away while it published.
    pub fn lost(&self, error: Option<&QueryError>) -> Failure {
        lost(&self.store, &self.push, error)
    }

    /// Nobody waits for it any more.
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
        let told = lost("people", "push-1", Some(&broken));
        assert_eq!(told.code, ErrorCode::PublicationLost);
        assert!(
            told.message.contains("push-1 of store \"people\"") && told.message.ends_with("broken pipe)")
        );
        assert!(told.help.contains("`kith store versions people`") && told.help.contains("repeat it"));
        let named = Unpublished::perhaps(told.clone()).named("people", || unreachable!("it names the store"));
        assert_eq!(named.to_string(), told.message);
    }
}
