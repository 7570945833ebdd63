//! Queries and answers on the wire.

use super::{
    ConvertError, direction_from_wire, direction_to_wire, edges, live, workflow_from_wire, workflow_to_wire,
};
use crate::{
    Answered, CacheMode, CommonAnswer, CommonPlan, GraphAnswer, GraphQuery, NetworkAnswer, Operand, Page,
    PathAnswer, Proofs, QueryError, QueryOptions, Question, Request, Served, ServedState, Want,
    merged_tickets, parse_hedging,
};
use kith_live::Ticket;
use kith_operators::{Network, NetworkSizes, sets};
use kith_routing::FanOutLimits;
use kith_wire::v1::{self, common_reply, query_reply::Answer, query_request::Operand as Wire};
use std::{sync::Arc, time::Duration};

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
        operand: Some(operand_to_wire(&query.operand)),
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

fn operand_to_wire(operand: &Operand) -> Wire {
    match operand {
        Operand::Connections { id } => Wire::Connections(v1::ConnectionsOperand { id: *id }),
        Operand::Entities { id, kind } => Wire::Entities(v1::EntitiesOperand { id: *id, kind: kind.clone() }),
        Operand::Members { kind, entity } => {
            Wire::Members(v1::MembersOperand { kind: kind.clone(), entity: *entity })
        }
        Operand::Network { id, want } => {
            Wire::Network(v1::NetworkOperand { id: *id, want: want_to_wire(*want) })
        }
        Operand::Distance { from, to } => Wire::Distance(v1::DistanceOperand { from: *from, to: to.clone() }),
        Operand::Path { from, to, max } => Wire::Path(v1::PathOperand { from: *from, to: *to, max: *max }),
        Operand::Common { id, to, kind, want, plan } => Wire::Common(v1::CommonOperand {
            id: *id,
            to: *to,
            kind: kind.clone().unwrap_or_default(),
            want: want_to_wire(*want),
            plan: match plan {
                CommonPlan::Auto => v1::CommonPlan::PlanAuto.into(),
                CommonPlan::Fetch => v1::CommonPlan::Fetch.into(),
                CommonPlan::Push => v1::CommonPlan::Push.into(),
            },
        }),
        Operand::Degree { ids, filter } => Wire::Degree(v1::DegreeOperand {
            ids: ids.clone(),
            filter: filter.as_ref().map(edges::filter_to_wire),
        }),
        Operand::Edges(query) => Wire::Edges(edges::query_to_wire(query)),
        Operand::Objects { ids, is_single } => {
            Wire::Objects(v1::ObjectsOperand { ids: ids.clone(), is_single: *is_single })
        }
        Operand::Find(find) => Wire::Find(live::find_to_wire(find)),
        Operand::Associations { id1, read } => {
            Wire::Associations(v1::AssociationsOperand { id1: *id1, read: Some(live::read_to_wire(read)) })
        }
        Operand::Suggest { id, k } => Wire::Suggest(v1::SuggestOperand { id: *id, k: *k }),
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
        operand: operand_from_wire(operand).map_err(convert)?,
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

fn operand_from_wire(wire: Wire) -> Result<Operand, ConvertError> {
    Ok(match wire {
        Wire::Connections(operand) => Operand::Connections { id: operand.id },
        Wire::Entities(operand) => Operand::Entities { id: operand.id, kind: operand.kind },
        Wire::Members(operand) => Operand::Members { kind: operand.kind, entity: operand.entity },
        Wire::Network(operand) => Operand::Network { id: operand.id, want: want_from_wire(operand.want)? },
        Wire::Distance(operand) => Operand::Distance { from: operand.from, to: operand.to },
        Wire::Path(operand) => Operand::Path { from: operand.from, to: operand.to, max: operand.max },
        Wire::Common(operand) => Operand::Common {
            id: operand.id,
            to: operand.to,
            kind: (!operand.kind.is_empty()).then_some(operand.kind),
            want: want_from_wire(operand.want)?,
            plan: match v1::CommonPlan::try_from(operand.plan) {
                Ok(v1::CommonPlan::PlanAuto) => CommonPlan::Auto,
                Ok(v1::CommonPlan::Fetch) => CommonPlan::Fetch,
                Ok(v1::CommonPlan::Push) => CommonPlan::Push,
                Err(_) => return Err(ConvertError::Unknown { field: "plan", got: operand.plan }),
            },
        },
        Wire::Degree(operand) => {
            let filter = operand.filter.map(edges::filter_from_wire).transpose()?;
            Operand::Degree { ids: operand.ids, filter }
        }
        Wire::Edges(operand) => Operand::Edges(edges::query_from_wire(operand)?),
        Wire::Objects(operand) => Operand::Objects { ids: operand.ids, is_single: operand.is_single },
        Wire::Find(find) => Operand::Find(live::find_from_wire(find)),
        Wire::Associations(operand) => {
            let read = operand.read.ok_or(ConvertError::Missing("associations.read"))?;
            Operand::Associations { id1: operand.id1, read: live::read_from_wire(&read)? }
        }
        Wire::Suggest(operand) => Operand::Suggest { id: operand.id, k: operand.k },
    })
}

fn page_to_wire(page: Page) -> Option<v1::Page> {
    (page != Page::default()).then_some(v1::Page { after: page.after, limit: page.limit })
}

fn page_from_wire(wire: v1::Page) -> Page {
    Page { after: wire.after, limit: wire.limit }
}

fn want_to_wire(want: Want) -> i32 {
    match want {
        Want::Size => v1::Want::Size.into(),
        Want::Ids => v1::Want::Ids.into(),
        Want::Exists => v1::Want::Exists.into(),
    }
}

fn want_from_wire(got: i32) -> Result<Want, ConvertError> {
    match v1::Want::try_from(got) {
        Ok(v1::Want::Size) => Ok(Want::Size),
        Ok(v1::Want::Ids) => Ok(Want::Ids),
        Ok(v1::Want::Exists) => Ok(Want::Exists),
        Err(_) => Err(ConvertError::Unknown { field: "want", got }),
    }
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
pub fn answered_to_wire(answered: Answered) -> v1::QueryReply {
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
pub fn answered_from_wire(reply: v1::QueryReply, ids_wanted: bool) -> Result<Answered, QueryError> {
    let malformed = |detail: String| QueryError::Internal { detail };
    let answer = reply.answer.ok_or_else(|| malformed("the router sent no answer".to_owned()))?;
    Ok(Answered {
        answer: answer_from_wire(answer, ids_wanted).map_err(|error| malformed(error.to_string()))?,
        complete: reply.complete,
        missing_partitions: reply.missing_partitions,
        served: reply.served.into_iter().map(state_from_wire).collect::<Result<_, _>>()?,
        profile: reply.profile,
    })
}

pub(super) fn state_to_wire(served: Served) -> v1::Served {
    let (version, ticket) = match served.state {
        ServedState::Version(version) => (version, Vec::new()),
        ServedState::Live(ticket) => (0, ticket.to_bytes()),
    };
    v1::Served { name: served.name, version, ticket: ticket.into() }
}

pub(super) fn state_from_wire(served: v1::Served) -> Result<Served, QueryError> {
    let state = match served.ticket.is_empty() {
        true => ServedState::Version(served.version),
        false => ServedState::Live(
            Ticket::from_bytes(&served.ticket)
                .map_err(|error| QueryError::Internal { detail: error.to_string() })?,
        ),
    };
    Ok(Served { name: served.name, state })
}

/// Encodes a whole answer.
pub fn answer_to_wire(answer: &GraphAnswer) -> Answer {
    match answer {
        GraphAnswer::Ids(ids) => Answer::Ids(v1::IdSet { ids: ids.clone() }),
        GraphAnswer::Network(network) => Answer::Network(network_to_wire(network)),
        GraphAnswer::Distances(distances) => {
            let distances = distances.iter().map(|distance| distance.map_or(-1, i32::from));
            Answer::Distances(v1::Distances { distances: distances.collect() })
        }
        GraphAnswer::Degrees(degrees) => {
            let degrees = degrees.iter().map(|degree| degree.map_or(0, |degree| degree.saturating_add(1)));
            Answer::Degrees(v1::Degrees { degrees: degrees.collect() })
        }
        GraphAnswer::Edges(answer) => Answer::Edges(edges::answer_to_wire(answer)),
        GraphAnswer::Object(object) => Answer::Object(live::object_to_wire(object.as_ref())),
        GraphAnswer::Objects(objects) => Answer::Objects(live::objects_to_wire(objects)),
        GraphAnswer::AssociationCount(count) => {
            Answer::AssociationCount(v1::AssociationCount { count: *count })
        }
        GraphAnswer::Associations(answer) => Answer::Associations(live::associations_to_wire(answer)),
        GraphAnswer::Path(path) => Answer::Path(v1::PathReply { members: path.members.clone() }),
        GraphAnswer::Common(common) => {
            let result = match common {
                CommonAnswer::Ids(ids) => common_reply::Result::Ids(v1::IdSet { ids: ids.clone() }),
                CommonAnswer::Size(size) => common_reply::Result::Size(*size),
                CommonAnswer::Exists(exists) => common_reply::Result::Exists(*exists),
            };
            Answer::Common(v1::CommonReply { result: Some(result) })
        }
        GraphAnswer::Suggestions(suggestions) => {
            let (ids, common) = suggestions.iter().copied().unzip();
            Answer::Suggestions(v1::Suggestions { ids, common })
        }
    }
}

fn network_to_wire(answer: &NetworkAnswer) -> v1::NetworkReply {
    let NetworkSizes { first, second, union } = answer.sizes;
    let net = answer.sizes.network();
    let mut reply =
        v1::NetworkReply { id: answer.id, degree: first, n2: second, net, fof: union, ..Default::default() };
    if let Some(network) = &answer.network {
        reply.first = network.first().to_vec();
        reply.second = network.second().collect();
        let near = network.union().iter().filter(|&id| network.distance(id) != Some(2));
        reply.fof_near = near.collect();
    }
    reply
}

/// Decodes an answer. The pieces of a stream must have been joined.
///
/// # Errors
/// If it is missing or malformed.
pub fn answer_from_wire(wire: Answer, ids_wanted: bool) -> Result<GraphAnswer, ConvertError> {
    Ok(match wire {
        Answer::Ids(set) => GraphAnswer::Ids(set.ids),
        Answer::Network(reply) => GraphAnswer::Network(network_from_wire(reply, ids_wanted)),
        Answer::Distances(distances) => {
            let distances = distances.distances.into_iter().map(|distance| u8::try_from(distance).ok());
            GraphAnswer::Distances(distances.collect())
        }
        Answer::Degrees(degrees) => {
            let degrees = degrees.degrees.into_iter().map(|degree| degree.checked_sub(1));
            GraphAnswer::Degrees(degrees.collect())
        }
        Answer::Edges(answer) => GraphAnswer::Edges(edges::answer_from_wire(answer)?),
        Answer::Object(object) => GraphAnswer::Object(live::object_from_wire(object)),
        Answer::Objects(objects) => GraphAnswer::Objects(live::objects_from_wire(objects)),
        Answer::AssociationCount(wire) => GraphAnswer::AssociationCount(wire.count),
        Answer::Associations(answer) => GraphAnswer::Associations(live::associations_from_wire(answer)?),
        Answer::Path(path) => GraphAnswer::Path(PathAnswer { members: path.members }),
        Answer::Common(common) => {
            GraphAnswer::Common(match common.result.ok_or(ConvertError::Missing("common.result"))? {
                common_reply::Result::Ids(set) => CommonAnswer::Ids(set.ids),
                common_reply::Result::Size(size) => CommonAnswer::Size(size),
                common_reply::Result::Exists(exists) => CommonAnswer::Exists(exists),
            })
        }
        Answer::Suggestions(suggestions) => {
            GraphAnswer::Suggestions(suggestions.ids.into_iter().zip(suggestions.common).collect())
        }
    })
}

fn network_from_wire(reply: v1::NetworkReply, ids_wanted: bool) -> NetworkAnswer {
    let sizes = NetworkSizes { first: reply.degree, second: reply.n2, union: reply.fof };
    let network = ids_wanted.then(|| {
        let mut union = Vec::new();
        sets::merge(&[&reply.second, &reply.fof_near], &mut sets::Scratch::new(), &mut union);
        Arc::new(Network::new(reply.id, reply.first, &union))
    });
    NetworkAnswer { id: reply.id, sizes, network }
}
