//! The versions that are part of the keys of the router's caches.

use kith_cache::Origin;
use kith_topology::PinnedState;
use kith_types::StoreVersion;
use kith_wire::documents::TopologyDocument;

/// The versions from which a query that pinned `graph` reads the edges of `kind`. `None` if the graph has no such
/// component, or is a live graph.
pub(crate) fn pinned(graph: &PinnedState, kind: &str) -> Option<Origin> {
    let component = *graph.components.get(kind)?;
    Some(Origin { component, graph: StoreVersion(graph.pin.version()?) })
}

/// The versions from which new queries read the edges of `kind`. `None` if the graph or the component is gone.
pub(crate) fn current(topology: &TopologyDocument, graph: &str, kind: &str) -> Option<Origin> {
    let graph = topology.graph(graph)?;
    let component = graph.components.iter().find(|component| component.name == kind)?;
    Some(Origin { component: StoreVersion(component.version), graph: StoreVersion(graph.version) })
}
