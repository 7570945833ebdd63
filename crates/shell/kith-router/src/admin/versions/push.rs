//! A push as the caller asked for it: the components of its version, and its first commands.

use kith_cluster::metadata::records::ChangeCaller;
use kith_topology::versions::{Command, PushId, Trust};
use kith_types::{ErrorCode, StoreVersion};
use kith_wire::{
    documents::{ClusterDocument, ComponentDocument, HoldsDocument, StoreDocument},
    v1,
};
use std::{net::SocketAddr, time::Duration};
use tokio::sync::mpsc;
use tonic::Status;

/// The default time that a push waits for an absent node before it leaves the node out or fails.
const NODE_WAIT: Duration = Duration::from_secs(60);
/// The longest wait that a request may ask for. The store accepts no other push meanwhile.
const NODE_WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// The request for a push.
#[derive(Clone, Debug)]
pub(crate) struct Push {
    pub store: String,
    /// The id of the push. It stays the same if the request is repeated.
    pub push: PushId,
    pub who: String,
    /// The trust in the identity of the user.
    pub standing: Trust,
    /// The address of the caller, for the audit log.
    pub peer: Option<SocketAddr>,
    /// The components to serve. They must exist already.
    pub components: Vec<ComponentDocument>,
    pub version: Option<StoreVersion>,
    /// The number of nodes that may be left out.
    pub missing_max: u32,
    /// Skip the guards.
    pub force: bool,
    /// Records may lack fields of the served ones.
    pub fill_missing: bool,
    /// Nodes copy the version from each other where they can, so that the source is read only once.
    pub from_peers: bool,
    /// The time to wait for nodes that are away.
    pub node_wait: Duration,
    /// Whether this is a load of a graph. A load creates the graph if it is new, and waits for another load of the same
    /// graph.
    pub is_load: bool,
}

/// The channel for progress reports. Its receiver may be dropped.
pub(crate) type Progress = mpsc::Sender<Result<v1::PushProgress, Status>>;

impl Push {
    /// Returns the user on whose behalf the push writes.
    pub fn caller<'a>(&'a self, cluster: &'a ClusterDocument) -> ChangeCaller<'a> {
        ChangeCaller { who: &self.who, standing: self.standing, cluster }
    }

    /// Returns the components of the new version. For a graph, they include those that the load leaves unchanged.
    pub fn components_in(&self, store: &StoreDocument) -> Result<Vec<ComponentDocument>, Status> {
        let is_graph = store.definition.holds == HoldsDocument::Graph;
        match is_graph {
            false if self.is_load => {
                let message = format!("store {:?} holds values, not a graph", store.name);
                let help = "load the graph under another name, or push to the store";
                Err(kith_wire::status(ErrorCode::NotAGraph, message, help))
            }
            false => Ok(self.components.clone()),
            true => merged(store, &self.components),
        }
    }

    /// Returns the commands with which the push begins. `components` are those of its version.
    pub fn beginning(
        &self,
        store: &StoreDocument,
        components: &[ComponentDocument],
        coordinator: &str,
    ) -> [Command; 2] {
        let id = || self.push.clone();
        let (version, missing_max) = (self.version, self.missing_max);
        let records_of: fn(&ComponentDocument) -> u64 = match store.definition.holds {
            HoldsDocument::Graph => |component| component.edges,
            HoldsDocument::Values { .. } => |component| component.members,
        };
        let sum = |of: fn(&ComponentDocument) -> u64| components.iter().map(of).fold(0, u64::saturating_add);
        let (records, bytes) = (sum(records_of), sum(|component| component.bytes));
        [
            Command::Begin { push: id(), coordinator: coordinator.to_owned(), version, missing_max },
            Command::Offer { push: id(), records, bytes, force: self.force },
        ]
    }
}

fn merged(store: &StoreDocument, loaded: &[ComponentDocument]) -> Result<Vec<ComponentDocument>, Status> {
    let mut components = store.served().components;
    for component in loaded {
        match components.iter_mut().find(|known| known.name == component.name) {
            Some(known) if known.role != component.role => {
                let message = format!(
                    "{:?} of graph {:?} is {}, the load makes it {}",
                    component.name, store.name, known.role, component.role
                );
                let help = "load it under another name, or drop the graph first";
                return Err(kith_wire::status(ErrorCode::RoleChanged, message, help));
            }
            Some(known) => *known = component.clone(),
            None => components.push(component.clone()),
        }
    }
    Ok(components)
}

/// Returns how long a push waits for nodes that are away. `asked_ms` is the wait that the request asks for, in milliseconds;
/// `None` for the default.
///
/// # Errors
/// `out_of_range` if the wait is longer than allowed.
pub(crate) fn node_wait(asked_ms: Option<u64>) -> Result<Duration, Status> {
    match asked_ms.map(Duration::from_millis) {
        None => Ok(NODE_WAIT),
        Some(wait) if wait <= NODE_WAIT_MAX => Ok(wait),
        Some(wait) => {
            let message = format!("a push cannot wait {} s for nodes that are down", wait.as_secs());
            let help = format!(
                "nothing was pushed; wait at most {} s, or leave nodes out: --allow-missing",
                NODE_WAIT_MAX.as_secs()
            );
            Err(kith_wire::status(ErrorCode::OutOfRange, message, help))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_wire::documents::{DOCUMENT_FORMAT, DefinitionDocument, VersionDocument};

    fn component(name: &str, role: &str, version: u64) -> ComponentDocument {
        ComponentDocument {
            name: name.into(),
            role: role.into(),
            version,
            manifest_hash: String::new(),
            columns: vec![],
            members: 0,
            edges: 0,
            bytes: 0,
            loaded_at: 0,
            schema: None,
            folder: None,
            url: None,
        }
    }

    fn graph(components: Vec<ComponentDocument>) -> StoreDocument {
        let version = VersionDocument {
            version: 9,
            state: "current".into(),
            components,
            records: 0,
            bytes: 0,
            pushed_at: 0,
            held: false,
            excluded: vec![],
        };
        StoreDocument {
            format: DOCUMENT_FORMAT,
            name: "g".into(),
            charged_to: String::new(),
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version_last: 9,
            versions: vec![version],
            running: None,
            frozen: None,
            cancelled: Vec::new(),
            history: vec![],
        }
    }

    #[test]
    fn a_load_replaces_its_components_and_leaves_the_others() {
        let graph = graph(vec![component("connection", "undirected", 1), component("school", "entity", 1)]);
        let loaded = [component("connection", "undirected", 2), component("follows", "directed", 2)];
        let merged = merged(&graph, &loaded).unwrap();
        let versions: Vec<(&str, u64)> = merged.iter().map(|it| (it.name.as_str(), it.version)).collect();
        assert_eq!(versions, [("connection", 2), ("school", 1), ("follows", 2)]);
    }

    #[test]
    fn a_component_cannot_change_its_role() {
        let graph = graph(vec![component("follows", "directed", 1)]);
        let error = merged(&graph, &[component("follows", "undirected", 2)]).unwrap_err();
        assert_eq!(kith_wire::code_of(&error), ErrorCode::RoleChanged);
    }

    #[test]
    fn nodes_are_waited_for_an_hour_at_most() {
        assert_eq!(node_wait(None).unwrap(), NODE_WAIT);
        for wait in [Duration::ZERO, Duration::from_millis(1), NODE_WAIT_MAX] {
            assert_eq!(node_wait(Some(wait.as_millis() as u64)).unwrap(), wait);
        }
        for beyond in [NODE_WAIT_MAX.as_millis() as u64 + 1, u64::MAX] {
            let refused = node_wait(Some(beyond)).unwrap_err();
            assert_eq!(kith_wire::code_of(&refused), ErrorCode::OutOfRange);
        }
    }
}
