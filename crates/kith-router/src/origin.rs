//! Which versions the router's caches key their entries by.

use kith_cache::Origin;
use kith_client::topology::Pinned;
use kith_types::StoreVersion;
use kith_wire::documents::TopologyDocument;

/// What a query that pinned `graph` reads the edges of `kind` from; `None` if the graph has no such component, or changes
/// while it is read.
pub(crate) fn pinned(graph: &Pinned, kind: &str) -> Option<Origin> {
    let component = *graph.components.get(kind)?;
    Some(Origin { component, graph: StoreVersion(graph.pin.version()?) })
}

/// What new queries read the edges of `kind` from; `None` if the graph or the component is gone.
pub(crate) fn current(topology: &TopologyDocument, graph: &str, kind: &str) -> Option<Origin> {
    let graph = topology.graph(graph)?;
    let component = graph.components.iter().find(|component| component.name == kind)?;
    Some(Origin { component: StoreVersion(component.version), graph: StoreVersion(graph.version) })
}
