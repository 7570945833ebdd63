//! Writes the metadata of a cluster whose metadata store is lost from a copy of its topology, which every node and router
//! keeps on its disk, with copies of the types of live graphs beside it. The copy lacks the history of stores, and what came
//! after it.

use kith_cluster::StartError;
use kith_cluster::metadata::{CommitOutcome, Condition, MetadataStore, Write, keys, types};
use kith_wire::documents::{
    ClusterDocument, DOCUMENT_FORMAT, Document, LeadersDocument, LiveGraphDocument, ServedDocument,
    StoreDocument, TopologyDocument, VersionDocument,
};

/// The amounts by which version numbers and terms are advanced. The lost metadata may have used some that the copy does
/// not know, and none may be used twice.
const VERSIONS_LEFT_OUT: u64 = 1_000;
const TERMS_LEFT_OUT: u64 = 1_000_000;
/// A group that was still being filled, as documents name it.
const JOINING: &str = "joining";

/// Writes the metadata that a copy of the topology describes, with the types of its live graphs, into an empty metadata store.
/// A repeat after an interruption continues; once the cluster is there, nothing is written.
///
/// # Errors
/// [`StartError`] if the store cannot be written, or holds a cluster; before anything is written, if the copy lacks types.
pub async fn recover(
    store: &dyn MetadataStore,
    copy: &TopologyDocument,
) -> Result<ClusterDocument, StartError> {
    let refused = |detail: &str| StartError::Topology { detail: detail.to_owned() };
    if store.read(keys::CLUSTER).await?.get(keys::CLUSTER).is_some() {
        return Err(refused("the metadata store holds a cluster, so there is nothing to recover"));
    }
    // One by one, because a transaction of etcd is bounded. The cluster comes last: processes wait for it.
    for writes in documents(copy).map_err(|detail| refused(&detail))? {
        store.commit(Vec::new(), writes).await?;
    }
    let cluster = settled(&copy.cluster);
    let only_if_new = Condition { key: keys::CLUSTER.to_owned(), revision: 0 };
    match store.commit(vec![only_if_new], vec![Write::put(keys::CLUSTER, cluster.encode())]).await? {
        CommitOutcome::At(_) => Ok(cluster),
        CommitOutcome::Conflict => Err(refused("another process created a cluster at the same time")),
    }
}

/// The documents that are written besides the cluster: its stores, its live graphs, and terms that were never used for
/// their leaders. Each list is written at once, so that no graph is there without its types.
fn documents(copy: &TopologyDocument) -> Result<Vec<Vec<Write>>, String> {
    let stores = copy.stores.iter().map(|served| {
        let store = store_of(served, copy);
        Ok(vec![Write::put(keys::store(&store.name), store.encode())])
    });
    let graphs = copy.live.iter().map(|graph| {
        let LiveGraphDocument { name, types: reference, .. } = graph;
        let text = copy.types.get(name).ok_or_else(|| "there is no copy of them".to_owned());
        let text = text.and_then(Clone::clone).map_err(|reason| {
            format!(
                "the types of live graph {name:?} cannot be read ({reason}): name the copy of another process"
            )
        })?;
        let mut writes = types::writes(name, reference, text.to_string());
        writes.push(Write::put(keys::live_graph(name), graph.encode()));
        Ok(writes)
    });
    let leaders = copy.live.iter().map(|graph| {
        let known = copy.leaders.iter().find(|leaders| leaders.graph == graph.name);
        let leaders = LeadersDocument {
            format: DOCUMENT_FORMAT,
            graph: graph.name.clone(),
            term_last: known.map_or(0, |known| known.term_last) + TERMS_LEFT_OUT,
            nodes: Vec::new(),
            terms: Vec::new(),
        };
        Ok(vec![Write::put(keys::leaders(&graph.name), leaders.encode())])
    });
    stores.chain(graphs).chain(leaders).collect()
}

/// A store with the versions that the copy lists. A version that was being pushed is left out.
fn store_of(served: &ServedDocument, copy: &TopologyDocument) -> StoreDocument {
    let kept = copy.kept.iter().filter(|kept| kept.at.name == served.name && kept.is_whole);
    let mut versions: Vec<VersionDocument> = kept.map(|kept| version_of(&kept.at, "retained")).collect();
    if served.version != 0 {
        versions.push(version_of(served, "current"));
    }
    versions.sort_by_key(|version| version.version);
    let pushed = copy.kept.iter().filter(|kept| kept.at.name == served.name).map(|kept| kept.at.version);
    StoreDocument {
        format: DOCUMENT_FORMAT,
        name: served.name.clone(),
        definition: served.definition.clone(),
        // The copies do not say who made it: like what an operator makes, it counts for nobody.
        charged_to: String::new(),
        version_last: pushed.chain([served.version]).max().unwrap_or(0) + VERSIONS_LEFT_OUT,
        versions,
        running: None,
        frozen: None,
        cancelled: Vec::new(),
        history: Vec::new(),
    }
}

fn version_of(at: &ServedDocument, state: &str) -> VersionDocument {
    let loaded_at = at.components.iter().map(|component| component.loaded_at).max();
    VersionDocument {
        version: at.version,
        state: state.to_owned(),
        // For values, each record is a member.
        records: at.components.iter().map(|it| if it.edges == 0 { it.members } else { it.edges }).sum(),
        bytes: at.components.iter().map(|component| component.bytes).sum(),
        pushed_at: loaded_at.unwrap_or(0) * 1_000,
        components: at.components.clone(),
        held: false,
        excluded: at.excluded.clone(),
    }
}

/// The cluster without a group that was being filled: nobody goes on with that.
fn settled(cluster: &ClusterDocument) -> ClusterDocument {
    let mut cluster = cluster.clone();
    cluster.groups.retain(|group| group.role != JOINING);
    let groups: Vec<u32> = cluster.groups.iter().map(|group| group.group).collect();
    cluster.listed.retain(|node| groups.contains(&node.group));
    cluster
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_cluster::metadata::EmbeddedMetadata;
    use kith_cluster::topology::document_of;
    use kith_live::{DeclaredTypes, GraphTypes};
    use kith_topology::types_text;
    use serde_json::json;

    /// The copy that a node keeps of a cluster with a group that is being filled, a store in three versions, of which
    /// one is being pushed, and a live graph.
    fn copy() -> TopologyDocument {
        let at = |version: u64| {
            json!({"format": 1, "name": "people", "version": version,
                   "definition": {"holds": "values", "key": "id", "value": "text", "retain": 2, "required_reads": 1, "records_min": 0},
                   "components": [{"name": "values", "role": "values", "version": version, "manifest_hash": "00", "columns": [],
                                   "members": 7, "edges": 0, "bytes": 90, "loaded_at": 5}]})
        };
        let group = |group: u32, role: &str| json!({"group": group, "nodes": [group], "owners": [group], "role": role});
        let node = |node: u32| json!({"node": node, "group": node});
        let (types, text) = types_text(&GraphTypes::new(7, &DeclaredTypes::default()).unwrap());
        let copy = json!({
            "format": 1, "revision": 99,
            "cluster": {"format": 1, "cluster_id": "c1", "epoch": 4, "partitions": 1, "object_store": "/o",
                        "groups": [group(0, ""), group(1, "joining")], "listed": [node(0), node(1)]},
            "nodes": [], "routers": [], "databases": [],
            "stores": [at(7)],
            "kept": [{"is_whole": true, "at": at(6)}, {"is_whole": false, "at": at(8)}],
            "live": [{"format": 1, "name": "social", "types": types, "storage": "database:0", "who": "ada"}],
            "leaders": [{"format": 1, "graph": "social", "term_last": 12, "nodes": [0], "terms": [12]}],
        });
        let mut copy = TopologyDocument::decode(&serde_json::to_vec(&copy).unwrap()).unwrap();
        copy.types.insert("social".to_owned(), Ok(text.into()));
        copy
    }

    #[tokio::test]
    async fn what_a_node_keeps_becomes_the_metadata_again() {
        let (store, copy) = (EmbeddedMetadata::in_memory(), copy());
        // A graph without its types would be unusable, so nothing is written.
        let lacking = TopologyDocument { types: Default::default(), ..copy.clone() };
        let refused = recover(&store, &lacking).await.unwrap_err();
        assert!(refused.to_string().contains("the types of live graph \"social\""), "{refused}");
        assert!(store.read("").await.unwrap().entries.is_empty());
        let cluster = recover(&store, &copy).await.unwrap();
        assert_eq!((cluster.cluster_id.as_str(), cluster.groups.len(), cluster.listed.len()), ("c1", 1, 1));
        let snapshot = store.read("").await.unwrap();
        let back = document_of(&snapshot).unwrap();
        assert_eq!((&back.stores, &back.live), (&copy.stores, &copy.live));
        assert_eq!(back.kept, copy.kept[..1], "what was being pushed is pushed again");
        let people = StoreDocument::decode(&snapshot.get(&keys::store("people")).unwrap().value).unwrap();
        assert_eq!(people.version_last, 8 + VERSIONS_LEFT_OUT);
        let current = people.versions.last().unwrap();
        assert_eq!((current.records, current.bytes, current.pushed_at), (7, 90, 5_000));
        let text = types::read(&store, "social", &copy.live[0].types).await.unwrap();
        assert_eq!(Ok(text), copy.types["social"]);
        let leaders = &back.leaders[0];
        assert!(leaders.nodes.is_empty() && leaders.term_last == 12 + TERMS_LEFT_OUT, "{leaders:?}");
        // A cluster is never written over.
        let refused = recover(&store, &copy).await.unwrap_err();
        assert!(refused.to_string().contains("nothing to recover"), "{refused}");
    }
}
