//! The types of live graphs, fetched from a router for those graphs whose types a caller needs.

use super::RouterClient;
use kith_wire::documents::{TopologyDocument, TypesReference};
use std::{collections::BTreeMap, sync::Arc};

/// The types of live graphs that have been fetched.
#[derive(Default)]
pub struct KnownTypes(BTreeMap<String, (TypesReference, Arc<str>)>);

impl KnownTypes {
    /// Adds to a topology the types of the graphs that are wanted. Fetches those that are not known. Returns whether some could
    /// not be fetched.
    pub async fn add_to(
        &mut self,
        router: &RouterClient,
        topology: &mut TopologyDocument,
        is_wanted: impl Fn(&str) -> bool,
    ) -> bool {
        self.0.retain(|name, _| topology.live.iter().any(|graph| graph.name == *name));
        let mut lacks = false;
        for graph in topology.live.iter_mut().filter(|graph| is_wanted(&graph.name)) {
            let known = self.0.get(&graph.name).filter(|(known, _)| is_as_new(known, &graph.types));
            let text = match known {
                Some(known) => Ok(known.clone()),
                None => router.types(&graph.name).await.map_err(|error| error.to_string()),
            };
            let text = text.and_then(|(reference, text)| match is_as_new(&reference, &graph.types) {
                true => {
                    graph.types = reference.clone();
                    self.0.insert(graph.name.clone(), (reference, Arc::clone(&text)));
                    Ok(text)
                }
                false => Err("the process that was asked has older ones".to_owned()),
            });
            lacks |= text.is_err();
            topology.types.insert(graph.name.clone(), text);
        }
        lacks
    }
}

/// Whether types are those that a topology names, or newer ones of the same graph.
fn is_as_new(types: &TypesReference, named: &TypesReference) -> bool {
    types.identity == named.identity && named.revision <= types.revision
}
