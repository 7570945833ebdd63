//! The claim of a cluster to its object store.

use kith_cluster::StartError;
use kith_files::objects::{ClaimError, Objects};
use kith_wire::documents::ClusterDocument;

/// Makes sure that the object store of a cluster belongs to that cluster.
///
/// # Errors
/// [`StartError`] if it belongs to another cluster, cannot be used, or does not answer.
pub(crate) async fn claim(cluster: &ClusterDocument) -> Result<(), StartError> {
    try_claim(cluster).await?.map_err(not_ours)
}

/// As [`claim`], but an object store that does not answer is no error: serving does not need it.
pub(crate) async fn check_claim(cluster: &ClusterDocument) -> Result<(), StartError> {
    match try_claim(cluster).await? {
        Err(ClaimError::Objects(error)) => {
            tracing::warn!(%error, "it cannot be checked yet whether the object store belongs to this cluster");
            Ok(())
        }
        claimed => claimed.map_err(not_ours),
    }
}

/// Returns the outcome of the claim, or the reason why it could not be tried.
async fn try_claim(cluster: &ClusterDocument) -> Result<Result<(), ClaimError>, StartError> {
    let ClusterDocument { object_store: location, cluster_id, .. } = cluster.clone();
    let claimed = tokio::task::spawn_blocking(move || match Objects::named(&location) {
        Ok(objects) => Ok(objects.claim(&cluster_id)),
        Err(error) => Err(StartError::ObjectStore { location, source: Box::new(error) }),
    });
    claimed.await.unwrap_or_else(|error| Err(StartError::Topology { detail: error.to_string() }))
}

fn not_ours(error: ClaimError) -> StartError {
    StartError::ObjectStoreClaim { code: error.code(), help: error.help(), source: Box::new(error) }
}
