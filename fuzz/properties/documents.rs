//! The JSON documents of the metadata store and of topology messages.

use super::{Seed, take};
use kith_types::{check_component_name, check_folder_name, check_store_name};
use kith_wire::documents::{
    ClusterDocument, ComponentDocument, DOCUMENT_FORMAT, DefinitionDocument, Document, DroppedDocument,
    GroupDocument, HoldsDocument, KeptDocument, NodeDocument, RebalanceDocument, RouterDocument,
    ServedDocument, StoreDocument, TopologyDocument, VersionDocument,
};
use std::fmt::Debug;

/// Input: the kind of document, then the document.
pub fn check(mut input: &[u8]) {
    match take(&mut input) % 8 {
        0 => drop(document::<ClusterDocument>(input)),
        1 => drop(document::<NodeDocument>(input)),
        2 => drop(document::<RouterDocument>(input)),
        3 => {
            if let Some(topology) = document::<TopologyDocument>(input) {
                topology.stores.iter().chain(topology.kept.iter().map(|kept| &kept.at)).for_each(names);
                assert!(topology.graphs().all(|graph| topology.graph(&graph.name).is_some()));
            }
        }
        4 => {
            if let Some(store) = document::<StoreDocument>(input) {
                names(&store.served());
                store.kept().for_each(|kept| names(&kept.at));
            }
        }
        5 => drop(document::<DroppedDocument>(input)),
        6 => drop(document::<ServedDocument>(input).inspect(names)),
        _ => drop(document::<RebalanceDocument>(input)),
    }
}

fn document<D: Document + PartialEq + Debug>(input: &[u8]) -> Option<D> {
    let document = D::decode(input).ok()?;
    let bytes = document.encode();
    let again = D::decode(&bytes).expect("a document that was encoded");
    assert_eq!(again, document);
    assert_eq!(again.encode(), bytes);
    Some(document)
}

/// Checks the names that become parts of paths.
fn names(store: &ServedDocument) {
    check_store_name(&store.name).expect("names of stores are checked");
    for component in &store.components {
        check_component_name(&component.name).expect("names of components are checked");
        component.folder.as_deref().map_or(Ok(()), check_folder_name).expect("folders are checked");
    }
}

pub fn seeds() -> Vec<Seed> {
    let of = |kind: u8, document: Vec<u8>| [&[kind][..], &document].concat();
    let served = served("values");
    let dropped = DroppedDocument { format: DOCUMENT_FORMAT, version_last: u64::MAX };
    vec![
        ("cluster", of(0, cluster().encode())),
        ("node", of(1, node().encode())),
        ("topology", of(3, topology(&served).encode())),
        ("store", of(4, store(&served).encode())),
        ("dropped", of(5, dropped.encode())),
        ("served", of(6, served.encode())),
        // A push could once read and write other stores by such a name.
        ("component-that-leads-elsewhere", of(6, self::served("../secrets/values").encode())),
        ("another-format", of(1, br#"{"format":2,"node":"one"}"#.to_vec())),
        (
            "unknown-field",
            of(1, br#"{"format":1,"node":1,"addr":"a:1","http":"a:2","pid":3,"more":7}"#.to_vec()),
        ),
    ]
}

/// The record of a store that serves this.
fn store(served: &ServedDocument) -> StoreDocument {
    let version = VersionDocument {
        version: served.version,
        state: "current".to_owned(),
        components: served.components.clone(),
        records: 10,
        bytes: 4_096,
        pushed_at: 1_700_000_000_000,
        held: false,
        excluded: Vec::new(),
    };
    StoreDocument {
        format: DOCUMENT_FORMAT,
        name: served.name.clone(),
        charged_to: String::new(),
        definition: served.definition.clone(),
        version_last: 3,
        versions: vec![version],
        running: None,
        frozen: None,
        cancelled: Vec::new(),
        history: Vec::new(),
    }
}

/// A topology with one store that serves this.
fn topology(served: &ServedDocument) -> TopologyDocument {
    TopologyDocument {
        format: DOCUMENT_FORMAT,
        revision: 12,
        cluster: cluster(),
        nodes: vec![node()],
        routers: Vec::new(),
        stores: vec![served.clone()],
        kept: vec![KeptDocument { is_whole: true, at: served.clone() }],
        live: vec![],
        types: Default::default(),
        leaders: vec![],
        databases: vec![],
        rebalance: None,
    }
}

fn node() -> NodeDocument {
    NodeDocument {
        format: DOCUMENT_FORMAT,
        node: 1,
        addr: "127.0.0.1:7001".to_owned(),
        http: "127.0.0.1:7081".to_owned(),
        resp: String::new(),
        pid: 99,
        zone: "a".to_owned(),
        rack: String::new(),
        region: String::new(),
    }
}

fn cluster() -> ClusterDocument {
    let group = GroupDocument { group: 0, nodes: vec![0, 1], owners: vec![0, 1, 0, 1], role: String::new() };
    ClusterDocument {
        format: DOCUMENT_FORMAT,
        cluster_id: "c1".to_owned(),
        epoch: 2,
        partitions: 4,
        groups: vec![group],
        object_store: "objects".to_owned(),
        strategy: "ring".to_owned(),
        listed: Vec::new(),
        partition_epochs: vec![1, 2, 2, 1],
    }
}

fn served(component: &str) -> ServedDocument {
    let component = ComponentDocument {
        name: component.to_owned(),
        role: "values".to_owned(),
        version: 3,
        manifest_hash: "00".repeat(32),
        columns: Vec::new(),
        members: 10,
        edges: 0,
        bytes: 4_096,
        loaded_at: 1_700_000_000,
        schema: None,
        folder: Some("push-1".to_owned()),
        url: None,
    };
    let values = HoldsDocument::Values { key: "id".to_owned(), value: "text".to_owned(), key_field: None };
    ServedDocument {
        format: DOCUMENT_FORMAT,
        name: "people".to_owned(),
        definition: DefinitionDocument::new(values),
        version: 3,
        components: vec![component],
        excluded: vec![2],
    }
}
