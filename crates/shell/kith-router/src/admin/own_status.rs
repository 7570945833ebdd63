//! Asks a router about itself.

use kith_net::security::Dialer;
use kith_wire::v1::{self, cluster_client::ClusterClient};

/// Returns the status of a router itself, without the rest of the cluster.
pub async fn own_status(dialer: &Dialer, addr: &str) -> Result<v1::ClusterStatus, tonic::Status> {
    let mut router = ClusterClient::new(dialer.connect(addr).await?);
    let request = v1::StatusRequest { own: true, ..Default::default() };
    Ok(router.status(request).await?.into_inner())
}
