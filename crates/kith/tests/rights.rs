//! What callers may do over the wire, asked by hand: attacks that no client of ours would make, and every method and operation there is.

mod support;

#[path = "support/raw.rs"]
mod raw;
#[path = "support/secured.rs"]
mod secured;

use bytes::Bytes;
use kith_client::security::{Dialer, SecurityOptions};
use kith_wire::{
    Message,
    documents::{Document, TopologyDocument},
    v1,
};
use raw::{call, outcome};
use secured::{Secured, access, fill};
use std::fs;
use tokio::runtime::Runtime;

/// A cluster with the stores `pages`, `scores` and `secrets`, and a subject by token for each list of rights.
fn started(subjects: &'static [(&str, &str, &str)]) -> Secured {
    let cluster = Secured::start(|folder| {
        let file = folder.join("access.toml");
        fs::write(&file, access(subjects)).expect("written");
        vec!["--access".to_owned(), file.to_str().expect("UTF-8").to_owned()]
    });
    let ops = cluster.authority.papers("ops");
    for store in ["pages", "scores", "secrets"] {
        fill(&cluster, store, 100, &ops);
    }
    cluster
}

/// Connects as the subject of a token.
fn bearing(cluster: &Secured, token: &str) -> Dialer {
    let path = cluster.folder.path().join(format!("{token}.token"));
    fs::write(&path, token).expect("written");
    let options = SecurityOptions {
        ca: Some(cluster.authority.pem.clone()),
        token: Some(path),
        ..SecurityOptions::default()
    };
    Dialer::open(options).expect("a token and an authority")
}

async fn topology(dialer: &Dialer, router: &str) -> TopologyDocument {
    let replies = call(dialer, router, "/kith.v1.Cluster/GetTopology", Bytes::new()).await;
    let reply = replies.expect("anybody known may ask").remove(0);
    TopologyDocument::decode(&v1::Topology::decode(reply).expect("a topology").document).expect("JSON")
}

#[test]
fn verify_opens_only_what_the_metadata_names() {
    let cluster = started(&[("ads", "ads", "read = [\"pages\"]\nwrite = [\"scores\"]")]);
    let (ads, runtime) = (bearing(&cluster, "ads"), Runtime::new().expect("a runtime"));
    let node = cluster.node(0);
    let verify = |message: Vec<u8>| {
        runtime.block_on(call(&ads, &node, "/kith.v1.Inspect/Verify", message.into())).map(|replies| {
            let replies = replies.into_iter().map(|it| v1::VerifyProgress::decode(it).expect("progress"));
            replies.filter_map(|it| it.finding).collect::<Vec<_>>()
        })
    };
    let ask = |store: &str, version| {
        let store = store.to_owned();
        v1::VerifyRequest { store, version, ..Default::default() }.encode_to_vec()
    };
    let topology = runtime.block_on(topology(&ads, &cluster.router(0)));
    let pages = topology.stores.iter().find(|store| store.name == "pages").expect("it is served");
    let served = pages.version;
    let own = verify(ask("pages", served)).expect("the right to read `pages`");
    assert_eq!(own.iter().map(|it| it.state.as_str()).collect::<Vec<_>>(), ["ok"]);
    assert_eq!(outcome(&verify(ask("pages", served + 1))), "version_not_kept");
    for store in ["secrets", "../secrets/values", "pages/../secrets", "/proc/self"] {
        assert_eq!(outcome(&verify(ask(store, served))), "permission_denied", "{store}");
    }
    // As readers could ask until nodes decided by themselves what a version is made of.
    for name in ["../secrets/values", "../../../../../../../../../../../proc/self/fd"] {
        let mut record = pages.clone();
        record.components[0].name = name.to_owned();
        let record = String::from_utf8(record.encode()).expect("JSON");
        let message = v1::StoreNamed { store: record }.encode_to_vec();
        let told = verify(message);
        assert!(told.is_err(), "{name}: {told:?}");
    }
}
