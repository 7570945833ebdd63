//! Code that loads and pushes share: the lock on the object store, the progress display, following the nodes while they
//! fetch, and the lines and rows that were dropped.

mod dropped;
mod interrupt;
mod meter;

pub use dropped::DroppedLines;
pub use meter::{Meter, metered};

use crate::{failure::Failure, reply::stores::FollowedReply};
use interrupt::{Publication, SideEvent};
use kith_build::{LockedStore, ObjectStore, Work};
use kith_client::{QueryError, RouterClient};
use kith_cluster::private::keep_as_private_as;
use kith_files::objects::Location;
use kith_types::ErrorCode;
use kith_wire::{
    documents::{ClusterDocument, StoreDocument},
    v1,
};
use tonic::Streaming;

/// The error of a failed or lost publication.
pub struct PublishFailure {
    /// The reason why it failed.
    pub error: anyhow::Error,
    /// Whether the router itself reported the failure. If not, the new version may still become the served one.
    pub is_certain: bool,
}

impl PublishFailure {
    /// Returns an error after which the outcome of the publication is unknown.
    pub fn perhaps(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), is_certain: false }
    }

    /// Returns the error, with `what` as its context unless it names the store itself.
    pub fn named(self, store: &str, what: impl FnOnce() -> String) -> anyhow::Error {
        let names_store = format!("{:#}", self.error).contains(&format!("store {store:?}"));
        if names_store { self.error } else { self.error.context(what()) }
    }
}

/// The result of a successful publication.
#[derive(Clone, Debug)]
pub struct PublishResult {
    /// The version that the store serves now.
    pub version: u64,
    /// The duration in microseconds of the one write that made it current; `None` if an earlier call made it current.
    pub flip_us: Option<u64>,
    /// The other routers that the push waited for.
    pub routers: Vec<FollowedReply>,
}

/// Converts the last step, which names the committed version.
impl From<v1::PushProgress> for PublishResult {
    fn from(step: v1::PushProgress) -> Self {
        let routers = step.routers.into_iter().map(FollowedReply::from).collect();
        Self { version: step.committed_version, flip_us: step.flip_us, routers }
    }
}

/// Gives a push or load to a router, and shows the progress until it ends. Prints `note` first.
///
/// # Errors
/// The errors of [`follow`].
pub async fn hand_over(
    router: &RouterClient,
    request: v1::PushRequest,
    note: Option<&str>,
) -> Result<PublishResult, PublishFailure> {
    // The cluster has not been asked for anything yet, so the failure is certain.
    let unasked = |error| PublishFailure { error, is_certain: true };
    let mut publication = Publication::new(router, &request.store, &request.push).map_err(unasked)?;
    let mut steps = router.push_store(request).await.map_err(|error| publication.unheard(error))?;
    let mut meter = Meter::default();
    if let Some(note) = note {
        meter.note(note);
    }
    let served = follow(&mut steps, &mut publication, &mut meter).await;
    meter.clear();
    served
}

/// Follows the nodes while they fetch, until the version serves. Ctrl-C and SIGTERM ask the cluster to cancel; a second
/// signal returns without an answer.
///
/// # Errors
/// If the version was not published: the old version keeps serving. If the router failed meanwhile, it may still have been
/// published.
async fn follow(
    steps: &mut Streaming<v1::PushProgress>,
    publication: &mut Publication,
    meter: &mut Meter,
) -> Result<PublishResult, PublishFailure> {
    let mut is_asked = false;
    loop {
        let step = tokio::select! {
            step = steps.message() => step,
            beside = publication.beside() => match beside {
                SideEvent::Asked => {
                    is_asked = true;
                    meter.note(&format!("asking the cluster to cancel {}", publication.push()));
                    continue;
                }
                SideEvent::AskedAgain => return Err(PublishFailure::perhaps(publication.left())),
                SideEvent::Refused(error) => {
                    meter.note(&format!("{} was not cancelled: {error}", publication.push()));
                    continue;
                }
            },
        };
        match step {
            Ok(Some(step)) if step.committed_version != 0 => {
                if is_asked {
                    meter.note(&too_late(publication));
                }
                return Ok(PublishResult::from(step));
            }
            Ok(Some(step)) => meter.on_publish(&step),
            Ok(None) => return Err(PublishFailure::perhaps(publication.lost(None))),
            Err(status) => {
                let error = QueryError::from_status(&status);
                let is_certain = is_verdict(&error);
                return Err(PublishFailure { is_certain, ..publication.unheard(error) });
            }
        }
    }
}

fn too_late(publication: &Publication) -> String {
    let (push, store) = (publication.push(), publication.store());
    format!("too late to cancel {push}: its version is served; `kith store rollback {store}` goes back")
}

/// Whether the error is a statement of the router that nothing was or will be committed; every such error has a help text. A
/// lost connection proves nothing, because the router continues without its client. Neither does a failed metadata store,
/// because it may have accepted the commit.
fn is_verdict(error: &QueryError) -> bool {
    matches!(error, QueryError::Remote { code, help, .. } if *code != ErrorCode::MetadataUnavailable && !help.is_empty())
}

/// Refuses a frozen store before anything is built. The router checks this again.
///
/// # Errors
/// `store_frozen`.
pub fn check_thawed(store: &StoreDocument) -> Result<(), Failure> {
    let Some(frozen) = &store.frozen else { return Ok(()) };
    let message =
        format!("store {:?} was frozen by {}: it accepts no pushes or loads", store.name, frozen.who);
    let help = format!("`kith store thaw {}` makes it accept pushes again", store.name);
    Err(Failure::new(ErrorCode::StoreFrozen, message, help))
}

/// Locks out other loads and pushes of the store. From now on, this process creates files with the permissions of the object
/// store's folder.
///
/// # Errors
/// The errors of [`ObjectStore::open`] and [`ObjectStore::lock`].
pub fn lock(cluster: &ClusterDocument, store: &str, work: Work<'_>) -> Result<LockedStore, Failure> {
    Ok(ObjectStore::open(cluster, keep_as_private_as)?.lock(store, work)?)
}

/// Parses an argument that names a place.
///
/// # Errors
/// The reason why the text is not a place.
pub fn location(text: &str) -> Result<Location, String> {
    text.parse::<Location>().map_err(|error| error.why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_routers_own_word_is_a_verdict() {
        let remote = |code: ErrorCode, help: &str| QueryError::Remote {
            code,
            message: "it failed".to_owned(),
            help: help.to_owned(),
        };
        assert!(is_verdict(&remote(ErrorCode::NodeUnreachable, "start the node")));
        assert!(!is_verdict(&remote(ErrorCode::MetadataUnavailable, "wait")));
        assert!(!is_verdict(&remote(ErrorCode::Unavailable, "")), "the connection broke");
        assert!(!is_verdict(&remote(ErrorCode::Internal, "")), "the transport failed");
    }
}
