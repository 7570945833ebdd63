//! `kith bench calibrate`: measures the numbers that controllers steer by (Moolle §IV-C3, §IV-D), on this machine and
//! cluster.

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
use kith_router::RouterSettings;
use kith_session::Steering;
use kith_types::ErrorCode;
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use sustained::{Doubt, RateResult};

#[derive(Debug, Args)]
pub struct CalibrateFlags {
    /// The graph to query: one like those that will be served
    #[arg(short, long)]
    graph: String,
    /// A router's settings file, in which `[session.steering]` is replaced [default: only print]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Seconds at each rate that is tried: about fifteen rates for each limit, in at most three attempts if the limit
    /// is in doubt
    #[arg(long, value_name = "S", default_value_t = 1.5, value_parser = step_seconds)]
    step_seconds: f64,
}

fn step_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.1..=60.0).contains(seconds));
    seconds.ok_or_else(|| format!("{text:?} is not a number of seconds from 0.1 to 60"))
}

/// The result of a calibration. Field names are a contract: `docs/benchmarks.md`.
#[derive(Clone, Debug, Serialize)]
struct Calibration {
    /// The settings, in the form in which they are written.
    steering: Steering,
    client_steps: Vec<RateResult>,
    node_steps: Vec<RateResult>,
    /// The number of searches for each limit.
    client_attempts: u32,
    node_attempts: u32,
    /// The reason why the client's limit is in doubt after all attempts. Nothing is written then.
    client_doubt: Option<Doubt>,
    node_doubt: Option<Doubt>,
    /// Whether the node's limit is in fact that of the client, which reached its own limit first.
    node_limited_by_client: bool,
    /// The file that was written.
    out: Option<PathBuf>,
}

/// Measures and prints, and writes the settings if that is requested.
///
/// # Errors
/// If the cluster or the graph cannot be used, or the file cannot be written.
pub async fn run(target: &TargetFlags, format: Format, flags: &CalibrateFlags) -> anyhow::Result<Exit> {
    // The file is checked before minutes of measuring.
    let settings = flags.out.as_deref().map(settings).transpose()?;
    let mut calibration = measure(target, flags).await?;
    let is_trusted = calibration.client_doubt.is_none() && calibration.node_doubt.is_none();
    calibration.out = flags.out.clone().filter(|_| is_trusted);
    if let (Some(out), Some(mut settings)) = (&calibration.out, settings) {
        settings.session.steering = calibration.steering.clone();
        settings.write(out).map_err(|error| failure(&error.into(), out))?;
    }
    output::print(format, &calibration, render)?;
    Ok(if is_trusted { Exit::Done } else { Exit::Failed })
}

/// Searches for both limits and fits the penalties. Writes nothing.
async fn measure(target: &TargetFlags, flags: &CalibrateFlags) -> anyhow::Result<Calibration> {
    let router = connect::router(target).await?;
    let topology = router.topology().await.context("read the topology")?;
    let population = Population::open(&topology, &flags.graph)?;
    let length = Duration::from_secs_f64(flags.step_seconds);
    let client = rates::client(target, &flags.graph, &population, length).await?;
    let client_requests_per_second = sustained::limit(&client.steps)?;
    // Every node has answered its share of the client's requests.
    let seen = match client.doubt() {
        None => client_requests_per_second / topology.nodes.len().max(1) as f64,
        Some(_) => 0.0,
    };
    let node = rates::node(&topology, &flags.graph, &population, length, seen).await?;
    let (penalty_client, penalty_server, penalty_growth) =
        tokio::task::block_in_place(|| penalties::measure(&population))?;
    let steering = Steering {
        client_requests_per_second,
        node_requests_per_second: sustained::limit(&node.steps)?,
        penalty_client,
        penalty_server,
        penalty_growth,
    };
    Ok(Calibration {
        node_limited_by_client: is_limited_by_client(&steering),
        steering,
        client_attempts: client.attempts,
        node_attempts: node.attempts,
        client_doubt: client.doubt(),
        node_doubt: node.doubt(),
        client_steps: client.steps,
        node_steps: node.steps,
        out: None,
    })
}

/// Whether a node's limit is about equal to that of the client that searched for it.
fn is_limited_by_client(steering: &Steering) -> bool {
    let client = steering.client_requests_per_second;
    (0.8 * client..1.2 * client).contains(&steering.node_requests_per_second)
}

fn settings(out: &Path) -> Result<RouterSettings, Failure> {
    if !out.exists() {
        return Ok(RouterSettings::default());
    }
    RouterSettings::read(out).map_err(|error| failure(&error.into(), out))
}

fn failure(error: &anyhow::Error, out: &Path) -> Failure {
    let message = format!("settings file {} cannot be used: {error:#}", out.display());
    Failure::new(ErrorCode::BadSettings, message, "see docs/operating/settings.md for the keys")
}

fn render(calibration: &Calibration) -> String {
    let Steering { client_requests_per_second, node_requests_per_second, .. } = calibration.steering;
    let mut text = steps(calibration);
    text += &format!("\nD_RPS   {client_requests_per_second:.0} requests/s by this client");
    text += &doubted(calibration.client_doubt, calibration.client_attempts);
    text += &format!("\nD_SRPS  {node_requests_per_second:.0} requests/s by one node");
    if calibration.node_doubt.is_none() && calibration.node_limited_by_client {
        text += " at least: this client reached its own limit first";
    }
    text += &doubted(calibration.node_doubt, calibration.node_attempts);
    let Steering { penalty_client, penalty_server, penalty_growth, .. } = calibration.steering;
    text += &format!(
        "\nequation 5: client {penalty_client:.4} us, server {penalty_server:.5} us, growth {penalty_growth:.2}\n"
    );
    let is_trusted = calibration.client_doubt.is_none() && calibration.node_doubt.is_none();
    match &calibration.out {
        Some(out) => text += &format!("written to {}: start routers with --config\n", out.display()),
        None if is_trusted => text += "nothing written: --out FILE writes it as a router's settings\n",
        None => {
            text += "nothing written: calibrate again while this machine and the nodes are otherwise idle\n";
        }
    }
    text
}

/// Renders a line for each rate that was tried.
fn steps(calibration: &Calibration) -> String {
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
        steps.iter().map(move |step| {
            vec![
                format!("{name}{}", if step.check { ", check" } else { "" }),
                count(step.due as u64),
                count(step.answered as u64),
                micros(step.p99_us),
                count(step.errors),
                if step.sustained { "yes" } else { "no" }.to_owned(),
            ]
        })
    });
    table(&columns, rows)
}

fn doubted(doubt: Option<Doubt>, attempts: u32) -> String {
    let said = doubt.map(|doubt| format!(": in doubt after {attempts} attempts: {doubt}"));
    said.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steering(node: f64) -> Steering {
        Steering {
            client_requests_per_second: 9_156.0,
            node_requests_per_second: node,
            penalty_client: 0.1,
            penalty_server: 0.1,
            penalty_growth: 0.0,
        }
    }

    #[test]
    fn only_a_node_limit_near_the_clients_may_be_the_clients() {
        assert!(is_limited_by_client(&steering(9_000.0)));
        assert!(!is_limited_by_client(&steering(182.0)), "the node is slower than the client");
        assert!(!is_limited_by_client(&steering(20_000.0)));
    }

    #[test]
    fn a_limit_in_doubt_says_why_and_that_nothing_is_written() {
        let doubt = Doubt::BelowSeen { limit: 182.0, seen: 1_526.0 };
        let calibration = Calibration {
            steering: steering(182.0),
            client_steps: vec![],
            node_steps: vec![],
            client_attempts: 1,
            node_attempts: 3,
            client_doubt: None,
            node_doubt: Some(doubt),
            node_limited_by_client: false,
            out: None,
        };
        let text = render(&calibration);
        let node = "D_SRPS  182 requests/s by one node: in doubt after 3 attempts: \
                    only 182 requests/s were sustained, but 1526 at another moment\n";
        assert!(text.contains(node), "{text}");
        assert!(text.contains("nothing written: calibrate again"), "{text}");
    }
}
