//! Traversals in Gremlin.

use super::query::{options_from_wire, options_to_wire, state_from_wire, state_to_wire};
use crate::{GremlinAnswer, GremlinQuery, GremlinTraversal, QueryError, QueryOptions, Question, Request};
use kith_wire::v1::{self, gremlin_request::Traversal as Wire};

/// Encodes a traversal.
///
/// # Errors
/// [`QueryError::BadRequest`] if it nests too deep to be coded.
pub fn gremlin_to_wire(
    graph: &str,
    query: &GremlinQuery,
    options: &QueryOptions,
) -> Result<v1::GremlinRequest, QueryError> {
    let traversal = match query.traversal.clone() {
        GremlinTraversal::Text { text, bindings } => Wire::Text(v1::GremlinText { text, bindings }),
        GremlinTraversal::Bytecode(bytes) => Wire::Bytecode(bytes),
        GremlinTraversal::Decoded(traversal) => Wire::Bytecode(traversal.encode()?),
    };
    Ok(v1::GremlinRequest {
        graph: graph.to_owned(),
        options: Some(options_to_wire(options)),
        with_properties: query.with_properties,
        explain: query.is_explained,
        writes: query.writes,
        traversal: Some(traversal),
    })
}

/// Decodes a traversal.
///
/// # Errors
/// [`QueryError::Unsupported`] if there is none that this release knows; [`QueryError::BadRequest`] if an option is malformed.
pub fn gremlin_from_wire(wire: v1::GremlinRequest) -> Result<Request, QueryError> {
    let unknown = || QueryError::Unsupported {
        detail: "the request has no traversal in a form that this release knows".to_owned(),
    };
    let traversal = match wire.traversal.ok_or_else(unknown)? {
        Wire::Text(v1::GremlinText { text, bindings }) => GremlinTraversal::Text { text, bindings },
        Wire::Bytecode(bytes) => GremlinTraversal::Bytecode(bytes),
    };
    let query = GremlinQuery {
        traversal,
        with_properties: wire.with_properties,
        is_explained: wire.explain,
        writes: wire.writes,
    };
    Ok(Request {
        question: Question::Gremlin { graph: wire.graph, query },
        options: options_from_wire(wire.options.unwrap_or_default())?,
    })
}

/// Encodes the results of a traversal.
pub fn gremlin_answer_to_wire(answer: GremlinAnswer) -> v1::GremlinReply {
    let GremlinAnswer { results, served, profile, metrics, wrote, warnings } = answer;
    v1::GremlinReply {
        results,
        served: Some(state_to_wire(served)),
        profile,
        metrics: metrics.unwrap_or_default(),
        wrote,
        warnings,
    }
}

/// Decodes the results of a traversal.
///
/// # Errors
/// [`QueryError::Internal`] if the state that answered is missing or malformed.
pub fn gremlin_answer_from_wire(reply: v1::GremlinReply) -> Result<GremlinAnswer, QueryError> {
    let missing =
        || QueryError::Internal { detail: "the router sent no version with its results".to_owned() };
    let served = state_from_wire(reply.served.ok_or_else(missing)?)?;
    let metrics = Some(reply.metrics).filter(|metrics| !metrics.is_empty());
    let v1::GremlinReply { results, profile, wrote, warnings, .. } = reply;
    Ok(GremlinAnswer { results, served, profile, metrics, wrote, warnings })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ServedGraph, ServedState};
    use bytes::Bytes;

    #[test]
    fn traversals_come_back_as_they_went() {
        let text = GremlinTraversal::Text { text: "g.V()".to_owned(), bindings: Bytes::from_static(b"b") };
        for traversal in [text, GremlinTraversal::Bytecode(Bytes::from_static(b"code"))] {
            let writes = matches!(traversal, GremlinTraversal::Bytecode(_));
            let query = GremlinQuery { traversal, with_properties: true, is_explained: true, writes };
            let options = QueryOptions { partial: true, ..QueryOptions::default() };
            let wire = gremlin_to_wire("people", &query, &options).expect("it is coded");
            let question = Question::Gremlin { graph: "people".to_owned(), query };
            assert_eq!(gremlin_from_wire(wire), Ok(Request { question, options }));
        }
        let refused = gremlin_from_wire(v1::GremlinRequest::default()).unwrap_err();
        assert_eq!(refused.code().name(), "unsupported_operation");
    }

    #[test]
    fn results_come_back_as_they_went() {
        let served = ServedGraph { name: "people".to_owned(), state: ServedState::Version(7) };
        let (results, warnings) = (Bytes::from_static(b"results"), vec!["beware".to_owned()]);
        let answer = GremlinAnswer { results, served, profile: None, metrics: None, wrote: true, warnings };
        assert_eq!(gremlin_answer_from_wire(gremlin_answer_to_wire(answer.clone())), Ok(answer));
        assert!(gremlin_answer_from_wire(v1::GremlinReply::default()).is_err());
    }
}
