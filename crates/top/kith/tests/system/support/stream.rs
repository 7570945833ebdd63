//! Reads without a pause while something else happens to a cluster.

use super::cluster::Cluster;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

/// The fault in an answer; nothing if it is right.
pub type Judge = fn(request: &Value, answer: &Value) -> Result<(), String>;

/// One `kith run` that is never without a request.
pub struct Stream {
    stop: Arc<AtomicBool>,
    answers: Arc<AtomicUsize>,
    feeder: Option<JoinHandle<()>>,
    reader: Option<JoinHandle<Vec<String>>>,
    child: Child,
}

/// A test that fails must not leave a process behind that asks a cluster which is gone.
impl Drop for Stream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It has ended already, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Stream {
    /// Asks `requests` again and again, several at a time, and judges every answer.
    pub fn start(cluster: &Cluster, requests: Vec<Value>, concurrency: u32, judge: Judge) -> Self {
        Self::start_as(cluster, &[], requests, concurrency, judge)
    }

    /// As [`Stream::start`], with further arguments of `kith run`.
    pub fn start_as(
        cluster: &Cluster,
        arguments: &[&str],
        requests: Vec<Value>,
        concurrency: u32,
        judge: Judge,
    ) -> Self {
        let mut command = cluster.kith(&["run", "--input", "-", "--concurrency", &concurrency.to_string()]);
        command.args(arguments);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("kith run starts");
        let mut input = child.stdin.take().expect("its input is piped");
        let output = child.stdout.take().expect("its output is piped");
        let (stop, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let lines: Vec<String> = requests.iter().map(|request| format!("{request}\n")).collect();
        let stopped = Arc::clone(&stop);
        let feeder = thread::spawn(move || {
            let go_on = |_: &&String| !stopped.load(Ordering::Relaxed);
            // If it does not read any more, it has ended, which its status tells.
            let _ =
                lines.iter().cycle().take_while(go_on).try_for_each(|line| input.write_all(line.as_bytes()));
        });
        let count = Arc::clone(&answers);
        let reader = thread::spawn(move || read(output, &requests, judge, &count));
        Self { stop, answers, feeder: Some(feeder), reader: Some(reader), child }
    }

    /// Answers so far.
    pub fn answers(&self) -> usize {
        self.answers.load(Ordering::Relaxed)
    }

    /// Ends it; how many answers there were. Panics if any was wrong, or an error.
    pub fn end(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        let feeder = self.feeder.take().expect("it ends once");
        feeder.join().expect("the feeder ends");
        let reader = self.reader.take().expect("it ends once");
        let wrong = reader.join().expect("the reader ends");
        let status = self.child.wait().expect("kith run ends");
        let answers = self.answers.load(Ordering::Relaxed);
        let shown = wrong.iter().take(3).cloned().collect::<Vec<_>>().join("\n");
        assert!(wrong.is_empty(), "{} of {answers} answers are wrong:\n{shown}", wrong.len());
        assert!(status.success(), "kith run: {status}");
        answers
    }
}

fn read(output: ChildStdout, requests: &[Value], judge: Judge, count: &AtomicUsize) -> Vec<String> {
    let mut wrong = Vec::new();
    for (line, request) in BufReader::new(output).lines().zip(requests.iter().cycle()) {
        let answer = serde_json::from_str(&line.expect("its output is text")).expect("each line is JSON");
        if let Err(why) = judge(request, &answer) {
            wrong.push(why);
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
    wrong
}
