//! `kith store verify`: what each node has on its disk, and what the object store has, compared with what the metadata says they should.

use super::replicas::{Replica, Replicas, told};
use crate::{
    connect::{self, TargetFlags},
    failure::{ErrorReport, Exit},
    names::store_name,
    output::{self, Format},
    table,
};
use clap::Args;
use futures::future::join_all;
use kith_client::QueryError;
use kith_wire::v1;
use serde::Serialize;

#[derive(Clone, Debug, Args)]
pub struct VerifyFlags {
    /// The store
    #[arg(value_parser = store_name)]
    store: String,
    /// Which version [default: the one that is served]
    #[arg(long, value_name = "VERSION")]
    version: Option<u64>,
    /// Read every byte of every replica and of the object store's copy, not only manifests, sizes and the ends of files
    #[arg(long)]
    deep: bool,
}

/// What was found. Field names are a contract: `docs/stores.md`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerifyReply {
    pub store: String,
    pub version: u64,
    pub deep: bool,
    /// Whether every replica and the object store's copy are whole.
    pub ok: bool,
    pub nodes: Vec<NodeReply>,
    pub object_store: ObjectStoreReply,
}

/// What the object store has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectStoreReply {
    /// The node that looked; `null`: none could.
    pub node: Option<u32>,
    /// The worst of its components: `ok`, `missing`, `damaged`, `differs`; `unreachable` if nobody could look.
    pub state: &'static str,
    pub components: Vec<ComponentReply>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// What one node has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeReply {
    pub group: u32,
    pub node: u32,
    pub addr: String,
    /// The worst of its components: `ok`, `missing`, `damaged`, `differs`; `unreachable` if it did not answer;
    /// `excluded` if it has nothing because a push left it out.
    pub state: &'static str,
    pub components: Vec<ComponentReply>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// One component on one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComponentReply {
    pub component: String,
    pub state: &'static str,
    /// Of the object store's copy: where it lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    pub manifest_hash: Option<String>,
    /// What the metadata says it should be.
    pub manifest_expected: String,
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    pub damages: Vec<DamageReply>,
}

/// A file that is not as it should be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DamageReply {
    pub file: String,
    pub fault: String,
    /// Where in the file the block begins that does not hold, if it is one.
    pub offset: Option<u64>,
}

/// From the best to the worst.
const STATES: [&str; 6] = ["ok", "excluded", "missing", "damaged", "differs", "unreachable"];

/// Verifies a version on every node that is to hold it, all at a time.
///
/// # Errors
/// If there is no such version, the router does not answer, or the caller may not ask. What else a node says is part of the reply.
pub async fn run(target: &TargetFlags, format: Format, flags: VerifyFlags) -> anyhow::Result<Exit> {
    let replicas = Replicas::of(&connect::router(target).await?, &flags.store, flags.version).await?;
    let request = v1::VerifyRequest {
        store: replicas.version.name.clone(),
        version: replicas.version.version,
        deep: flags.deep,
        revision: replicas.revision(),
        object_store: false,
    };
    let nodes = replicas.nodes().into_iter().map(|node| verify_on(&replicas, node, request.clone()));
    let built = v1::VerifyRequest { object_store: true, ..request.clone() };
    let (nodes, object_store) = tokio::join!(join_all(nodes), verify_built(&replicas, built));
    let nodes = nodes.into_iter().collect::<Result<Vec<_>, _>>()?;
    let object_store = object_store?;
    let reply = VerifyReply {
        version: replicas.version.version,
        deep: flags.deep,
        ok: nodes.iter().all(|node| node.state == "ok") && object_store.state == "ok",
        nodes,
        object_store,
        store: flags.store,
    };
    output::print(format, &reply, table::look::verify)?;
    Ok(if reply.ok { Exit::Done } else { Exit::Partial })
}

async fn verify_on(
    replicas: &Replicas,
    replica: Replica,
    request: v1::VerifyRequest,
) -> Result<NodeReply, QueryError> {
    let (components, error): (Vec<ComponentReply>, _) =
        match told(findings(replicas, &replica.addr, request).await)? {
            Ok(found) => (found.into_iter().map(|found| component(replicas, found)).collect(), None),
            Err(error) => (Vec::new(), Some(error)),
        };
    let state = match worst(&components) {
        _ if error.is_some() => "unreachable",
        Some("missing") if replica.excluded => "excluded",
        Some(worst) => worst,
        None => "ok",
    };
    let Replica { group, node, addr, .. } = replica;
    Ok(NodeReply { group, node, addr, state, components, error })
}

/// Has one node look at the object store's copy: one that is up, and another if it does not answer.
async fn verify_built(
    replicas: &Replicas,
    request: v1::VerifyRequest,
) -> Result<ObjectStoreReply, QueryError> {
    let mut nodes = replicas.nodes();
    nodes.sort_by_key(|replica| replica.state != "up");
    let mut unanswered = None;
    for Replica { node, addr, .. } in nodes {
        let error = match findings(replicas, &addr, request.clone()).await {
            Ok(found) => {
                let components: Vec<_> = found.into_iter().map(|found| component(replicas, found)).collect();
                let state = worst(&components).unwrap_or("ok");
                return Ok(ObjectStoreReply { node: Some(node), state, components, error: None });
            }
            Err(error) => error,
        };
        if matches!(error, QueryError::NodeUnreachable { .. }) {
            unanswered = Some(error);
            continue;
        }
        let error = told::<()>(Err(error))?.err();
        return Ok(ObjectStoreReply { node: Some(node), state: "unreachable", components: vec![], error });
    }
    let error = unanswered.map(|error| ErrorReport::of(&error.into()));
    Ok(ObjectStoreReply { node: None, state: "unreachable", components: vec![], error })
}

fn worst(components: &[ComponentReply]) -> Option<&'static str> {
    components.iter().map(|component| component.state).max_by_key(|state| badness(state))
}

/// A finding for each component, or an error: silence about one is not "ok".
async fn findings(
    replicas: &Replicas,
    addr: &str,
    request: v1::VerifyRequest,
) -> Result<Vec<v1::ComponentFinding>, QueryError> {
    let components = replicas.version.components.len();
    let node = replicas.inspector(addr)?;
    let mut progress = node.verify(request).await?;
    let mut found = Vec::new();
    while let Some(step) = progress.message().await.map_err(|status| node.error(&status))? {
        found.extend(step.finding);
    }
    if found.len() == components {
        return Ok(found);
    }
    let reason = format!("it reported {} of {components} components", found.len());
    Err(QueryError::NodeUnreachable { addr: addr.to_owned(), reason })
}

fn component(replicas: &Replicas, found: v1::ComponentFinding) -> ComponentReply {
    let known = replicas.version.components.iter().find(|known| known.name == found.component);
    let damages = found.damages.into_iter();
    ComponentReply {
        // A state of a newer release is none that this one can call good.
        state: STATES.into_iter().find(|state| *state == found.state).unwrap_or("damaged"),
        place: Some(found.place).filter(|place| !place.is_empty()),
        manifest_hash: Some(found.manifest_hash).filter(|hash| !hash.is_empty()),
        manifest_expected: known.map(|known| known.manifest_hash.clone()).unwrap_or_default(),
        files: found.files,
        bytes: found.bytes,
        damages: damages
            .map(|damage| DamageReply { file: damage.file, fault: damage.fault, offset: damage.offset })
            .collect(),
        component: found.component,
    }
}

fn badness(state: &str) -> usize {
    STATES.iter().position(|known| *known == state).unwrap_or(STATES.len())
}
