//! Begins a rebalance and follows it to its end, whichever router drives it.

use crate::{
    connect::{self, TargetFlags},
    failure::Failure,
    table,
    who::who,
};
use anyhow::Context;
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

/// The interval at which the status of the rebalance is requested.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The interval at which a progress line is printed if standard error is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// The time to wait for the files that the previous change gave up: their default grace period, plus time for every
/// router to learn the new owners.
const SETTLE_WAIT: Duration = Duration::from_secs(120);
/// The time to wait for a group whose nodes are behind the others.
const BEHIND_WAIT: Duration = Duration::from_secs(60);
/// The time without an answer from any router after which following ends. Meanwhile another router can take over the
/// rebalance.
const ROUTER_TIMEOUT: Duration = Duration::from_secs(30);

/// Begins a change of shape. If a refusal is temporary, retries for `wait` seconds, or for a default time if `wait` is
/// `None`.
///
/// # Errors
/// If the change is refused, or no router answers.
pub async fn begin(
    router: &RouterClient,
    shape: v1::ShapeRequest,
    wait: Option<u64>,
) -> anyhow::Result<(RebalanceStatusDocument, String)> {
    let (started, mut last_reason) = (Instant::now(), String::new());
    loop {
        match ask(router, Ask::Apply(shape.clone())).await {
            Err(error) if timeout(&error, wait).is_some_and(|timeout| started.elapsed() < timeout) => {
                let why = error.to_string();
                if why != last_reason {
                    eprintln!("waiting: {why}");
                    last_reason = why;
                }
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
            answer => return answer,
        }
    }
}

/// The time for which to retry after a refusal; `None` if the refusal is not temporary.
fn timeout(error: &anyhow::Error, wait: Option<u64>) -> Option<Duration> {
    let Some(QueryError::Remote { code, .. }) = error.downcast_ref() else { return None };
    let default = match code {
        ErrorCode::RebalanceNotSettled => SETTLE_WAIT,
        ErrorCode::GroupBehind => BEHIND_WAIT,
        _ => return None,
    };
    Some(wait.map_or(default, Duration::from_secs))
}

/// Sends a command about the rebalance to a router. Returns the status of the rebalance and the router's text.
///
/// # Errors
/// If the router refuses the command or does not answer.
pub async fn ask(router: &RouterClient, command: Ask) -> anyhow::Result<(RebalanceStatusDocument, String)> {
    let request = v1::RebalanceRequest { who: who(), command: Some(command) };
    let reply = router.rebalance(request).await?;
    let status = serde_json::from_slice(&reply.status).context("read the router's answer")?;
    Ok((status, reply.text))
}

/// Follows the rebalance until it stops or no owner changes any more. At that point the grace period of given-up files may
/// still run. If the router that drives the rebalance dies, another one continues.
///
/// # Errors
/// If another rebalance has begun since, or no router has answered for 30 seconds.
pub async fn follow(
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
            Err(error) if ROUTER_TIMEOUT < heard.elapsed() || !is_passing(&error) => return Err(error),
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

/// Whether the error is temporary: a router, or the metadata store, may be back soon.
fn is_passing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<QueryError>().is_none_or(|error| {
        let QueryError::Remote { code, .. } = error else { return true };
        matches!(code, ErrorCode::MetadataUnavailable | ErrorCode::Unavailable)
    })
}

/// Prints progress to standard error: on a terminal, one line that is overwritten.
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
            timeout(&QueryError::Remote { code, message, help }.into(), wait)
        };
        assert_eq!(of(ErrorCode::RebalanceNotSettled, None), Some(SETTLE_WAIT));
        assert_eq!(of(ErrorCode::RebalanceNotSettled, Some(0)), Some(Duration::ZERO));
        assert_eq!(of(ErrorCode::GroupBehind, None), Some(BEHIND_WAIT));
        assert_eq!(of(ErrorCode::ShapeRefused, Some(9)), None);
        assert_eq!(timeout(&anyhow::anyhow!("the router is away"), Some(9)), None);
    }
}
