//! Node and router processes, cluster metadata and the supervisor of `kith dev`.

pub mod dev;
pub mod router;

pub use kith_net::server::{
    connections::{ConnectionSettings, IDLE_DEFAULT, OPEN_MAX_DEFAULT, REPLY_BYTES_DEFAULT},
    security::{Security, ServerSecurity},
};
pub use kith_process::{FAIL_POINTS_VARIABLE, FailPoint, PeerSource, StartError, place, private};

use kith_engine::Manifest;
use kith_wire::documents::ComponentDocument;

/// A built component as the metadata names it.
pub fn component_document(manifest: &Manifest, loaded_at: u64) -> ComponentDocument {
    let graph = manifest.graph().expect("what is loaded into a graph is a graph component");
    ComponentDocument {
        name: manifest.component.clone(),
        role: kith_api::topology::role_name(graph.role).to_owned(),
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
