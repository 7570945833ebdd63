//! Live graphs in a topology.

use super::{Graph, Pin, PinnedState, Topology, UnreadReason, types_of_text};
use kith_live::{AssociationType, GraphTypes, Inverse};
use kith_routing::{Leader, Leaders, RoutingTable, StoreReach};
use kith_schema::{GraphSchema, KindRole, KindSchema};
use kith_types::{NodeId, StoreVersion, Term};
use kith_wire::documents::{DOCUMENT_FORMAT, LeadersDocument, LiveGraphDocument, TopologyDocument};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// The properties that only a live graph has.
#[derive(Debug)]
pub struct LiveGraph {
    /// The types of its objects and associations.
    pub types: Arc<GraphTypes>,
    /// The leaders of its partitions.
    pub leaders: Leaders,
}

/// Decodes leaders from a document.
pub fn leaders_of(document: &LeadersDocument) -> Leaders {
    let leaders = document.nodes.iter().zip(&document.terms);
    let leader = |(&node, &term)| (term != 0).then_some(Leader { node: NodeId(node), term: Term(term) });
    Leaders { term_last: Term(document.term_last), by_partition: leaders.map(leader).collect() }
}

/// Encodes leaders as a document.
pub fn leaders_document(graph: &str, leaders: &Leaders) -> LeadersDocument {
    let each = || leaders.by_partition.iter();
    LeadersDocument {
        format: DOCUMENT_FORMAT,
        graph: graph.to_owned(),
        term_last: leaders.term_last.0,
        nodes: each().map(|leader| leader.map_or(0, |leader| leader.node.0)).collect(),
        terms: each().map(|leader| leader.map_or(0, |leader| leader.term.0)).collect(),
    }
}

/// Returns the types of a graph: those of the topology before if they are the same, or else those in the text that this process
/// has read.
pub(super) fn types(
    document: &LiveGraphDocument,
    topology: &TopologyDocument,
    before: Option<&Topology>,
) -> Result<Arc<GraphTypes>, UnreadReason> {
    let text = match topology.types.get(&document.name) {
        None => return Err(UnreadReason::Unasked),
        Some(Err(reason)) => return Err(UnreadReason::Failed(reason.clone())),
        Some(Ok(text)) => text,
    };
    if let Some(before) = before
        && let Some(Ok(known)) = before.document.types.get(&document.name)
        && Arc::ptr_eq(known, text)
        && let Some(live) = before.graphs.get(&document.name).and_then(|graph| graph.live.as_ref())
    {
        return Ok(Arc::clone(&live.types));
    }
    types_of_text(&document.types, text).map(Arc::new).map_err(UnreadReason::Failed)
}

/// Decodes a live graph with these types.
pub(super) fn graph(
    document: &LiveGraphDocument,
    types: Arc<GraphTypes>,
    leaders: &[LeadersDocument],
    table: &RoutingTable,
) -> Graph {
    let leaders = leaders.iter().find(|leaders| leaders.graph == document.name);
    let pinned = PinnedState {
        name: document.name.clone(),
        pin: Pin::Live { identity: types.identity },
        components: Arc::new(BTreeMap::new()),
        what: "graph",
        reach: StoreReach::new(table, &document.name, None, &[]),
    };
    Graph {
        pinned: Arc::new(pinned),
        schema: schema_of(&types),
        live: Some(LiveGraph { types, leaders: leaders.map(leaders_of).unwrap_or_default() }),
        properties: None,
    }
}

/// The schema that queries see: association types with adjacency, in the order of their numbers.
fn schema_of(types: &GraphTypes) -> GraphSchema {
    let kind = |kind: &AssociationType| KindSchema {
        name: kind.name.clone(),
        role: match kind.inverse {
            Inverse::Symmetric => KindRole::Undirected,
            Inverse::None | Inverse::Named { .. } => KindRole::Directed,
        },
        version: StoreVersion(0),
        columns: Vec::new(),
        one_sided: kind.inverse == Inverse::None,
    };
    GraphSchema { kinds: types.associations.values().filter(|it| it.adjacency).map(kind).collect() }
}

/// Returns the schema for a query that names an edge type. In an open graph, a type that does not exist is a directed edge type
/// without edges.
pub(super) fn schema_for<'a>(
    schema: &'a GraphSchema,
    types: &GraphTypes,
    edge_type: &str,
) -> Cow<'a, GraphSchema> {
    let mut schema = Cow::Borrowed(schema);
    if types.open && types.association(edge_type).is_none() {
        schema.to_mut().kinds.push(KindSchema {
            name: edge_type.to_owned(),
            role: KindRole::Directed,
            version: StoreVersion(0),
            columns: Vec::new(),
            one_sided: false,
        });
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_live::DeclaredTypes;
    use std::collections::BTreeSet;

    #[test]
    fn queries_see_the_association_types_that_have_adjacency() {
        let text = r#"
            [object.person]
            [association.friend]
            symmetric = true
            [association.likes]
            inverse = "liked_by"
            [association.liked_by]
            [association.seen]
            adjacency = false
            [association.rates]
        "#;
        let declared: DeclaredTypes = text.parse().expect("the text is valid");
        let types = GraphTypes::new(7, &declared).expect("it declares a graph");
        let kinds = schema_of(&types).kinds.into_iter();
        let seen: BTreeSet<_> = kinds.map(|kind| (kind.name, kind.role, kind.one_sided)).collect();
        let directed = |name: &str, one_sided| (name.to_owned(), KindRole::Directed, one_sided);
        let expected = [
            ("friend".to_owned(), KindRole::Undirected, false),
            directed("likes", false),
            directed("liked_by", false),
            directed("rates", true),
        ];
        assert_eq!(seen, BTreeSet::from(expected));
    }

    #[test]
    fn in_an_open_graph_queries_may_name_types_that_do_not_exist() {
        let seen = "[association.seen]\nopen = true\nadjacency = false\n";
        let one_sided = |text: &str, name: &str| {
            let declared: DeclaredTypes = text.parse().expect("the text is valid");
            let types = GraphTypes::new(7, &declared).expect("it declares a graph");
            let schema = schema_of(&types);
            assert_eq!(*schema_for(&schema, &types, "~seen"), schema);
            schema_for(&schema, &types, name).kind(name).map(|kind| kind.one_sided)
        };
        assert_eq!(one_sided(&format!("open = true\n{seen}"), "late"), Some(false));
        assert_eq!(one_sided(&format!("open = true\n{seen}"), "seen"), None, "it exists without adjacency");
        assert_eq!(one_sided(seen, "late"), None, "the graph is not open");
    }

    #[test]
    fn leaders_survive_their_document() {
        let leader = |node, term| Some(Leader { node: NodeId(node), term: Term(term) });
        let leaders = Leaders { term_last: Term(9), by_partition: vec![leader(3, 9), None, leader(0, 1)] };
        assert_eq!(leaders_of(&leaders_document("social", &leaders)), leaders);
    }
}
