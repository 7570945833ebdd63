//! Pushes that the command line would not make: whatever components, under whatever names and places.

use super::secured::{Papers, SecuredCluster};
use kith_client::{
    QueryError, RouterClient,
    security::{Dialer, SecurityOptions},
};
use kith_wire::{documents::ComponentDocument, v1};
use serde_json::Value;
use std::path::Path;
use tokio::runtime::Runtime;

/// Somebody who asks a cluster's first router.
pub struct Attacker {
    runtime: Runtime,
    router: RouterClient,
}

impl Attacker {
    /// With this certificate, or the token in a file.
    pub fn new(cluster: &SecuredCluster, papers: Option<&Papers>, token: Option<&Path>) -> Self {
        Self::at(cluster, 0, papers, token)
    }

    /// Asks another router.
    pub fn at(cluster: &SecuredCluster, router: u32, papers: Option<&Papers>, token: Option<&Path>) -> Self {
        let options = SecurityOptions {
            ca: Some(cluster.authority.pem.clone()),
            cert: papers.map(|papers| papers.cert.clone()),
            key: papers.map(|papers| papers.key.clone()),
            token: token.map(Path::to_owned),
        };
        let dialer = Dialer::open(options).expect("the files are whole");
        let runtime = Runtime::new().expect("a runtime");
        let router = runtime.block_on(RouterClient::connect_by(&[cluster.router(router)], &dialer));
        Self { router: router.expect("the router answers"), runtime }
    }

    /// The first component of what a store serves, as anybody sees it in the topology.
    pub fn component(&self, store: &str) -> ComponentDocument {
        let topology = self.runtime.block_on(self.router.topology()).expect("the topology");
        let served = topology.stores.iter().find(|served| served.name == store).expect("it is served");
        served.components[0].clone()
    }

    /// Pushes one component, with fields of its document changed.
    pub fn push(
        &self,
        store: &str,
        push: &str,
        component: &ComponentDocument,
        changes: &[(&str, Value)],
    ) -> Result<u64, QueryError> {
        self.push_with(store, push, component, changes, v1::PushRequest::default())
    }

    /// Like [`Attacker::push`], with the other fields of a request.
    pub fn push_with(
        &self,
        store: &str,
        push: &str,
        component: &ComponentDocument,
        changes: &[(&str, Value)],
        others: v1::PushRequest,
    ) -> Result<u64, QueryError> {
        let mut component = serde_json::to_value(component).expect("a document is JSON");
        for (field, value) in changes {
            component[*field] = value.clone();
        }
        let request = v1::PushRequest {
            store: store.to_owned(),
            push: push.to_owned(),
            who: "somebody else".to_owned(),
            components: serde_json::to_vec(&[component]).expect("JSON").into(),
            ..others
        };
        self.runtime.block_on(async {
            let mut steps = self.router.push_store(request).await?;
            loop {
                match steps.message().await {
                    Ok(Some(step)) if step.committed_version != 0 => return Ok(step.committed_version),
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("the push ended without a word"),
                    Err(status) => return Err(QueryError::from_status(&status)),
                }
            }
        })
    }
}
