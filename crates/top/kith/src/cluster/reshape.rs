//! Changes of the cluster's shape: a router plans them, the plan is printed, and then carried out.

use super::follow::{ask, begin, follow};
use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    output::{self, Format},
    table,
};
use clap::Args;
use kith_types::ErrorCode;
use kith_wire::{
    documents::RebalanceStatusDocument,
    v1::{self, rebalance_request::Command as Ask},
};

/// Whether a change is carried out or only planned, and how.
#[derive(Args, Clone, Debug, Default)]
pub struct ApplyFlags {
    /// Print the plan without changing anything
    #[arg(long)]
    plan: bool,
    #[command(flatten)]
    how: HowFlags,
}

/// The flags for how a change is carried out.
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

/// The nodes that a change concerns.
#[derive(Args, Debug)]
pub struct NodesFlags {
    /// Addresses or ids of nodes
    #[arg(required = true, value_name = "NODE")]
    nodes: Vec<String>,
    #[command(flatten)]
    apply: ApplyFlags,
}

/// The group that a change concerns.
#[derive(Args, Debug)]
pub struct GroupFlags {
    /// The group's id
    group: u32,
    #[command(flatten)]
    apply: ApplyFlags,
}

/// The nodes to add, and where.
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
    /// Returns the request for a router.
    pub fn shape(self, shape: &str) -> (v1::ShapeRequest, ApplyFlags) {
        (v1::ShapeRequest { nodes: self.nodes, ..named(shape) }, self.apply)
    }
}

impl GroupFlags {
    /// Returns the request for a router.
    pub fn shape(self, shape: &str) -> (v1::ShapeRequest, ApplyFlags) {
        (v1::ShapeRequest { group: Some(self.group), ..named(shape) }, self.apply)
    }
}

impl AddFlags {
    /// Returns the request for a router.
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

/// The flags of `kith cluster rebalance`.
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
    /// Continue a rebalance that stopped, once the reason is removed, and wait for its end (unless --detach is given)
    #[arg(long = "continue", group = "what")]
    resume: bool,
    #[command(flatten)]
    how: HowFlags,
}

/// A request for `shape` without nodes or a group.
fn named(shape: &str) -> v1::ShapeRequest {
    v1::ShapeRequest { shape: shape.to_owned(), ..Default::default() }
}

/// Shows, aborts or continues a rebalance, or spreads the partitions evenly over the nodes.
///
/// # Errors
/// If there is no rebalance, the router refuses the command, or no router answers.
pub async fn rebalance(target: &TargetFlags, format: Format, flags: &RebalanceFlags) -> anyhow::Result<Exit> {
    if flags.status || flags.abort || flags.resume {
        let router = connect::router(target).await?;
        let look = v1::RebalanceLook {};
        let (command, changes) = match (flags.abort, flags.resume) {
            (true, _) => (Ask::Abort(look), true),
            (_, true) => (Ask::Resume(look), true),
            _ => (Ask::Status(look), false),
        };
        let (status, _) = ask(&router, command).await?;
        if !changes || flags.how.detach {
            output::print(format, &status, table::reshape::status)?;
            return Ok(Exit::Done);
        }
        let ended = not_stopped(follow(target, router, &status).await?)?;
        output::print(format, &ended, table::reshape::status)?;
        return Ok(if flags.abort || ended.state == "finished" { Exit::Done } else { Exit::Failed });
    }
    let apply = ApplyFlags { plan: !flags.apply, how: flags.how.clone() };
    run(target, format, named("even"), &apply).await
}

/// Prints the plan. Unless only the plan is wanted, also has it carried out and follows it.
///
/// # Errors
/// If the change is refused, no router answers, or the rebalance cannot be followed to its end.
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
    let ended = not_stopped(follow(target, router, &begun).await?)?;
    output::print(format, &ended, table::reshape::status)?;
    Ok(if ended.state == "finished" { Exit::Done } else { Exit::Failed })
}

/// Returns the status of a rebalance that was followed, or an error if the rebalance has stopped.
fn not_stopped(status: RebalanceStatusDocument) -> anyhow::Result<RebalanceStatusDocument> {
    if status.state != "stopped" {
        return Ok(status);
    }
    let reason = status.reason.unwrap_or_default();
    let help = "`kith cluster rebalance --continue` continues it, --abort undoes the rest";
    Err(Failure::new(ErrorCode::RebalanceStopped, reason, help).into())
}
