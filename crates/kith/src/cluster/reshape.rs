//! Changes of the cluster's shape: planned by a router, printed, carried out, followed.

use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    output::{self, Format},
    table,
    who::who,
};
use anyhow::Context;
use clap::Args;
use kith_client::{QueryError, RouterClient};
use kith_types::ErrorCode;
use kith_wire::{
    documents::RebalanceStatusDocument,
    v1::{self, rebalance_request::Command as Ask},
};
use std::{
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

/// How often a rebalance is looked at while it is followed.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// Without a terminal, a line so often.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// For files that the change before gave up: their default grace, and time for every router to learn of the new owners.
const SETTLE_WAIT: Duration = Duration::from_secs(120);
/// For a group whose nodes are not as far as the others.
const BEHIND_WAIT: Duration = Duration::from_secs(60);
/// The router may be gone for so long before following ends: another one drives on.
const ROUTER_PATIENCE: Duration = Duration::from_secs(30);

/// Whether a change is carried out, and how.
#[derive(Args, Clone, Debug, Default)]
pub struct ApplyFlags {
    /// Print the plan without changing anything
    #[arg(long)]
    plan: bool,
    #[command(flatten)]
    how: HowFlags,
}

/// How a change is carried out.
#[derive(Args, Clone, Debug, Default)]
struct HowFlags {
    /// Return as soon as the change has begun; `kith cluster rebalance --status` shows its progress
    #[arg(long)]
    detach: bool,
    /// Partitions per batch; a batch that fails is copied again as a whole [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Keep moved partitions on their old owners for this many seconds, for clients with an older routing table
    /// [default: 60]
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u64>,
    /// Limit what each node copies per second, in MiB [default: no limit]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    throttle: Option<u64>,
    /// Wait at most this long until the partitions that the previous change moved are freed on their old owners
    /// [default: 120], and, before a group is restored, for nodes that do not answer or lack a version [default: 60]
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
}

/// Which nodes a change is about.
#[derive(Args, Debug)]
pub struct NodesFlags {
    /// Addresses or ids of nodes
    #[arg(required = true, value_name = "NODE")]
    nodes: Vec<String>,
    #[command(flatten)]
    apply: ApplyFlags,
}

/// Which group a change is about.
#[derive(Args, Debug)]
pub struct GroupFlags {
    /// The group's id
    group: u32,
    #[command(flatten)]
    apply: ApplyFlags,
}

/// Which nodes come.
#[derive(Args, Debug)]
pub struct AddFlags {
    #[command(flatten)]
    of: NodesFlags,
    /// The group that they join [default: for each node, the group with the fewest nodes]
    #[arg(long, value_name = "N", conflicts_with = "replace")]
    group: Option<u32>,
    /// Replace this node, which may be dead: take over all that it owns and remove it
    #[arg(long, value_name = "NODE")]
    replace: Option<String>,
}

impl NodesFlags {
    /// As asked of a router.
    pub fn shape(self, shape: &str) -> (v1::ShapeRequest, ApplyFlags) {
        (v1::ShapeRequest { nodes: self.nodes, ..named(shape) }, self.apply)
    }
}

impl GroupFlags {
    /// As asked of a router.
    pub fn shape(self, shape: &str) -> (v1::ShapeRequest, ApplyFlags) {
        (v1::ShapeRequest { group: Some(self.group), ..named(shape) }, self.apply)
    }
}

impl AddFlags {
    /// As asked of a router.
    pub fn shape(self) -> (v1::ShapeRequest, ApplyFlags) {
        match self.replace {
            Some(replaces) => {
                let (shape, apply) = self.of.shape("replace-node");
                (v1::ShapeRequest { replaces, ..shape }, apply)
            }
            None => {
                let (shape, apply) = self.of.shape("add-node");
                (v1::ShapeRequest { group: self.group, ..shape }, apply)
            }
        }
    }
}

/// What is to be done about rebalances.
#[derive(Args, Debug)]
pub struct RebalanceFlags {
    /// Print how the partitions would be spread evenly over the nodes (the default)
    #[arg(long, group = "what")]
    plan: bool,
    /// Spread the partitions evenly over the nodes
    #[arg(long, group = "what")]
    apply: bool,
    /// Abort the rebalance: finished batches stay, the rest is undone
    #[arg(long, group = "what")]
    abort: bool,
    /// Show the rebalance under way, or the last one
    #[arg(long, group = "what")]
    status: bool,
    /// Continue a rebalance that stopped, once the reason is removed
    #[arg(long = "continue", group = "what")]
    resume: bool,
    #[command(flatten)]
    how: HowFlags,
}

/// A shape without nodes or a group.
fn named(shape: &str) -> v1::ShapeRequest {
    v1::ShapeRequest { shape: shape.to_owned(), ..Default::default() }
}

/// Looks at, ends or continues a rebalance, or evens the nodes out.
///
/// # Errors
/// If there is none, it is refused, or no router answers.
pub async fn rebalance(target: &TargetFlags, format: Format, flags: &RebalanceFlags) -> anyhow::Result<Exit> {
    if flags.status || flags.abort || flags.resume {
        let router = connect::router(target).await?;
        let look = v1::RebalanceLook {};
        let (command, is_abort) = match (flags.abort, flags.resume) {
            (true, _) => (Ask::Abort(look), true),
            (_, true) => (Ask::Resume(look), false),
            _ => (Ask::Status(look), false),
        };
        let (status, _) = ask(&router, command).await?;
        let status =
            if is_abort && !flags.how.detach { follow(target, router, &status).await? } else { status };
        output::print(format, &status, table::reshape::status)?;
        return Ok(Exit::Done);
    }
    let apply = ApplyFlags { plan: !flags.apply, how: flags.how.clone() };
    run(target, format, named("even"), &apply).await
}

/// Prints the plan; unless only that is wanted, has it carried out and follows it.
///
/// # Errors
/// If it is refused, or does not end as asked.
pub async fn run(
    target: &TargetFlags,
    format: Format,
    shape: v1::ShapeRequest,
    ApplyFlags { plan, how }: &ApplyFlags,
) -> anyhow::Result<Exit> {
    let router = connect::router(target).await?;
    let shape = v1::ShapeRequest {
        batch_size: how.batch.unwrap_or_default(),
        grace_ms: how.grace.map(|seconds| seconds.saturating_mul(1_000)),
        bytes_per_second: how.throttle.unwrap_or_default() << 20,
        ..shape
    };
    if *plan {
        let (status, text) = ask(&router, Ask::Plan(shape)).await?;
        output::print(format, &status, |_| format!("{text}\n"))?;
        return Ok(Exit::Done);
    }
    let (begun, text) = begin(&router, shape, how.wait).await?;
    eprintln!("{text}");
    if how.detach {
        output::print(format, &begun, table::reshape::status)?;
        return Ok(Exit::Done);
    }
    let ended = follow(target, router, &begun).await?;
    if ended.state == "stopped" {
        let reason = ended.reason.unwrap_or_default();
        let help = "`kith cluster rebalance --continue` continues it, --abort undoes the rest";
        return Err(Failure::new(ErrorCode::RebalanceStopped, reason, help).into());
    }
    output::print(format, &ended, table::reshape::status)?;
    Ok(if ended.state == "finished" { Exit::Done } else { Exit::Failed })
}

/// Begins. What passes by itself is waited for.
async fn begin(
    router: &RouterClient,
    shape: v1::ShapeRequest,
    wait: Option<u64>,
) -> anyhow::Result<(RebalanceStatusDocument, String)> {
    let (started, mut told) = (Instant::now(), String::new());
    loop {
        match ask(router, Ask::Apply(shape.clone())).await {
            Err(error) if patience(&error, wait).is_some_and(|patience| started.elapsed() < patience) => {
                let why = error.to_string();
                if why != told {
                    eprintln!("waiting: {why}");
                    told = why;
                }
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
            answer => return answer,
        }
    }
}

/// How long a refusal is waited out; `None`: it does not pass by itself.
fn patience(error: &anyhow::Error, wait: Option<u64>) -> Option<Duration> {
    let Some(QueryError::Remote { code, .. }) = error.downcast_ref() else { return None };
    let default = match code {
        ErrorCode::RebalanceNotSettled => SETTLE_WAIT,
        ErrorCode::GroupBehind => BEHIND_WAIT,
        _ => return None,
    };
    Some(wait.map_or(default, Duration::from_secs))
}

async fn ask(router: &RouterClient, command: Ask) -> anyhow::Result<(RebalanceStatusDocument, String)> {
    let request = v1::RebalanceRequest { who: who(), command: Some(command) };
    let reply = router.rebalance(request).await?;
    let status = serde_json::from_slice(&reply.status).context("read the router's answer")?;
    Ok((status, reply.text))
}

/// Follows until it stops or no owner changes any more; given-up files may wait for their grace then. The router that
/// drives may die meanwhile: another goes on.
async fn follow(
    target: &TargetFlags,
    router: RouterClient,
    begun: &RebalanceStatusDocument,
) -> anyhow::Result<RebalanceStatusDocument> {
    let mut meter = Meter::new();
    let (mut router, mut heard) = (Some(router), Instant::now());
    loop {
        if router.is_none() {
            router = connect::router(target).await.ok();
        }
        let answer = match &router {
            Some(router) => ask(router, Ask::Status(v1::RebalanceLook {})).await,
            None => Err(no_router().into()),
        };
        match answer {
            Ok((status, _)) if status.id != begun.id => return Err(lost().into()),
            Ok((status, _)) => {
                heard = Instant::now();
                meter.tell(&status);
                if !matches!(status.state.as_str(), "working" | "aborting") {
                    return Ok(status);
                }
            }
            Err(error) if ROUTER_PATIENCE < heard.elapsed() || !is_passing(&error) => return Err(error),
            Err(_) => router = None,
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

fn no_router() -> Failure {
    Failure::new(ErrorCode::Unreachable, "no router answers", "look at `kith cluster status`")
}

fn lost() -> Failure {
    let message = "the rebalance ended, and another has begun since";
    Failure::new(ErrorCode::RebalanceLost, message, "see `kith cluster rebalance --status`")
}

/// Whether a router, or the metadata, may be back soon.
fn is_passing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<QueryError>().is_none_or(|error| {
        let QueryError::Remote { code, .. } = error else { return true };
        matches!(code, ErrorCode::MetadataUnavailable | ErrorCode::Unavailable)
    })
}

/// Tells how far it is, on a terminal in one line that is written over.
struct Meter {
    is_terminal: bool,
    line_due: Instant,
    last: String,
}

impl Meter {
    fn new() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), line_due: Instant::now(), last: String::new() }
    }

    fn tell(&mut self, status: &RebalanceStatusDocument) {
        let line = table::reshape::progress(status);
        if line == self.last || (!self.is_terminal && Instant::now() < self.line_due) {
            return;
        }
        if self.is_terminal {
            eprint!("\r\x1b[K{line}");
            if status.state != "working" {
                eprintln!();
            }
        } else {
            eprintln!("{line}");
        }
        self.line_due = Instant::now() + LINE_INTERVAL;
        self.last = line;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_waited_for_as_long_as_asked() {
        let of = |code: ErrorCode, wait| {
            let (message, help) = (String::new(), String::new());
            patience(&QueryError::Remote { code, message, help }.into(), wait)
        };
        assert_eq!(of(ErrorCode::RebalanceNotSettled, None), Some(SETTLE_WAIT));
        assert_eq!(of(ErrorCode::RebalanceNotSettled, Some(0)), Some(Duration::ZERO));
        assert_eq!(of(ErrorCode::GroupBehind, None), Some(BEHIND_WAIT));
        assert_eq!(of(ErrorCode::ShapeRefused, Some(9)), None);
        assert_eq!(patience(&anyhow::anyhow!("the router is away"), Some(9)), None);
    }
}
