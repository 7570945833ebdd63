//! Types that writes to open graphs name. A router adds them to the graph before the write is sent.

use super::LiveWrite;
use kith_client::RouterClient;
use kith_live::{GraphTypes, MissingTypes, Mutation, TypeKind};
use kith_query::QueryError;
use kith_topology::Topology;
use kith_wire::v1::{self, schema_command::Command};
use std::sync::Arc;
use tokio::time::timeout_at;

impl LiveWrite<'_> {
    /// Adds the types of what a write adds to an open graph, unless they exist, and waits until this session knows them. Types
    /// of associations that the write deletes or changes are not added, but this session then knows all types that existed
    /// when it was called.
    ///
    /// # Errors
    /// If a name is not allowed, the graph has too many types, or no router answers before the deadline. Nothing was written
    /// then, but the types may have been added.
    pub(super) async fn add_types(&self, mutation: &Mutation) -> Result<(), QueryError> {
        let &Self { session, graph, deadline, .. } = self;
        if missing(&session.topology(), graph, mutation).is_none() {
            return Ok(());
        }
        let late = |what: &str| QueryError::NotLeader { detail: format!("nothing was written: {what}") };
        let added = async {
            let _adding = session.inner.adding_types.lock().await;
            let topology = session.topology();
            let Some(missing) = missing(&topology, graph, mutation) else { return Ok(()) };
            let router = RouterClient::connect_by(&topology.routers, &session.settings().dialer).await?;
            let outcome = router.schema_of_graph(command(graph, missing)).await?;
            let knows = |topology: &Arc<Topology>| {
                types(topology, graph).is_none_or(|types| outcome.revision <= types.revision)
            };
            // An error means that nobody follows the topology any more: the write then fails for want of types.
            let _ = session.inner.topology.clone().wait_for(knows).await;
            Ok(())
        };
        let added = timeout_at(deadline.into(), added).await;
        added.unwrap_or_else(|_| Err(late("the types that it names were not added before the deadline")))
    }
}

/// Returns what an open graph lacks of the types that a write names; `None` if it lacks none, or if the graph is not open.
fn missing(topology: &Topology, graph: &str, mutation: &Mutation) -> Option<MissingTypes> {
    let types = types(topology, graph).filter(|types| types.open)?;
    Some(types.missing(mutation)).filter(|missing| !missing.is_empty())
}

fn types<'a>(topology: &'a Topology, graph: &str) -> Option<&'a GraphTypes> {
    topology.graph(graph).ok()?.live.as_ref().map(|live| &*live.types)
}

fn command(graph: &str, missing: MissingTypes) -> v1::SchemaCommand {
    let (objects, associations): (Vec<_>, Vec<_>) =
        missing.labels.into_iter().partition(|label| label.kind == TypeKind::Object);
    let names = |labels: Vec<kith_live::Label>| labels.into_iter().map(|label| label.name).collect();
    let types = v1::AddTypes { objects: names(objects), associations: names(associations) };
    v1::SchemaCommand {
        graph: graph.to_owned(),
        command: Some(Command::AddTypes(types)),
        ..Default::default()
    }
}
