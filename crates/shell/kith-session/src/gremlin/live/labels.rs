//! The choice of the association lists that a hop reads.

use kith_gremlin::value::Direction;
use kith_live::{AssociationType, GraphTypes, Inverse, TypeId};
use kith_query::QueryError;
use kith_types::ErrorCode;
use std::sync::Arc;

/// A list that a hop reads of each vertex.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'t> {
    /// The type of the associations in the list.
    pub kind: &'t AssociationType,
    /// The label of the edges: the name of the type, or of the type whose inverse it is.
    pub label: &'t str,
    /// Whether the edges begin at the vertices whose lists are read.
    pub is_out: bool,
}

impl List<'_> {
    /// Whether the edges can have properties.
    pub fn has_fields(&self) -> bool {
        self.kind.has_fields()
    }
}

/// Whether the name of an association type is a label of edges. An inverse type is not: its associations are the edges of the
/// forward type, seen from the other end.
fn is_label(kind: &AssociationType) -> bool {
    !matches!(kind.inverse, Inverse::Named { forward: false, .. })
}

/// The association type whose associations are the edges with a label; `None` if the graph has none.
///
/// # Errors
/// The label is the name of an inverse type.
pub(super) fn labelled<'t>(
    types: &'t GraphTypes,
    label: &str,
) -> Result<Option<(TypeId, &'t AssociationType)>, QueryError> {
    match types.association(label) {
        Some((_, kind)) if !is_label(kind) => Err(inverse_label(types, kind)),
        found => Ok(found),
    }
}

/// The lists that the edges with these labels are in, of the vertices from which they are followed. Edges of all labels if
/// there are none. Labels that the graph does not have are left out.
///
/// # Errors
/// A label is the name of an inverse type, or the direction of one is not kept.
pub(super) fn lists<'t>(
    types: &'t GraphTypes,
    direction: Direction,
    labels: &[Arc<str>],
) -> Result<Vec<List<'t>>, QueryError> {
    let mut named = Vec::new();
    for label in labels {
        named.extend(labelled(types, label)?);
    }
    if labels.is_empty() {
        named.extend(
            types.associations.iter().filter(|(_, kind)| is_label(kind)).map(|(id, kind)| (*id, kind)),
        );
    }
    named.sort_unstable_by_key(|(id, _)| *id);
    named.dedup_by_key(|(id, _)| *id);
    let mut lists = Vec::with_capacity(named.len());
    let (is_out, is_in) = (direction != Direction::In, direction != Direction::Out);
    for (_, kind) in named {
        let list = |kind: &'t AssociationType, label: &'t AssociationType, is_out| List {
            kind,
            label: &label.name,
            is_out,
        };
        match kind.inverse {
            // `out`, `in` and `both` are the same, and yield each edge once.
            Inverse::Symmetric => lists.push(list(kind, kind, is_out)),
            Inverse::None if is_in => return Err(not_kept(kind, labels.is_empty())),
            Inverse::None => lists.push(list(kind, kind, true)),
            Inverse::Named { kind: inverse, .. } => {
                lists.extend(is_out.then_some(list(kind, kind, true)));
                let inverse = types.associations.get(&inverse).filter(|_| is_in);
                lists.extend(inverse.map(|inverse| list(inverse, kind, false)));
            }
        }
    }
    Ok(lists)
}

/// The lists in which a vertex has its edges, whatever their directions. Edges of one-sided types that lead to the vertex are
/// in none of them.
pub(super) fn all_lists<'t>(types: &'t GraphTypes) -> Vec<List<'t>> {
    let list = |kind: &'t AssociationType| match kind.inverse {
        Inverse::Named { kind: forward, forward: false } => {
            let label = types.associations.get(&forward).map_or(kind.name.as_str(), |it| &it.name);
            List { kind, label, is_out: false }
        }
        _ => List { kind, label: &kind.name, is_out: true },
    };
    types.associations.values().map(list).collect()
}

fn inverse_label(types: &GraphTypes, kind: &AssociationType) -> QueryError {
    let forward = match kind.inverse {
        Inverse::Named { kind, .. } => types.associations.get(&kind).map_or("", |forward| &*forward.name),
        _ => "",
    };
    QueryError::Remote {
        code: ErrorCode::BadRequest,
        message: format!(
            "{:?} is not a label of edges: it is the inverse of {forward:?}, whose edges are followed in both directions",
            kind.name
        ),
        help: format!(
            "follow {forward:?} in the other direction: in({forward:?}) instead of out({:?})",
            kind.name
        ),
    }
}

fn not_kept(kind: &AssociationType, is_unnamed: bool) -> QueryError {
    let help = match is_unnamed {
        true => "name the labels of the edges to follow",
        false => "follow it along out(), or declare an edge type with `inverse` or `symmetric`",
    };
    QueryError::Remote {
        code: ErrorCode::DirectionNotKept,
        message: format!(
            "edges {:?} can only be followed along out(): the type is one-sided, so no list says which edges lead to a vertex",
            kind.name
        ),
        help: format!("{help} (docs/gremlin.md)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_live::DeclaredTypes;

    fn types(text: &str) -> GraphTypes {
        let declared: DeclaredTypes = text.parse().expect("the text is valid");
        GraphTypes::new(7, &declared).expect("it declares a graph")
    }

    fn two_sided() -> GraphTypes {
        types("[association.follows]\ninverse = \"followed_by\"\n[association.friend]\nsymmetric = true\n")
    }

    fn shown(types: &GraphTypes, direction: Direction, labels: &[&str]) -> String {
        let labels: Vec<Arc<str>> = labels.iter().map(|label| Arc::from(*label)).collect();
        match lists(types, direction, &labels) {
            Ok(lists) => {
                let side = |list: &List<'_>| if list.is_out { "out" } else { "in" };
                let mut lists: Vec<_> = lists
                    .iter()
                    .map(|list| format!("{}={}/{}", list.kind.name, list.label, side(list)))
                    .collect();
                lists.sort();
                lists.join(" ")
            }
            Err(error) => format!("! {}: {error} ({})", error.code(), error.help()),
        }
    }

    #[test]
    fn each_edge_is_in_one_list_of_each_of_its_ends() {
        let types = two_sided();
        let cases = [
            (Direction::Out, "follows=follows/out friend=friend/out"),
            (Direction::In, "followed_by=follows/in friend=friend/in"),
            (Direction::Both, "followed_by=follows/in follows=follows/out friend=friend/out"),
        ];
        for (direction, expected) in cases {
            assert_eq!(shown(&types, direction, &[]), expected);
        }
        assert_eq!(shown(&types, Direction::In, &["friend", "nothing", "friend"]), "friend=friend/in");
        assert_eq!(shown(&types, Direction::Out, &["nothing"]), "");
    }

    #[test]
    fn what_is_not_kept_is_an_error() {
        let mut text = "[association.likes]\n".to_owned();
        assert_eq!(shown(&types(&text), Direction::Out, &[]), "likes=likes/out");
        for (direction, labels, part) in [
            (Direction::In, &["likes"][..], "declare"),
            (Direction::Both, &["likes"], "declare"),
            (Direction::In, &[], "name the labels"),
        ] {
            let text = shown(&types(&text), direction, labels);
            assert!(text.starts_with("! direction_not_kept") && text.contains(part), "{text}");
        }
        text.push_str("[association.follows]\ninverse = \"followed_by\"\n");
        assert_eq!(shown(&types(&text), Direction::In, &["follows"]), "followed_by=follows/in");
        let text = shown(&types(&text), Direction::Out, &["followed_by"]);
        assert!(text.starts_with("! bad_request") && text.contains("in(\"follows\")"), "{text}");
    }
}
