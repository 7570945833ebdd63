//! Queries and answers on the wire.

use super::{ConvertError, direction_from_wire, direction_to_wire, workflow_from_wire, workflow_to_wire};
use crate::{
    CacheMode, GraphAnswer, GraphQuery, Operation, Page, Proofs, QueryAnswer, QueryError, QueryOptions,
    Question, Request, ServedGraph, ServedState, merged_tickets, parse_hedging,
};
use kith_schema::live::Ticket;
use kith_types::FanOutLimits;
use kith_wire::v1::{self, query_reply::Answer};
use std::time::Duration;

/// Encodes a query.
pub fn query_to_wire(graph: &str, query: &GraphQuery, options: &QueryOptions) -> v1::QueryRequest {
    let options = v1::QueryOptions {
        edge_type: query.edge_type.clone().unwrap_or_default(),
        direction: direction_to_wire(query.direction),
        workflow: workflow_to_wire(query.workflow),
        ..options_to_wire(options)
    };
    v1::QueryRequest {
        graph: graph.to_owned(),
        options: Some(options),
        operand: Some(query.operation.to_message()),
    }
}

/// Encodes options, except those that belong to a query of a graph.
pub(super) fn options_to_wire(options: &QueryOptions) -> v1::QueryOptions {
    v1::QueryOptions {
        workflow: workflow_to_wire(options.workflow),
        fan_out: options.fan_out.to_string(),
        policy: options.policy.clone().unwrap_or_default(),
        cache: cache_to_wire(options.cache),
        hedge: options.hedging.map_or_else(String::new, |hedging| hedging.name().to_owned()),
        deadline_ms: options
            .deadline
            // 0 stands for no deadline.
            .map_or(0, |deadline| u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX).max(1)),
        profile: options.profile,
        partial: options.partial,
        page: page_to_wire(options.page),
        trace_id: options.trace_id.clone(),
        proofs: match options.proofs {
            Proofs::Here => v1::Proofs::None,
            Proofs::There => v1::Proofs::Unchecked,
            Proofs::Everywhere => v1::Proofs::Checked,
        }
        .into(),
        forwarded: options.forwarded,
        tickets: options.ticket.iter().map(Ticket::to_string).collect(),
        critical: options.critical,
        group: options.group,
        ..Default::default()
    }
}

/// Decodes a query.
///
/// # Errors
/// [`QueryError::Unsupported`] if it has no operand that this release knows; [`QueryError::BadRequest`] if a field is
/// invalid.
pub fn query_from_wire(wire: v1::QueryRequest) -> Result<Request, QueryError> {
    let convert = |error: ConvertError| QueryError::BadRequest { detail: error.to_string() };
    let options = wire.options.unwrap_or_default();
    let unknown = || "the query has no operand that this release knows".to_owned();
    let operand = wire.operand.ok_or_else(|| QueryError::Unsupported { detail: unknown() })?;
    let query = GraphQuery {
        operation: Operation::from_message(operand).map_err(convert)?,
        edge_type: (!options.edge_type.is_empty()).then(|| options.edge_type.clone()),
        direction: direction_from_wire(options.direction).map_err(convert)?,
        workflow: workflow_from_wire(options.workflow).map_err(convert)?,
    };
    Ok(Request {
        question: Question::Graph { graph: wire.graph, query },
        options: options_from_wire(options)?,
    })
}

/// Decodes the options of any question.
///
/// # Errors
/// [`QueryError::BadRequest`] if a field is invalid.
pub(super) fn options_from_wire(options: v1::QueryOptions) -> Result<QueryOptions, QueryError> {
    let bad = |detail: String| QueryError::BadRequest { detail };
    let convert = |error: ConvertError| QueryError::BadRequest { detail: error.to_string() };
    let fan_out =
        options.fan_out.parse::<FanOutLimits>().map_err(|error| bad(format!("fan_out: {error}")))?;
    let hedging = Some(options.hedge.as_str()).filter(|text| !text.is_empty()).map(parse_hedging);
    let hedging = hedging
        .transpose()
        .map_err(|text| bad(format!("hedge must be one of on, table, off, not {text:?}")))?;
    Ok(QueryOptions {
        fan_out,
        hedging,
        policy: (!options.policy.is_empty()).then_some(options.policy),
        cache: cache_from_wire(options.cache).map_err(convert)?,
        deadline: (options.deadline_ms != 0).then(|| Duration::from_millis(options.deadline_ms.into())),
        profile: options.profile,
        partial: options.partial,
        workflow: workflow_from_wire(options.workflow).map_err(convert)?,
        page: options.page.map(page_from_wire).unwrap_or_default(),
        trace_id: options.trace_id,
        proofs: match v1::Proofs::try_from(options.proofs) {
            Ok(v1::Proofs::None) => Proofs::Here,
            Ok(v1::Proofs::Unchecked) => Proofs::There,
            Ok(v1::Proofs::Checked) => Proofs::Everywhere,
            Err(_) => {
                return Err(bad(format!("proofs {} is not a known way to check values", options.proofs)));
            }
        },
        forwarded: options.forwarded,
        door: None,
        ticket: merged_tickets(&options.tickets)?,
        critical: options.critical,
        group: options.group,
        early: None,
    })
}

fn page_to_wire(page: Page) -> Option<v1::Page> {
    (page != Page::default()).then_some(v1::Page { after: page.after, limit: page.limit })
}

fn page_from_wire(wire: v1::Page) -> Page {
    Page { after: wire.after, limit: wire.limit }
}

fn cache_to_wire(cache: CacheMode) -> i32 {
    match cache {
        CacheMode::Use => v1::CacheMode::Use.into(),
        CacheMode::Bypass => v1::CacheMode::Bypass.into(),
        CacheMode::Refresh => v1::CacheMode::Refresh.into(),
    }
}

fn cache_from_wire(got: i32) -> Result<CacheMode, ConvertError> {
    match v1::CacheMode::try_from(got) {
        Ok(v1::CacheMode::Use) => Ok(CacheMode::Use),
        Ok(v1::CacheMode::Bypass) => Ok(CacheMode::Bypass),
        Ok(v1::CacheMode::Refresh) => Ok(CacheMode::Refresh),
        Err(_) => Err(ConvertError::Unknown { field: "cache", got }),
    }
}

/// Encodes a whole answer with its accompanying data.
pub fn answered_to_wire(answered: QueryAnswer) -> v1::QueryReply {
    v1::QueryReply {
        answer: Some(answer_to_wire(&answered.answer)),
        complete: answered.complete,
        missing_partitions: answered.missing_partitions,
        profile: answered.profile,
        served: answered.served.into_iter().map(state_to_wire).collect(),
    }
}

/// Decodes an answer with its accompanying data. The pieces of a stream must have been joined.
///
/// # Errors
/// [`QueryError::Internal`] if it is missing or malformed.
pub fn answered_from_wire(reply: v1::QueryReply, ids_wanted: bool) -> Result<QueryAnswer, QueryError> {
    let malformed = |detail: String| QueryError::Internal { detail };
    let answer = reply.answer.ok_or_else(|| malformed("the router sent no answer".to_owned()))?;
    Ok(QueryAnswer {
        answer: answer_from_wire(answer, ids_wanted).map_err(|error| malformed(error.to_string()))?,
        complete: reply.complete,
        missing_partitions: reply.missing_partitions,
        served: reply.served.into_iter().map(state_from_wire).collect::<Result<_, _>>()?,
        profile: reply.profile,
    })
}

pub(super) fn state_to_wire(served: ServedGraph) -> v1::Served {
    let (version, ticket) = match served.state {
        ServedState::Version(version) => (version, Vec::new()),
        ServedState::Live(ticket) => (0, ticket.to_bytes()),
    };
    v1::Served { name: served.name, version, ticket: ticket.into() }
}

pub(super) fn state_from_wire(served: v1::Served) -> Result<ServedGraph, QueryError> {
    let state = match served.ticket.is_empty() {
        true => ServedState::Version(served.version),
        false => ServedState::Live(
            Ticket::from_bytes(&served.ticket)
                .map_err(|error| QueryError::Internal { detail: error.to_string() })?,
        ),
    };
    Ok(ServedGraph { name: served.name, state })
}

/// Encodes a whole answer.
pub fn answer_to_wire(answer: &GraphAnswer) -> Answer {
    answer.to_message()
}

/// Decodes an answer. The pieces of a stream must have been joined.
///
/// # Errors
/// If it is malformed.
pub fn answer_from_wire(wire: Answer, ids_wanted: bool) -> Result<GraphAnswer, ConvertError> {
    GraphAnswer::from_message(wire, ids_wanted)
}
