//! Starts, watches, restarts and stops one process per database, node and router.
//!
//! A child exits when its standard input ends. The pipe closes with this process, however this process ends, so no child
//! outlives it.

use super::roles::{Addresses, Role};
use kith_cluster::{StartError, topology::TopologyReceiver};
use std::{
    num::NonZeroU16,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tokio::process::{Child, ChildStdin, Command};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The pause before a child is restarted, and the longest one, for a child that keeps ending.
const RESTART_PAUSE: Duration = Duration::from_millis(200);
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(5);
/// After this time, a child counts as stable, and the pause is reset.
const SETTLED: Duration = Duration::from_secs(2);
/// The time that a child has to exit after a request to do so, before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that one child may take to register.
const REGISTER_TIMEOUT: Duration = Duration::from_secs(60);
/// A child that ends this many times before it first registers is given up.
const FIRST_STARTS_MAX: u32 = 3;

/// A child, and the input whose end tells it to exit. They are kept apart, because waiting for a child closes the input
/// inside it.
#[derive(Debug)]
struct Running {
    child: Child,
    input: Option<ChildStdin>,
}

/// Starts children concurrently. Returns once all have registered. They run until `stop` is cancelled.
pub(super) async fn start(
    roles: Vec<Role>,
    topology: &TopologyReceiver,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(), StartError> {
    let mut children = Vec::new();
    for role in roles {
        children.push((spawn(&role, None)?, role));
    }
    for (child, role) in children {
        let (child, at) = registered(child, &role, topology.clone()).await?;
        tasks.spawn(supervise(child, role, at, stop.clone()));
    }
    Ok(())
}

/// Returns the number of threads for each of `processes` processes. More threads than processors in total would only compete
/// with each other, which costs more than it gains (docs/benchmarks.md, "Threads").
pub(super) fn share_of_processors(processes: usize) -> NonZeroU16 {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let share = u16::try_from(processors / processes.max(1)).unwrap_or(u16::MAX);
    NonZeroU16::new(share).unwrap_or(NonZeroU16::MIN)
}

/// Runs this binary as a child. `at` replaces the addresses, so that a restarted child keeps its own.
fn spawn(role: &Role, at: Option<&Addresses>) -> Result<Running, StartError> {
    let failed = |source| StartError::Spawn { what: role.name.clone(), source };
    let mut arguments = role.arguments.clone();
    if let Some(at) = at {
        for (flag, value) in ["--listen", "--http", "--resp", "--gremlin"].into_iter().zip(at) {
            if let Some(index) = arguments.iter().position(|argument| argument == flag)
                && !value.is_empty()
            {
                arguments[index + 1].clone_from(value);
            }
        }
    }
    let log = std::fs::File::options().create(true).append(true).open(&role.log).map_err(failed)?;
    let mut child = Command::new(std::env::current_exe().map_err(failed)?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    Ok(Running { input: child.stdin.take(), child })
}

/// Waits until the child has registered, and returns its addresses. If it ends before that, restarts it a few times.
async fn registered(
    mut running: Running,
    role: &Role,
    mut topology: TopologyReceiver,
) -> Result<(Running, Addresses), StartError> {
    let failed = |detail: String| StartError::Child { what: role.name.clone(), detail };
    let deadline = tokio::time::sleep(REGISTER_TIMEOUT);
    tokio::pin!(deadline);
    let mut starts = 1;
    loop {
        let pid = running.child.id();
        let known = role.id.registered(&topology.borrow_and_update());
        if let Some((_, at)) = known.filter(|(process, _)| Some(*process) == pid) {
            return Ok((running, at));
        }
        tokio::select! {
            () = &mut deadline => return Err(failed(format!("not registered after {REGISTER_TIMEOUT:?}"))),
            ended = running.child.wait() => {
                if starts == FIRST_STARTS_MAX {
                    return Err(failed(format!("ended {starts} times: {}; last log lines:\n{}", text(ended), log_tail(role))));
                }
                starts += 1;
                running = spawn(role, None)?;
            }
            changed = topology.changed() => if changed.is_err() {
                return Err(failed("the topology can no longer be followed".to_owned()));
            },
        }
    }
}

/// Restarts the child until `stop` is cancelled, at the addresses where it first registered. Another process that uses its
/// id meanwhile is registered elsewhere.
async fn supervise(mut running: Running, role: Role, at: Addresses, stop: CancellationToken) {
    let mut pause = RESTART_PAUSE;
    loop {
        let started = Instant::now();
        tokio::select! {
            () = stop.cancelled() => return end(running, &role).await,
            ended = running.child.wait() => {
                tracing::warn!(child = role.name, status = text(ended), "a child ended: starting it again");
            }
        }
        if SETTLED <= started.elapsed() {
            pause = RESTART_PAUSE;
        }
        running = loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(RESTART_PAUSE_MAX),
            }
            match spawn(&role, Some(&at)) {
                Ok(child) => break child,
                Err(error) => {
                    tracing::error!(%error, child = role.name, "a child cannot be started again yet")
                }
            }
        };
    }
}

/// Closes the child's input, which tells it to exit.
async fn end(mut running: Running, role: &Role) {
    drop(running.input.take());
    if tokio::time::timeout(END_TIMEOUT, running.child.wait()).await.is_err() {
        tracing::warn!(child = role.name, "a child did not end by itself: killing it");
        if let Err(error) = running.child.kill().await {
            tracing::error!(%error, child = role.name, "a child cannot be killed");
        }
    }
}

fn text(ended: std::io::Result<ExitStatus>) -> String {
    ended.map_or_else(|error| error.to_string(), |status| status.to_string())
}

fn log_tail(role: &Role) -> String {
    let log = std::fs::read_to_string(&role.log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}
