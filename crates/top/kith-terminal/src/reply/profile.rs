//! The plan of a query and its timings, as JSON.

use kith_wire::v1;
use serde::Serialize;

/// The plan of a query, with timings if the query was run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileReply {
    pub requests: u32,
    pub groups: u32,
    pub nodes: u32,
    pub total_us: u64,
    /// Hedge requests, which the counts above do not include.
    pub hedges: u32,
    /// The time for which the router has been unable to reach the metadata store; omitted if it can reach it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_age_ms: Option<u64>,
    pub cache: String,
    pub rounds: Vec<RoundReply>,
}

/// One fan-out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundReply {
    pub name: String,
    pub kind: String,
    /// The name of the controller, or `the caller`.
    pub controller: String,
    /// The selector by which the settings chose the controller. Omitted if the controller is the default for the kind, or if
    /// the caller decided.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selector: String,
    pub policy: String,
    /// `groups_asked`, limited to the range from 1 to the number of groups.
    pub groups_allowed: u32,
    pub groups_asked: u32,
    pub keys: u64,
    pub start_us: u64,
    pub took_us: u64,
    pub merged_ids: u64,
    pub busiest_over_mean: f64,
    pub ended_early: bool,
    /// The inputs of the controller's decision; omitted if they were not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<InputsReply>,
    pub requests: Vec<RequestReply>,
}

/// The inputs of a controller's decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InputsReply {
    /// The controller with its parameters; omitted if the caller decided.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub controller: String,
    pub operation: String,
    pub workflow: String,
    pub groups: u32,
    pub nodes_per_group: u32,
    pub kind_fan_outs_per_second: f64,
    pub kind_requests_per_second: f64,
    pub client_requests_per_second: f64,
    pub clients: u32,
    pub node_requests_per_second: f64,
    /// The share of fan-outs that ended early; omitted until the first early-terminable one has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_share: Option<f64>,
}

/// One request to one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestReply {
    pub node: u32,
    pub group: u32,
    pub keys: u64,
    pub start_us: u64,
    pub took_us: u64,
    pub service_us: u64,
    pub reply_bytes: u64,
    pub outcome: String,
    pub attempt: u32,
    /// `plan`, `retry` or `hedge`.
    pub cause: String,
    /// Whether the answer was used for at least one key.
    pub won: bool,
}

/// The plan of a query that was not run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainReply {
    pub plan: ProfileReply,
    pub notes: Vec<String>,
}

impl From<v1::ExplainReply> for ExplainReply {
    fn from(wire: v1::ExplainReply) -> Self {
        Self { plan: ProfileReply::from(&wire.plan.unwrap_or_default()), notes: wire.notes }
    }
}

impl From<&v1::Profile> for ProfileReply {
    fn from(wire: &v1::Profile) -> Self {
        Self {
            requests: wire.requests,
            groups: wire.groups,
            nodes: wire.nodes,
            total_us: wire.total_us,
            hedges: wire.hedges,
            metadata_age_ms: Some(wire.metadata_age_ms).filter(|age| *age != 0),
            cache: wire.cache.clone(),
            rounds: wire.rounds.iter().map(RoundReply::from).collect(),
        }
    }
}

impl From<&v1::RoundProfile> for RoundReply {
    fn from(wire: &v1::RoundProfile) -> Self {
        Self {
            name: wire.name.clone(),
            kind: wire.kind.clone(),
            controller: wire.controller.clone(),
            selector: wire.selector.clone(),
            policy: wire.policy.clone(),
            groups_allowed: wire.groups_allowed,
            groups_asked: wire.groups_asked,
            keys: wire.keys,
            start_us: wire.start_us,
            took_us: wire.took_us,
            merged_ids: wire.merged_ids,
            busiest_over_mean: thousandths(wire.busiest_over_mean),
            ended_early: wire.ended_early,
            inputs: wire.inputs.as_ref().map(InputsReply::from),
            requests: wire.requests.iter().map(RequestReply::from).collect(),
        }
    }
}

impl From<&v1::ControllerInputs> for InputsReply {
    fn from(wire: &v1::ControllerInputs) -> Self {
        Self {
            controller: wire.controller.clone(),
            operation: wire.operation.clone(),
            workflow: wire.workflow.clone(),
            groups: wire.groups,
            nodes_per_group: wire.nodes_per_group,
            kind_fan_outs_per_second: thousandths(wire.kind_fan_outs_per_second),
            kind_requests_per_second: thousandths(wire.kind_requests_per_second),
            client_requests_per_second: thousandths(wire.client_requests_per_second),
            clients: wire.clients,
            node_requests_per_second: thousandths(wire.node_requests_per_second),
            termination_share: wire.termination_share.map(thousandths),
        }
    }
}

/// Rounds to three decimal places.
fn thousandths(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

impl From<&v1::RequestProfile> for RequestReply {
    fn from(wire: &v1::RequestProfile) -> Self {
        Self {
            node: wire.node,
            group: wire.group,
            keys: wire.keys,
            start_us: wire.start_us,
            took_us: wire.took_us,
            service_us: wire.service_us,
            reply_bytes: wire.reply_bytes,
            outcome: wire.outcome.clone(),
            attempt: wire.attempt,
            cause: wire.cause.clone(),
            won: wire.won,
        }
    }
}
