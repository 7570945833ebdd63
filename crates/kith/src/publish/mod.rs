//! What loads and pushes share: the lock on the object store, the meter, following the nodes while they fetch, and the
//! lines and rows that were dropped.

mod dropped;
mod interrupt;
mod meter;

pub use dropped::Dropped;
pub use meter::{Meter, metered};

use crate::{failure::Failure, reply::stores::FollowedReply};
use interrupt::{Beside, Publication};
use kith_build::{LockedStore, ObjectStore, Work};
use kith_client::{QueryError, RouterClient};
use kith_objects::Location;
use kith_process::private::keep_as_private_as;
use kith_types::ErrorCode;
use kith_wire::{
    documents::{ClusterDocument, StoreDocument},
    v1,
};
use tonic::Streaming;

/// A publication that did not end well.
pub struct Unpublished {
    /// Why it failed.
    pub error: anyhow::Error,
    /// Whether the router itself said so. If not, the new version may still come to serve.
    pub is_certain: bool,
}

impl Unpublished {
    /// The connection failed, not the publication.
    pub fn perhaps(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), is_certain: false }
    }

    /// The error, behind what failed unless it names the store itself.
    pub fn named(self, store: &str, what: impl FnOnce() -> String) -> anyhow::Error {
        let names_store = format!("{:#}", self.error).contains(&format!("store {store:?}"));
        if names_store { self.error } else { self.error.context(what()) }
    }
}

/// What came of a publication.
#[derive(Clone, Debug)]
pub struct Served {
    /// What the store serves now.
    pub version: u64,
    /// Microseconds that the one write took that made it so; `None`: an earlier call made it.
    pub flip_us: Option<u64>,
    /// The other routers that were waited for.
    pub routers: Vec<FollowedReply>,
}

/// From the last step, which says what was committed.
impl From<v1::PushProgress> for Served {
    fn from(step: v1::PushProgress) -> Self {
        let routers = step.routers.into_iter().map(FollowedReply::from).collect();
        Self { version: step.committed_version, flip_us: step.flip_us, routers }
    }
}

/// Hands a push or load over to a router, and follows it while a meter runs. The meter shows `note` first.
///
/// # Errors
/// As [`follow`].
pub async fn hand_over(
    router: &RouterClient,
    request: v1::PushRequest,
    note: Option<&str>,
) -> Result<Served, Unpublished> {
    // Nothing has been asked of the cluster yet.
    let unasked = |error| Unpublished { error, is_certain: true };
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

/// Follows the nodes while they fetch, until the version serves. Ctrl-C and SIGTERM ask the cluster to cancel; a second one
/// leaves without an answer.
///
/// # Errors
/// If it was not published: the old version serves on. If the router went away meanwhile, it may still have been.
async fn follow(
    steps: &mut Streaming<v1::PushProgress>,
    publication: &mut Publication,
    meter: &mut Meter,
) -> Result<Served, Unpublished> {
    let mut is_asked = false;
    loop {
        let step = tokio::select! {
            step = steps.message() => step,
            beside = publication.beside() => match beside {
                Beside::Asked => {
                    is_asked = true;
                    meter.note(&format!("asking the cluster to cancel {}", publication.push()));
                    continue;
                }
                Beside::AskedAgain => return Err(Unpublished::perhaps(publication.left())),
                Beside::Refused(error) => {
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
                return Ok(Served::from(step));
            }
            Ok(Some(step)) => meter.on_publish(&step),
            Ok(None) => return Err(Unpublished::perhaps(publication.lost(None))),
            Err(status) => {
                let error = QueryError::from_status(&status);
                let is_certain = is_verdict(&error);
                return Err(Unpublished { is_certain, ..publication.unheard(error) });
            }
        }
    }
}

fn too_late(publication: &Publication) -> String {
    let (push, store) = (publication.push(), publication.store());
    format!("too late to cancel {push}: its version is served; `kith store rollback {store}` goes back")
}

/// Whether an error is the router's own word that nothing was or will be committed: all of those say what to do. A
/// lost connection is not, for the router goes on without its client; nor is a metadata store that failed, for it may
/// have taken the commit.
fn is_verdict(error: &QueryError) -> bool {
    matches!(error, QueryError::Remote { code, help, .. } if *code != ErrorCode::MetadataUnavailable && !help.is_empty())
}

/// The router looks too; here nothing has been built yet.
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

/// Keeps other loads and pushes of the store out. What this process writes from then on is as private as the object store's folder.
///
/// # Errors
/// As [`ObjectStore::open`] and [`ObjectStore::lock`].
pub fn lock(cluster: &ClusterDocument, store: &str, work: Work<'_>) -> Result<LockedStore, Failure> {
    Ok(ObjectStore::open(cluster, keep_as_private_as)?.lock(store, work)?)
}

/// An argument that names a place.
///
/// # Errors
/// Why it names none.
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
