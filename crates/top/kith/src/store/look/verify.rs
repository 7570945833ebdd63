//! `kith store verify`: compares the data on the nodes' disks and in the object store with what the metadata records.

use super::replicas::{Replica, Replicas, unless_denied};
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

/// A summary of what was found. The field names are a contract: see `docs/stores.md`.
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

/// The state of the object store's copy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectStoreReply {
    /// The node that read the copy; `null` if no node could.
    pub node: Option<u32>,
    /// The worst state of its components: `ok`, `missing`, `damaged` or `differs`. `unreachable` if no node could read the
    /// copy.
    pub state: &'static str,
    pub components: Vec<ComponentReply>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// The state of one node's replica.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeReply {
    pub group: u32,
    pub node: u32,
    pub addr: String,
    /// The worst state of its components: `ok`, `missing`, `damaged` or `differs`. `unreachable` if the node did not answer;
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
    /// The place of the component, for the object store's copy only.
    #[serde(rename = "place", skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    pub manifest_hash: Option<String>,
    /// The manifest hash that the metadata records.
    pub manifest_expected: String,
    pub files: u64,
    /// The number of bytes read.
    pub bytes: u64,
    pub damages: Vec<DamageReply>,
}

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DamageReply {
    pub file: String,
    pub fault: String,
    /// The offset in bytes of the damaged block, if the damage is in one block.
    pub offset: Option<u64>,
}

/// All states, from the best to the worst.
const STATES: [&str; 6] = ["ok", "excluded", "missing", "damaged", "differs", "unreachable"];

/// Verifies a version on every node that should hold it, on all nodes at once.
///
/// # Errors
/// If there is no such version, the router does not answer, or the caller may not ask. Other errors of a node are part of
/// the reply.
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
        match unless_denied(findings(replicas, &replica.addr, request).await)? {
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

/// Lets one node verify the object store's copy. Nodes that are up are asked first; the next one is asked if one does
/// not answer.
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
        let error = unless_denied::<()>(Err(error))?.err();
        return Ok(ObjectStoreReply { node: Some(node), state: "unreachable", components: vec![], error });
    }
    let error = unanswered.map(|error| ErrorReport::of(&error.into()));
    Ok(ObjectStoreReply { node: None, state: "unreachable", components: vec![], error })
}

fn worst(components: &[ComponentReply]) -> Option<&'static str> {
    components.iter().map(|component| component.state).max_by_key(|state| badness(state))
}

/// Returns a finding for each component. If a component has none, returns an error, so that a missing finding does not count
/// as `ok`.
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
        // A state that this release does not know, from a newer node, must not count as `ok`.
        state: STATES.into_iter().find(|state| *state == found.state).unwrap_or("damaged"),
        location: Some(found.place).filter(|url| !url.is_empty()),
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
