//! Node and router processes, cluster metadata and the supervisor of `kith dev`.

mod accept;
mod background;
pub mod cluster;
mod connections;
mod counts;
mod data_dir;
pub mod dev;
mod error;
mod fail_point;
mod framed;
mod freshness;
mod front_page;
#[cfg(test)]
#[path = "../../../testdata/formats/golden.rs"]
mod golden;
mod holding;
mod http;
mod listen;
mod liveness;
mod load;
pub mod node;
mod peer;
pub mod place;
pub mod private;
mod quotas;
mod rebalance;
mod resp;
pub mod router;
mod security;
mod serve;
mod topology;
mod undecoded;
mod versions;

pub use connections::{ConnectionSettings, IDLE_DEFAULT, OPEN_MAX_DEFAULT, REPLY_BYTES_DEFAULT};
pub use data_dir::{DataDir, DataDirError, Identity};
pub use error::StartError;
pub use fail_point::{FailPoint, VARIABLE as FAIL_POINTS_VARIABLE};
pub use peer::PeerSource;
pub use security::{Security, ServerSecurity};

use kith_engine::Manifest;
use kith_wire::documents::ComponentDocument;

/// A built component as the metadata names it.
pub fn component_document(manifest: &Manifest, loaded_at: u64) -> ComponentDocument {
    let graph = manifest.graph().expect("what is loaded into a graph is a graph component");
    ComponentDocument {
        name: manifest.component.clone(),
        role: kith_client::topology::role_name(graph.role).to_owned(),
        version: manifest.version.0,
        manifest_hash: manifest.hash(),
        columns: graph.columns.clone(),
        members: graph.counts.members,
        edges: graph.counts.edges,
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        loaded_at,
        schema: None,
        folder: None,
        url: None,
    }
}
