//! Explains the plan of a query without the cost of running it. Single-key look-ups are run, because later steps depend on
//! them; the first fan-out to many keys is planned but not run; the rest is outlined.

use crate::{Session, session::check_live};
use kith_query::{FanOut, GraphQuery, Input, OperationStep, Outline, QueryError, QueryMachine, QueryOptions};
use kith_types::{FanOutKind, Workflow};
use kith_wire::v1;

pub(crate) async fn explain(
    session: &Session,
    graph: &str,
    query: &GraphQuery,
    options: &QueryOptions,
) -> Result<v1::ExplainReply, QueryError> {
    let options = QueryOptions { profile: true, ..options.clone() };
    let (mut run, graph) = session.begin(graph, query.operation.name(), &options)?;
    check_live(&graph, query)?;
    let mut machine = QueryMachine::new(query, &graph.schema_for(query.edge_type.as_deref()))?;
    let mut notes = outline(&machine, &options);
    let mut input = Input::Start;
    let planned = loop {
        match machine.step(input)? {
            OperationStep::Done(_) => break None,
            OperationStep::Network(key) => {
                notes.push(format!(
                    "the network of member {} comes from the router's cache if it is there",
                    key.id
                ));
                let plan = run.network_plan(&key);
                machine = QueryMachine::network(key, options.workflow, plan);
                input = Input::Start;
            }
            OperationStep::FanOut(fan_out) => {
                let planned = run.plan(&fan_out)?;
                if planned.kind != FanOutKind::SingleKey {
                    break Some((fan_out, planned));
                }
                input = Input::Value(run.round(&fan_out).await?);
            }
        }
    };
    let mut plan = run.into_trace();
    if let Some((fan_out, planned)) = planned {
        plan.round(planned_round(&fan_out, &planned, session));
    }
    Ok(v1::ExplainReply { plan: Some(plan.profile(std::time::Instant::now())), notes })
}

/// A fan-out that is planned and will not be run, for the profile.
pub(crate) fn planned_round(
    fan_out: &FanOut,
    planned: &crate::executor::PlannedFanOut,
    session: &Session,
) -> v1::RoundProfile {
    let mut round = planned.profile();
    round.name = format!("{} (planned, not run)", fan_out.purpose);
    round.requests = planned.requests(&session.topology());
    round
}

fn outline(machine: &QueryMachine, options: &QueryOptions) -> Vec<String> {
    let workflow = match options.workflow {
        Workflow::Interactive => "",
        Workflow::Background => ", nobody waits",
    };
    let line = |(index, step): (usize, &Outline)| {
        let kind = step.kind.map_or("network", FanOutKind::name);
        let when = if step.when.is_empty() { String::new() } else { format!(", {}", step.when) };
        format!("step {}: {} ({kind}{workflow}) to {}{when}", index + 1, step.purpose, step.reach)
    };
    machine.outline().iter().enumerate().map(line).collect()
}
