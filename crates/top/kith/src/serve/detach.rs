//! `kith dev --detach` and `kith dev --stop`: leave a cluster running without a terminal, and stop it.
//!
//! The background process is the same command, started with `--detached`. It writes one line of JSON to standard output: the
//! addresses that it listens on, or why it failed. A byte on its standard input tells it to stay. If the input ends before
//! that byte, the process exits too, so that an interrupted start leaves nothing behind.

use crate::{
    connect::WELL_KNOWN,
    failure::{Exit, Failure},
    output::{self, Format},
};
use anyhow::Context;
use kith::dev::{self, ReadyDocument, StopError};
use kith_cluster::private;
use kith_types::ErrorCode;
use serde::{Deserialize, Serialize};
use std::{
    env, fs,
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};
use tokio_util::sync::CancellationToken;

/// The number of lines of the log that are shown if the background process exits without a report.
const LOG_LINES: usize = 5;

/// The report of the background process.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum StartReport {
    Failed { error: StartError },
    Ready(ReadyDocument),
}

#[derive(Debug, Deserialize)]
struct StartError {
    code: String,
    message: String,
    help: String,
}

#[derive(Serialize)]
struct DetachReply<'a> {
    #[serde(flatten)]
    ready: &'a ReadyDocument,
    log: &'a Path,
}

#[derive(Serialize)]
struct StopReply {
    stopped: u32,
    data: PathBuf,
}

/// The log of a background process.
pub fn log_of(ready_file: &Path) -> PathBuf {
    ready_file.with_extension("log")
}

/// Starts this command again as a background process, and returns once its cluster answers. `summary` formats the addresses
/// for people.
///
/// # Errors
/// The errors of the cluster's start; nothing of the cluster is left running then.
pub fn detach(
    format: Format,
    ready_file: &Path,
    summary: impl FnOnce(&ReadyDocument) -> String,
) -> anyhow::Result<Exit> {
    private::keep_files_private();
    let log = log_of(ready_file);
    let mut child = start_again(&log)?;
    let mut line = String::new();
    let stdout = child.stdout.take().expect("its output is piped");
    // If reading fails, the line is incomplete, which is treated like a process that exits without a report.
    let _ = BufReader::new(stdout).read_line(&mut line);
    match serde_json::from_str(&line) {
        Ok(StartReport::Ready(ready)) => {
            let mut input = child.stdin.take().expect("its input is piped");
            input.write_all(b"\n").context("tell kith dev to stay")?;
            let reply = DetachReply { ready: &ready, log: &log };
            output::print(format, &reply, |_| {
                let stop = stop_command(ready_file);
                format!("{}  log     {}\n  stop    {stop}\n", summary(&ready), log.display())
            })?;
            Ok(Exit::Done)
        }
        Ok(StartReport::Failed { error: StartError { code, message, help } }) => {
            child.wait().context("wait for kith dev")?;
            Err(Failure { code: ErrorCode::of_name(&code), message, help }.into())
        }
        Err(_) => {
            let status = child.wait().context("wait for kith dev")?;
            let message =
                format!("kith dev exited before it was ready: {status}; last log lines:\n{}", tail(&log));
            Err(Failure::new(
                ErrorCode::ChildFailed,
                message,
                format!("the whole log is in {}", log.display()),
            )
            .into())
        }
    }
}

/// Starts this command as the background process.
fn start_again(log: &Path) -> anyhow::Result<Child> {
    let arguments = env::args_os().skip(1).map(|argument| match argument.to_str() {
        Some("--detach") => "--detached".into(),
        _ => argument,
    });
    let mut command = Command::new(env::current_exe().context("find the binary of kith")?);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log_at(log)?);
    command.spawn().context("start kith dev")
}

/// Opens the log for appending, because another cluster may be writing to it. In that case this start fails, and says so in
/// the log.
fn log_at(log: &Path) -> Result<fs::File, Failure> {
    let folder = log.parent().filter(|folder| !folder.as_os_str().is_empty());
    let opened = folder
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::File::options().create(true).append(true).open(log));
    opened.map_err(|error| {
        let help =
            "check the directory, its permissions and the free space, or name another with --ready-file";
        Failure::new(ErrorCode::CannotWrite, format!("cannot write {}: {error}", log.display()), help)
    })
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

fn stop_command(ready_file: &Path) -> String {
    match ready_file.to_str() {
        Some(file) if file == WELL_KNOWN[0] => "kith dev --stop".to_owned(),
        _ => format!("kith dev --stop --ready-file {}", ready_file.display()),
    }
}

/// Detaches this process from the terminal. Once its parent has confirmed that it may stay, only `stop` ends it.
///
/// # Errors
/// If the system does not allow it.
pub fn leave_terminal(stop: CancellationToken) -> anyhow::Result<()> {
    rustix::process::setsid().context("leave the terminal")?;
    // This needs its own thread, because a blocked read of standard input must not delay the end of the runtime.
    thread::spawn(move || {
        if !matches!(io::stdin().read(&mut [0]), Ok(1)) {
            stop.cancel();
        }
    });
    Ok(())
}

/// Reports to the waiting parent. If the parent is gone, the write fails, and the end of standard input stops this process.
pub fn tell(what: &impl Serialize) {
    let _ = output::print_bytes(output::json_line(what).as_bytes());
}

/// Stops the cluster of a data directory or a ready file, and waits until it has stopped.
///
/// # Errors
/// If no cluster runs, or it cannot be stopped.
pub async fn stop(
    format: Format,
    ready_file: Option<PathBuf>,
    data: Option<PathBuf>,
) -> anyhow::Result<Exit> {
    let (data, stopped) = match (ready_file, data) {
        (None, Some(data)) => (data.clone(), dev::stop(&data, None).await),
        (ready_file, data) => {
            let file = ready_file.unwrap_or_else(|| PathBuf::from(WELL_KNOWN[0]));
            let ready = named(&file, data.as_deref())?;
            let stopped = dev::stop(&ready.data, Some(ready.pid)).await;
            if let Err(StopError::NotRunning { .. }) = stopped {
                let message = format!("ready file {} was left by a cluster that has ended", file.display());
                let help = "nothing has to be stopped; `kith dev` replaces the file";
                return Err(Failure::new(ErrorCode::StaleReadyFile, message, help).into());
            }
            (ready.data, stopped)
        }
    };
    let stopped = stopped.map_err(|error| stop_failure(&error))?;
    output::print(format, &StopReply { stopped, data }, |reply| {
        format!("kith dev, process {}, has stopped\n", reply.stopped)
    })?;
    Ok(Exit::Done)
}

/// Returns the content of a ready file. If `data` is given, the file must name that data directory.
fn named(file: &Path, data: Option<&Path>) -> Result<ReadyDocument, Failure> {
    if !file.exists() {
        let message = format!("there is no ready file {}", file.display());
        let help = "run it in the folder where `kith dev` was started, or name the cluster with --ready-file or --data";
        return Err(Failure::new(ErrorCode::NoCluster, message, help));
    }
    let Some(ready) = ReadyDocument::read(file) else {
        let message = format!("{} is not a ready file", file.display());
        return Err(Failure::new(
            ErrorCode::ReadyFileUnreadable,
            message,
            "name the ready file of a `kith dev`, or its --data directory",
        ));
    };
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match data {
        Some(data) if real(data) != real(&ready.data) => {
            let message = format!(
                "ready file {} names a cluster with the data directory {}, not {}",
                file.display(),
                ready.data.display(),
                data.display()
            );
            Err(Failure::usage(message, "give either --ready-file or --data"))
        }
        _ => Ok(ready),
    }
}

fn stop_failure(error: &StopError) -> Failure {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    Failure { code: error.code(), message: format!("{error}{source}"), help: error.help() }
}
