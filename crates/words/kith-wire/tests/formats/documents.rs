//! Golden bytes of the documents that the metadata store keeps and that messages carry.

use kith_sim::golden;
use kith_wire::documents::{
    AddedGroupDocument, BatchDocument, CancelledDocument, ClusterDocument, ColumnDocument, ComponentDocument,
    DOCUMENT_FORMAT, DatabaseDocument, DefinitionDocument, Document, DroppedDocument, FrozenDocument,
    GroupDocument, HistoryDocument, HoldsDocument, KeptDocument, LeadersDocument, ListedNodeDocument,
    LiveGraphDocument, MoveDocument, NodeDocument, NodeTotalsDocument, PairTotalsDocument, PhaseDocument,
    PlanDocument, RebalanceDocument, ReclaimDocument, RosterDocument, RouterDocument, RunningDocument,
    ServedDocument, ShapeDocument, SizedStoreDocument, StopDocument, StoreDocument, TopologyDocument,
    TransferDocument, TypesReference, VersionDocument,
};
use std::fmt::Debug;
use std::num::NonZeroU64;

const FORMAT: u32 = DOCUMENT_FORMAT;

fn listed(node: u32) -> ListedNodeDocument {
    ListedNodeDocument {
        node,
        group: node,
        zone: "a".to_owned(),
        rack: "r1".to_owned(),
        region: "eu".to_owned(),
        drained: node == 1,
    }
}

fn cluster() -> ClusterDocument {
    let group = |group, role: &str| GroupDocument {
        group,
        nodes: vec![group],
        owners: vec![group, group],
        role: role.to_owned(),
    };
    ClusterDocument {
        format: FORMAT,
        cluster_id: "c1".to_owned(),
        epoch: 5,
        partitions: 2,
        groups: vec![group(0, ""), group(1, "maintenance")],
        object_store: "objects".to_owned(),
        strategy: String::new(),
        listed: vec![listed(0), listed(1)],
        partition_epochs: vec![4, 5],
    }
}

fn node() -> NodeDocument {
    NodeDocument {
        format: FORMAT,
        node: 1,
        addr: "127.0.0.1:7001".to_owned(),
        http: "127.0.0.1:7081".to_owned(),
        resp: "127.0.0.1:7379".to_owned(),
        pid: 99,
        zone: "a".to_owned(),
        rack: "r1".to_owned(),
        region: "eu".to_owned(),
    }
}

fn router() -> RouterDocument {
    RouterDocument {
        format: FORMAT,
        router: 0,
        addr: "127.0.0.1:7000".to_owned(),
        http: "127.0.0.1:7080".to_owned(),
        resp: String::new(),
        gremlin: String::new(),
        pid: 98,
    }
}

fn component(name: &str, role: &str) -> ComponentDocument {
    let is_graph = role != "values";
    ComponentDocument {
        name: name.to_owned(),
        role: role.to_owned(),
        version: 3,
        manifest_hash: "ab".repeat(32),
        columns: if is_graph {
            vec![ColumnDocument { name: "created_ms".to_owned(), kind: "time".to_owned() }]
        } else {
            vec![]
        },
        members: 10,
        edges: 20,
        bytes: 4_096,
        loaded_at: 1_700_000_000,
        schema: (!is_graph).then(|| "cd".repeat(32)),
        folder: (!is_graph).then(|| "3-push-1".to_owned()),
        url: (!is_graph).then(|| "s3://bucket/people".to_owned()),
    }
}

fn definition() -> DefinitionDocument {
    let key_field = Some("id".to_owned());
    let holds = HoldsDocument::Values { key: "string".to_owned(), value: "record".to_owned(), key_field };
    DefinitionDocument {
        replication: Some(2),
        required_reads: 2,
        quota_bytes: Some(1 << 30),
        read_quota_keys: NonZeroU64::new(1_000),
        read_quota_bytes: NonZeroU64::new(1 << 20),
        records_min: 5,
        drop_percent_max: Some(50),
        owner: Some("ada".to_owned()),
        schema: Some(r#"{"kith_schema":1,"fields":[{"name":"age","type":"i32"}]}"#.to_owned()),
        properties: Some("people".to_owned()),
        ..DefinitionDocument::new(holds)
    }
}

fn store() -> StoreDocument {
    let version = |version, state: &str| VersionDocument {
        version,
        state: state.to_owned(),
        components: vec![component("values", "values")],
        records: 10,
        bytes: 4_096,
        pushed_at: 1_700_000_000_000,
        held: version == 2,
        excluded: vec![1],
    };
    let history = HistoryDocument {
        at: 1_700_000_000_000,
        who: "ada".to_owned(),
        action: "push".to_owned(),
        version: 3,
        before: 2,
        push: Some("push-1".to_owned()),
        failed: Some("over_quota".to_owned()),
        cancelled: Some("bob".to_owned()),
    };
    StoreDocument {
        format: FORMAT,
        name: "people".to_owned(),
        charged_to: "anna".to_owned(),
        definition: definition(),
        version_last: 4,
        versions: vec![version(2, "retained"), version(3, "current")],
        running: Some(RunningDocument {
            push: "push-2".to_owned(),
            version: 4,
            who: "ada".to_owned(),
            coordinator: "router 0, start 1".to_owned(),
            since: 1_700_000_000_001,
            missing_max: 1,
            offered: true,
        }),
        frozen: Some(FrozenDocument { who: "bob".to_owned(), since: 1_700_000_000_002 }),
        cancelled: vec![CancelledDocument { push: "push-3".to_owned(), who: "bob".to_owned() }],
        history: vec![history],
    }
}

fn graph() -> ServedDocument {
    ServedDocument {
        format: FORMAT,
        name: "village".to_owned(),
        definition: DefinitionDocument::new(HoldsDocument::Graph),
        version: 3,
        components: vec![component("connection", "undirected")],
        excluded: vec![],
    }
}

fn topology() -> TopologyDocument {
    TopologyDocument {
        format: FORMAT,
        revision: 12,
        cluster: ClusterDocument { strategy: "ring".to_owned(), listed: vec![], ..cluster() },
        nodes: vec![node()],
        routers: vec![router()],
        stores: vec![graph(), store().served()],
        kept: store().kept().map(|kept| KeptDocument { is_whole: true, ..kept }).collect(),
        live: vec![],
        types: Default::default(),
        leaders: vec![],
        databases: vec![],
        rebalance: Some("rebalance-1".to_owned()),
    }
}

fn plan() -> PlanDocument {
    let roster = |role: &str| RosterDocument { groups: vec![(0, role.to_owned())], nodes: vec![listed(0)] };
    let copy = MoveDocument {
        partition: 1,
        group: 1,
        donor: 0,
        stealer: 1,
        secondary: true,
        stores: vec![(0, 4_096)],
    };
    PlanDocument {
        shape: ShapeDocument::AddGroup { group: 1, nodes: vec![listed(1)] },
        before: cluster(),
        announced: roster("joining"),
        closing: roster(""),
        added: Some(AddedGroupDocument { group: 1, owners: vec![1, 1] }),
        batches: vec![BatchDocument { moves: vec![copy], changes: vec![(1, 1, 1)] }],
        stores: vec![SizedStoreDocument {
            name: "people".to_owned(),
            replication: Some(2),
            required_reads: 2,
            excluded: vec![1],
        }],
        pairs: vec![PairTotalsDocument { donor: 0, stealer: 1, moves: 1, secondary_moves: 1, bytes: 4_096 }],
        nodes: vec![NodeTotalsDocument {
            node: 1,
            group: 1,
            partitions_before: 0,
            partitions_after: 2,
            bytes_before: 0,
            bytes_after: 8_192,
            bytes_in: 8_192,
        }],
    }
}

fn rebalance() -> RebalanceDocument {
    let plan = plan();
    let copy = plan.batches[0].moves[0].clone();
    RebalanceDocument {
        format: FORMAT,
        id: "rebalance-1".to_owned(),
        who: "ada".to_owned(),
        since: 1_700_000_000_000,
        driver: "router 0, start 1".to_owned(),
        fence: 2,
        grace_ms: 60_000,
        bytes_per_second: 1_000_000,
        steps_done: 1,
        first_uncommitted: 0,
        table: plan.before.clone(),
        phase: PhaseDocument::Stopped {
            reason: StopDocument::CopyFailed { partition: 1, donor: 0, stealer: 1 },
        },
        abort_asked: true,
        transfers: vec![TransferDocument { copy, state: "running".to_owned(), failures: 2, avoid: vec![3] }],
        reclaims: vec![ReclaimDocument { node: 0, partition: 1, stores: vec![0], gone_since: 5 }],
        last_failure: "node 0 does not answer".to_owned(),
        plan,
    }
}

fn live_graph() -> LiveGraphDocument {
    LiveGraphDocument {
        format: FORMAT,
        name: "social".to_owned(),
        types: TypesReference {
            identity: "00000000000000a7".to_owned(),
            revision: 3,
            bytes: 14,
            digest: "5f".repeat(32),
        },
        storage: "database:0".to_owned(),
        who: "anna".to_owned(),
        charged_to: "anna".to_owned(),
        dropping: true,
    }
}

fn leaders() -> LeadersDocument {
    LeadersDocument {
        format: FORMAT,
        graph: "social".to_owned(),
        term_last: 9,
        nodes: vec![3, 0, 1],
        terms: vec![9, 0, 4],
    }
}

fn database() -> DatabaseDocument {
    DatabaseDocument {
        format: FORMAT,
        database: 0,
        addr: "127.0.0.1:7005".to_owned(),
        http: "127.0.0.1:7085".to_owned(),
        pid: 4_711,
    }
}

/// Checks that the golden file has these bytes and decodes to this document, and that the rules for newer documents
/// hold.
fn check<D: Document + PartialEq + Debug>(name: &str, document: &D) {
    let golden = golden::file(&format!("documents/{name}.json"), &document.encode());
    assert_eq!(D::decode(&golden).unwrap(), *document);
    let text = String::from_utf8(golden).unwrap();
    let now = r#"{"format":1,"#;
    // A newer release may add fields, and raises the format if it changes anything else.
    let wider = text.replacen(now, r#"{"format":1,"what_is_new":{"and":["unknown"]},"#, 1);
    assert_eq!(D::decode(wider.as_bytes()).unwrap(), *document, "unknown fields are ignored");
    assert_eq!(D::decode(wider.as_bytes()).unwrap().encode(), text.as_bytes(), "and are not written again");
    for got in [0, 2] {
        let other = text.replacen(now, &format!(r#"{{"format":{got},"#), 1);
        let error = D::decode(other.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, format!("{} document has format {got}, this release reads format 1", D::WHAT));
    }
}

#[test]
fn documents_of_the_metadata() {
    check("cluster", &cluster());
    check("node", &node());
    check("router", &router());
    check("store", &store());
    check("dropped-store", &DroppedDocument { format: FORMAT, version_last: 4 });
    check("store-version", &store().served());
    check("topology", &topology());
    check("rebalance", &rebalance());
    check("live-graph", &live_graph());
    check("leaders", &leaders());
    check("database", &database());
}
