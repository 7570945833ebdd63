//! Live graphs in a topology, as queries see them.

use kith_live::{AssociationType, GraphTypes, Inverse};
use kith_routing::Leaders;
use kith_schema::{GraphSchema, KindRole, KindSchema};
use kith_types::StoreVersion;
use std::{borrow::Cow, sync::Arc};

/// The properties that only a live graph has.
#[derive(Debug)]
pub struct LiveGraph {
    /// The types of its objects and associations.
    pub types: Arc<GraphTypes>,
    /// The leaders of its partitions.
    pub leaders: Leaders,
}

/// The schema that queries see: association types with adjacency, in the order of their numbers.
pub(super) fn schema_of(types: &GraphTypes) -> GraphSchema {
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
}
