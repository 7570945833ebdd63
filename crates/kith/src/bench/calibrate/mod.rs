//! `kith bench calibrate`: what controllers steer by (Moolle §IV-C3, §IV-D), measured on this machine and cluster.

mod penalties;
mod rates;
mod sustained;

use super::population::Population;
use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    output::{self, Format},
    table::{Side, count, micros, table},
};
use anyhow::Context;
use clap::Args;
use kith_client::Steering;
use kith_server::router::RouterSettings;
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use sustained::Step;

#[derive(Debug, Args)]
pub struct CalibrateFlags {
    /// The graph to ask: one like those that will be served
    #[arg(short, long)]
    graph: String,
    /// A router's settings file: `[session.steering]` in it is replaced, the rest stays [default: only print]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Seconds at each rate tried; about fifteen rates are tried for each limit
    #[arg(long, value_name = "S", default_value_t = 1.5, value_parser = step_seconds)]
    step_seconds: f64,
}

fn step_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.1..=60.0).contains(seconds));
    seconds.ok_or_else(|| format!("{text:?} is not a number of seconds from 0.1 to 60"))
}

/// What was measured. Field names are a contract: `docs/benchmarks.md`.
#[derive(Clone, Debug, Serialize)]
struct Calibration {
    /// Goes into settings as it is.
    steering: Steering,
    client_steps: Vec<Step>,
    node_steps: Vec<Step>,
    /// The node's limit was found from one client, which came to its own limit first.
    node_limited_by_client: bool,
    /// Where it was written.
    out: Option<PathBuf>,
}

/// Measures, prints, and writes if asked to.
///
/// # Errors
/// If the cluster or the graph cannot be used, or the file cannot be written.
pub async fn run(target: &TargetFlags, format: Format, flags: &CalibrateFlags) -> anyhow::Result<Exit> {
    // Before minutes of measuring.
    let settings = flags.out.as_deref().map(settings).transpose()?;
    let router = connect::router(target).await?;
    let topology = router.topology().await.context("read the topology")?;
    let population = Population::open(&topology, &flags.graph)?;
    let length = Duration::from_secs_f64(flags.step_seconds);
    let client_steps = rates::client(target, &flags.graph, &population, length).await?;
    let node_steps = rates::node(&topology, &flags.graph, &population, length).await?;
    let (penalty_client, penalty_server, penalty_growth) =
        tokio::task::block_in_place(|| penalties::measure(&population))?;
    let steering = Steering {
        client_requests_per_second: sustained::limit(&client_steps)?,
        node_requests_per_second: sustained::limit(&node_steps)?,
        penalty_client,
        penalty_server,
        penalty_growth,
    };
    if let (Some(out), Some(mut settings)) = (&flags.out, settings) {
        settings.session.steering = steering.clone();
        settings.write(out).map_err(|error| failure(&error.into(), out))?;
    }
    let node_limited_by_client =
        steering.node_requests_per_second < 1.2 * steering.client_requests_per_second;
    let calibration =
        Calibration { steering, client_steps, node_steps, node_limited_by_client, out: flags.out.clone() };
    output::print(format, &calibration, render)?;
    Ok(Exit::Done)
}

fn settings(out: &Path) -> Result<RouterSettings, Failure> {
    if !out.exists() {
        return Ok(RouterSettings::default());
    }
    RouterSettings::read(out).map_err(|error| failure(&error.into(), out))
}

fn failure(error: &anyhow::Error, out: &Path) -> Failure {
    let message = format!("settings file {} cannot be used: {error:#}", out.display());
    Failure::new("bad_settings", message, "see docs/operating/settings.md for the keys")
}

fn render(calibration: &Calibration) -> String {
    let columns = [
        ("limit", Side::Left),
        ("due/s", Side::Right),
        ("answered/s", Side::Right),
        ("p99", Side::Right),
        ("errors", Side::Right),
        ("sustained", Side::Left),
    ];
    let steps = [("client", &calibration.client_steps), ("node", &calibration.node_steps)];
    let rows = steps.iter().flat_map(|(name, steps)| {
        steps.iter().map(|step| {
            vec![
                (*name).to_owned(),
                count(step.due as u64),
                count(step.answered as u64),
                micros(step.p99_us),
                count(step.errors),
                if step.sustained { "yes" } else { "no" }.to_owned(),
            ]
        })
    });
    let mut text = table(&columns, rows);
    let Steering { client_requests_per_second, node_requests_per_second, .. } = calibration.steering;
    text += &format!("\nD_RPS   {client_requests_per_second:.0} requests/s by this client\n");
    text += &format!("D_SRPS  {node_requests_per_second:.0} requests/s by one node");
    if calibration.node_limited_by_client {
        text += " at least: this client came to its limit first";
    }
    let Steering { penalty_client, penalty_server, penalty_growth, .. } = calibration.steering;
    text += &format!(
        "\nequation 5: client {penalty_client:.4} us, server {penalty_server:.5} us, growth {penalty_growth:.2}\n"
    );
    match &calibration.out {
        Some(out) => text += &format!("written to {}: start routers with --config\n", out.display()),
        None => text += "nothing written: --out FILE writes it as a router's settings\n",
    }
    text
}
