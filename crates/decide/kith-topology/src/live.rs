//! The identities and leaders of live graphs, which are known without their types.

use kith_routing::{Leader, Leaders};
use kith_types::{NodeId, Term};
use kith_wire::documents::{DOCUMENT_FORMAT, LeadersDocument, TypesReference};

/// Reads the identity of a graph in the reference to its types.
///
/// # Errors
/// If it is not a hexadecimal number.
pub fn identity_of(reference: &TypesReference) -> Result<u64, String> {
    u64::from_str_radix(&reference.identity, 16)
        .map_err(|_| format!("the identity {:?} is not a hexadecimal number", reference.identity))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaders_survive_their_document() {
        let leader = |node, term| Some(Leader { node: NodeId(node), term: Term(term) });
        let leaders = Leaders { term_last: Term(9), by_partition: vec![leader(3, 9), None, leader(0, 1)] };
        assert_eq!(leaders_of(&leaders_document("social", &leaders)), leaders);
    }
}
