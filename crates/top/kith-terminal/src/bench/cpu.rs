//! CPU time by process, from the scheduler's counters. Unlike latencies, it hardly depends on other processes of a shared
//! machine.

use std::{fs, time::Duration};

/// The processes of each part, such as `("nodes", [17, 18, 19])`.
pub type Parts = Vec<(&'static str, Vec<u32>)>;

/// The CPU time of each part so far.
pub fn now(parts: &Parts) -> Vec<Duration> {
    parts.iter().map(|(_, pids)| pids.iter().map(|pid| of_process(*pid)).sum()).collect()
}

/// The CPU time of all threads of a process.
fn of_process(pid: u32) -> Duration {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Duration::ZERO };
    let ran = tasks.flatten().filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(ran.sum())
}
