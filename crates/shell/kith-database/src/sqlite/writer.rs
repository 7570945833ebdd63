//! The one thread that writes to a file. It takes all waiting jobs, runs each in a savepoint of one transaction, and
//! commits them together, so that they share one wait for the disk. A single job needs no savepoint.

use super::{
    failure::{commit_failure, failure},
    work::{Work, WorkResult},
};
use crate::{CommitError, DatabaseError};
use parking_lot::Mutex;
use rusqlite::Connection;
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// The most jobs in one transaction.
const GROUP_MAX: usize = 256;
/// The most jobs in the queue. Further callers wait for room.
const WAITING_MAX: usize = 1024;

type Answer = Result<WorkResult, CommitError>;

struct Job {
    work: Work,
    answer: oneshot::Sender<Answer>,
}

/// A handle to the thread. When it is closed or dropped, the thread finishes its jobs and ends.
pub(super) struct Writer {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread with its connection.
    pub fn start(connection: Connection) -> std::io::Result<Self> {
        let (jobs, waiting) = mpsc::channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("kith-database".to_owned());
        let thread = thread.spawn(move || run(&connection, waiting))?;
        Ok(Self { jobs: Mutex::new(Some(jobs)), thread: Mutex::new(Some(thread)) })
    }

    /// Runs `work` in the next transaction.
    pub async fn run(&self, work: Work) -> Answer {
        let jobs = self.jobs.lock().clone();
        let closed = || DatabaseError::unavailable("it has been closed");
        let (answer, answered) = oneshot::channel();
        jobs.ok_or_else(closed)?.send(Job { work, answer }).await.map_err(|_| closed())?;
        answered.await.unwrap_or_else(|_| Err(CommitError::Unknown { reason: "its thread ended".to_owned() }))
    }

    /// Finishes the waiting jobs, and closes the connection. Blocks.
    pub fn close(&self) {
        self.jobs.lock().take();
        let thread = self.thread.lock().take();
        // The thread panics only because of a defect, and then the callers that wait for an answer learn of it.
        let _ = thread.map(JoinHandle::join);
    }
}

fn run(connection: &Connection, mut waiting: mpsc::Receiver<Job>) {
    while let Some(first) = waiting.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP_MAX
            && let Ok(job) = waiting.try_recv()
        {
            group.push(job);
        }
        let answers = commit(connection, &group);
        for (job, answer) in group.into_iter().zip(answers) {
            // The caller may have stopped waiting.
            let _ = job.answer.send(answer);
        }
    }
}

/// Runs one job in its own transaction.
fn commit_one(connection: &Connection, work: &Work) -> Answer {
    connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| failure(&error))?;
    let done = work.run(connection).and_then(|done| {
        connection.execute_batch("COMMIT").map_err(|error| commit_failure(&error))?;
        Ok(done)
    });
    if done.is_err() {
        roll_back(connection);
    }
    done
}

/// Runs a group of jobs in one transaction. Returns one answer per job.
fn commit(connection: &Connection, group: &[Job]) -> Vec<Answer> {
    if let [job] = group {
        return vec![commit_one(connection, &job.work)];
    }
    let all = |error: &CommitError| group.iter().map(|_| Err(error.clone())).collect();
    if let Err(error) = connection.execute_batch("BEGIN IMMEDIATE") {
        return all(&failure(&error).into());
    }
    let mut answers = Vec::with_capacity(group.len());
    for job in group {
        match savepoint(connection, &job.work) {
            Ok(answer) => answers.push(answer),
            Err(error) => {
                roll_back(connection);
                return all(&error.into());
            }
        }
    }
    match connection.execute_batch("COMMIT") {
        Ok(()) => answers,
        Err(error) => {
            roll_back(connection);
            // Refusals are not valid either, because they may depend on changes of this transaction.
            all(&commit_failure(&error))
        }
    }
}

/// Runs work in a savepoint. An outer error means that the whole transaction is lost.
fn savepoint(connection: &Connection, work: &Work) -> Result<Answer, DatabaseError> {
    let must = |statement: &str| connection.execute_batch(statement).map_err(|error| failure(&error));
    must("SAVEPOINT job")?;
    let answer = work.run(connection);
    match &answer {
        Ok(_) => must("RELEASE job")?,
        // SQLite has ended the transaction on its own, for example because the disk is full.
        Err(CommitError::NotWritten(error)) if connection.is_autocommit() => return Err(error.clone()),
        Err(_) => must("ROLLBACK TO job; RELEASE job")?,
    }
    Ok(answer)
}

fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        // If this fails, the next BEGIN fails too and reports the reason.
        let _ = connection.execute_batch("ROLLBACK");
    }
}
