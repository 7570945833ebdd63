//! Checks whether a group that was taken out may serve reads again. Pushes may have skipped nodes of it that were down.

use super::{nodes::ping, refused::behind};
use futures::future::join_all;
use kith_net::security::Dialer;
use kith_topology::groups_of;
use kith_types::NodeId;
use kith_wire::{
    documents::{GroupDocument, ServedDocument, TopologyDocument},
    v1::PingReply,
};
use std::collections::BTreeSet;
use tonic::Status;

/// Asks each node of a group whether it has every served version.
///
/// # Errors
/// `group_behind`, with the first node that does not answer or lacks a version.
pub(super) async fn check_is_current(
    dialer: &Dialer,
    group: &GroupDocument,
    topology: &TopologyDocument,
) -> Result<(), Status> {
    let nodes: BTreeSet<u32> = group.owners.iter().copied().collect();
    let asked = nodes.into_iter().map(async |node| (node, ping(dialer, topology, NodeId(node)).await));
    for (node, reply) in join_all(asked).await {
        let Some(reply) = reply else {
            let help = "start it, or have another take its place: `kith cluster add-node NEW --replace OLD`";
            return Err(behind(group.group, format!("node {node} does not answer"), help));
        };
        let holds = |store: &&ServedDocument| {
            let mut groups = groups_of(&topology.cluster, &store.name, store.definition.replication);
            groups.any(|holder| holder.group == group.group)
        };
        if let Some(store) = topology.stores.iter().filter(holds).find(|store| lacks(node, &reply, store)) {
            let (version, name) = (store.version, &store.name);
            let lack = format!("node {node} does not have version {version} of store {name:?}");
            return Err(behind(group.group, lack, "it fetches the version by itself: try again"));
        }
    }
    Ok(())
}

/// Whether the node lacks the served version of a store. If a push left the node out, it has the version only once it has
/// opened it and the record says so.
fn lacks(node: u32, reply: &PingReply, store: &ServedDocument) -> bool {
    let is_open =
        reply.served.iter().any(|served| served.name == store.name && served.version == store.version);
    store.version != 0 && (!is_open || store.excluded.contains(&node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_wire::{
        documents::{DOCUMENT_FORMAT, DefinitionDocument, HoldsDocument},
        v1::Served,
    };

    #[test]
    fn a_node_lacks_what_it_has_not_opened_or_not_reported() {
        let store = |version, excluded: &[u32]| ServedDocument {
            format: DOCUMENT_FORMAT,
            name: "people".to_owned(),
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version,
            components: vec![],
            excluded: excluded.to_vec(),
        };
        let served = vec![Served::of_version("people".to_owned(), 7)];
        let reply = PingReply { node: 3, served, ..Default::default() };
        assert!(!lacks(3, &reply, &store(7, &[4])));
        assert!(lacks(3, &reply, &store(7, &[3])));
        assert!(lacks(3, &reply, &store(8, &[])));
        assert!(!lacks(3, &reply, &store(0, &[])), "nothing is served yet");
    }
}
