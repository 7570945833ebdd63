//! `kith bench kv`: reads keys of a store at fixed rates, like the evaluation of Voldemort (§6.2).

pub mod draw;
mod drawing;
mod flags;
mod keys;
mod report;
mod run;
mod table;

pub use flags::KvBenchFlags;

use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    output::{self, Format},
};
use anyhow::Context;
use draw::Draw;
use keys::KnownKeys;
use run::Run;
use std::sync::Arc;

/// Runs the benchmark and prints the results.
///
/// # Errors
/// If the cluster, the store or the keys cannot be used, or the drawing cannot be written.
pub async fn run(target: &TargetFlags, format: Format, flags: &KvBenchFlags) -> anyhow::Result<Exit> {
    let exponent = flags.exponent()?;
    let topology = connect::router(target).await?.topology().await.context("read the topology")?;
    let service = connect::service(target).await?;
    let shape = service.shape(&flags.store).await?;
    let known = Arc::new(KnownKeys::of(flags, shape, &topology)?);
    let draw = Draw::new(known.count(), flags.distribution, exponent).ok_or_else(|| {
        let message = format!("keys cannot be drawn with an exponent of {exponent}");
        Failure::usage(message, "YCSB uses 0.99")
    })?;
    let servers = connect::processes(target)?;
    let run = Run { flags, service, known: Arc::clone(&known), draw, servers };
    let rates = run.every_rate().await;
    let mut report = report::report(flags, exponent, known.count(), &rates);
    if let Some(out) = &flags.out {
        report.files = drawing::write(&report, out)?;
    }
    output::print(format, &report, table::render)?;
    Ok(if report.is_clean() { Exit::Done } else { Exit::Partial })
}
