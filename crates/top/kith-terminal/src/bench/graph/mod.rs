//! `kith bench graph`: sends the mix of Moolle's evaluation (§V-A) or a query record in an open loop, with settings in
//! turn.

mod flags;
mod report;
mod slices;
mod table;

pub use flags::GraphBenchFlags;
use kith_types::ErrorCode;

use super::{
    population::Population,
    setting::Setting,
    twin,
    workload::{MixOptions, Workload},
};
use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    output::{self, Format},
};
use anyhow::Context;
use kith_client::Service;
use kith_router::RouterSettings;
use slices::{Answers, Slices};
use std::sync::Arc;

/// Runs the benchmark and prints the results.
///
/// # Errors
/// If the cluster, the graph or the record cannot be used.
pub async fn run(target: &TargetFlags, format: Format, flags: &GraphBenchFlags) -> anyhow::Result<Exit> {
    let settings = flags.settings(target.direct)?;
    let (workload, population) = workload(target, flags).await?;
    let services = services(target, flags, &settings).await?;
    let answers = Answers::new(workload.pool.len());
    let mut slices = Slices { flags, settings: &settings, services, workload: Arc::new(workload), answers };
    let rates = slices.run().await;
    let (workload, mut answers) = (slices.workload, slices.answers);
    if let Some(population) = &population {
        for (ask, index) in workload.pool.iter().zip(0..) {
            if answers.is_known(index)
                && let Some(expected) = twin::expected(population, &ask.query.operation)?
            {
                answers.expect(index, expected);
            }
        }
    }
    let report = report::report(flags, &settings, &rates, &answers);
    output::print(format, &report, table::render)?;
    Ok(if report.is_clean() { Exit::Done } else { Exit::Partial })
}

async fn workload(
    target: &TargetFlags,
    flags: &GraphBenchFlags,
) -> anyhow::Result<(Workload, Option<Population>)> {
    if let Some(log) = &flags.log {
        return Ok((Workload::recorded(log)?, None));
    }
    let graph = flags.graph.as_deref().unwrap_or_default();
    let topology = connect::router(target).await?.topology().await.context("read the topology")?;
    let population = Population::open(&topology, graph)?;
    let options = MixOptions {
        mix: flags.mix,
        draw: flags.members,
        keys_min: flags.keys_min,
        plan: flags.common_plan.into(),
    };
    let workload = Workload::mixed(graph, &population, &options, flags.seed)?;
    Ok((workload, Some(population)))
}

/// The service for each setting: one router for all, or a session each, with its own controllers and measurements.
async fn services(
    target: &TargetFlags,
    flags: &GraphBenchFlags,
    settings: &[Setting],
) -> anyhow::Result<Vec<Arc<dyn Service>>> {
    if !target.direct {
        let service = connect::service(target).await?;
        return Ok(vec![service; settings.len()]);
    }
    let base = match &flags.config {
        Some(file) => RouterSettings::read(file).map_err(|error| {
            Failure::new(
                ErrorCode::BadSettings,
                error.to_string(),
                "see docs/operating/settings.md for the keys",
            )
        })?,
        None => RouterSettings::default(),
    };
    let mut services: Vec<Arc<dyn Service>> = Vec::new();
    for setting in settings {
        services.push(Arc::new(connect::session(target, setting.session(&base.session)).await?));
    }
    Ok(services)
}
