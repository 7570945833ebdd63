//! Shows the progress of a load or push: files read, components written, nodes that fetch, and nodes that are waited for.

use crate::table::{bytes, count};
use kith_build::{LoadProgress, OnProgress, Progress};
use kith_terminal::progress::{ProgressLine, StageProgress};
use kith_wire::v1;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// A node counts as away until the router has not reported it for this long. The router repeats its report more often.
const AWAY_FOR: Duration = Duration::from_secs(10);
/// The number of nodes that a line names, of those that are waited for.
const NODES_SHOWN: usize = 8;

/// Shows the progress of a load or push.
#[derive(Default)]
pub struct Meter {
    line: ProgressLine,
    /// Bytes done and total bytes, by node and component.
    fetched: BTreeMap<(u32, String), (u64, u64)>,
    /// The rate in bytes per second to which a node slows its fetches down to protect reads, by node.
    held_back: BTreeMap<u32, u64>,
    /// Nodes that the router cannot reach, with the time of its last report.
    away: BTreeMap<u32, Instant>,
    /// The number of times that each node was away, which is the number of times that it was tried again.
    retries: BTreeMap<u32, u32>,
}

/// Runs `work` and shows its progress.
pub fn metered<T>(work: impl FnOnce(&mut OnProgress<'_>) -> T) -> T {
    let mut meter = Meter::default();
    let done = work(&mut |progress| meter.on(progress));
    meter.clear();
    done
}

impl Meter {
    /// Shows the progress of a build or an upload.
    pub fn on(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Graph(progress) => self.on_load(&progress),
            Progress::Rows { stage, rows, done, total } => self.on_rows(stage, rows, done, total),
            Progress::Bytes { stage, done, total } => self.on_bytes(stage, done, total),
            _ => {}
        }
    }

    /// Shows the files being read and the components being written.
    fn on_load(&mut self, progress: &LoadProgress<'_>) {
        match progress {
            LoadProgress::Reading(reading) => {
                let file = reading.path.file_name().unwrap_or(reading.path.as_os_str()).display();
                let elapsed = self.line.enter(&format!("reading {file}"));
                let rate = per_second(reading.lines, elapsed);
                let detail = format!("{} lines, {rate} lines/s", count(reading.lines));
                self.line.tell(&StageProgress {
                    done: reading.bytes_read,
                    total: reading.bytes_total,
                    detail,
                });
            }
            LoadProgress::Building { component, progress } => {
                self.line.enter(&format!("writing {component}"));
                let (done, total) = (progress.partitions_done, progress.partitions_total);
                let detail = format!("{done} of {total} partitions");
                self.line.tell(&StageProgress { done: done.into(), total: total.into(), detail });
            }
            _ => {}
        }
    }

    /// Shows the rows of a stage. `done` and `total` measure progress in any unit; `total` is 0 if it is unknown.
    fn on_rows(&mut self, stage: &str, rows: u64, done: u64, total: u64) {
        let elapsed = self.line.enter(stage);
        let rate = per_second(rows, elapsed);
        let detail = format!("{} rows, {rate} rows/s", count(rows));
        self.line.tell(&StageProgress { done, total, detail });
    }

    /// Shows the bytes of a stage.
    fn on_bytes(&mut self, stage: &str, done: u64, total: u64) {
        let elapsed = self.line.enter(stage);
        let rate = bytes_per_second(done, elapsed);
        let detail = format!("{} of {}, {rate}", bytes(done), bytes(total));
        self.line.tell(&StageProgress { done, total, detail });
    }

    /// Prints a line, even if no progress is shown.
    pub fn note(&self, text: &str) {
        self.line.note(text);
    }

    /// Shows the nodes that fetch what was built, and the nodes that are waited for; the steps of the latter have no
    /// component.
    pub fn on_publish(&mut self, step: &v1::PushProgress) {
        let now = Instant::now();
        let elapsed = self.line.enter("publishing");
        self.away.retain(|_, said| now - *said < AWAY_FOR);
        if step.component.is_empty() {
            if self.away.insert(step.node, now).is_none() {
                // Show at once which node is waited for.
                self.line.hurry();
                *self.retries.entry(step.node).or_default() += 1;
            }
        } else {
            self.away.remove(&step.node);
            match step.held_back {
                0 => self.held_back.remove(&step.node),
                rate => self.held_back.insert(step.node, rate),
            };
            self.fetched.insert((step.node, step.component.clone()), (step.bytes_done, step.bytes_total));
        }
        let away: Vec<u32> = self.away.keys().copied().collect();
        let mut standing = published(&self.fetched, &away, &self.retries, elapsed);
        standing.detail += &held_back(&self.held_back);
        self.line.tell(&standing);
    }

    /// Removes the progress line from the terminal.
    pub fn clear(&mut self) {
        self.line.clear();
    }
}

/// Returns the progress of a publication: how much the nodes have fetched, which nodes lag and by how much, and which are
/// away.
fn published(
    fetched: &BTreeMap<(u32, String), (u64, u64)>,
    away: &[u32],
    retries: &BTreeMap<u32, u32>,
    elapsed: Duration,
) -> StageProgress {
    let done = fetched.values().map(|(done, _)| done).sum();
    let total = fetched.values().map(|(_, total)| total).sum();
    let mut nodes: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for ((node, _), (done, total)) in fetched {
        let sum = nodes.entry(*node).or_default();
        (sum.0, sum.1) = (sum.0 + done, sum.1 + total);
    }
    let mut detail = format!("{} of {} at {} nodes", bytes(done), bytes(total), nodes.len());
    let behind = nodes.iter().filter(|(node, (done, total))| done < total && !away.contains(node));
    let behind = behind.map(|(node, (done, total))| {
        let rate = bytes_per_second(*done, elapsed);
        let attempt = retries.get(node).map(|retries| format!(", attempt {}", retries + 1));
        let attempt = attempt.unwrap_or_default();
        format!("{node} ({} of {}, {rate}{attempt})", bytes(*done), bytes(*total))
    });
    let away = away.iter().map(u32::to_string);
    for (nodes, suffix) in
        [(behind.collect::<Vec<_>>(), ""), (away.collect::<Vec<_>>(), ", which cannot be reached")]
    {
        let more = nodes.len().saturating_sub(NODES_SHOWN);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        if !nodes.is_empty() {
            let shown = nodes[..nodes.len().min(NODES_SHOWN)].join(", ");
            detail += &format!(", waiting for node {shown}{more}{suffix}");
        }
    }
    StageProgress { done, total, detail }
}

/// Returns the part of the line that names the nodes whose fetches are slowed down.
fn held_back(nodes: &BTreeMap<u32, u64>) -> String {
    let shown = nodes.iter().take(NODES_SHOWN);
    let shown: Vec<String> = shown.map(|(node, rate)| format!("{node} (to {}/s)", bytes(*rate))).collect();
    match nodes.len().saturating_sub(shown.len()) {
        _ if nodes.is_empty() => String::new(),
        0 => format!(", held back to protect reads: node {}", shown.join(", ")),
        more => format!(", held back to protect reads: node {} and {more} more", shown.join(", ")),
    }
}

fn per_second(number: u64, elapsed: Duration) -> String {
    count(rate(number, elapsed))
}

fn bytes_per_second(number: u64, elapsed: Duration) -> String {
    format!("{}/s", bytes(rate(number, elapsed)))
}

fn rate(number: u64, elapsed: Duration) -> u64 {
    (number as f64 / elapsed.as_secs_f64().max(1e-3)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_reported_with_its_thousands_apart() {
        assert_eq!(per_second(3_000_000, Duration::from_secs(2)), "1,500,000");
    }

    #[test]
    fn the_nodes_that_lag_are_named() {
        let mut steps = BTreeMap::new();
        steps.insert((0, "connection".to_owned()), (1024, 1024));
        steps.insert((1, "connection".to_owned()), (512, 1024));
        steps.insert((2, "connection".to_owned()), (1024, 1024));
        steps.insert((2, "school".to_owned()), (0, 1024));
        let second = Duration::from_secs(1);
        let standing = published(&steps, &[], &BTreeMap::from([(2, 1)]), second);
        assert_eq!((standing.done, standing.total), (2560, 4096));
        assert_eq!(
            standing.detail,
            "2.5 KiB of 4.0 KiB at 3 nodes, waiting for node 1 (512 B of 1.0 KiB, 512 B/s), \
             2 (1.0 KiB of 2.0 KiB, 1.0 KiB/s, attempt 2)"
        );
        let standing = published(&steps, &[2, 3], &BTreeMap::new(), second);
        assert_eq!(
            standing.detail,
            "2.5 KiB of 4.0 KiB at 3 nodes, waiting for node 1 (512 B of 1.0 KiB, 512 B/s), \
             waiting for node 2, 3, which cannot be reached"
        );
    }

    #[test]
    fn nodes_that_are_held_back_are_named() {
        assert_eq!(held_back(&BTreeMap::new()), "");
        let nodes = |count: u32| (0..count).map(|node| (node, 4 << 20)).collect();
        assert_eq!(
            held_back(&nodes(2)),
            ", held back to protect reads: node 0 (to 4.0 MiB/s), 1 (to 4.0 MiB/s)"
        );
        assert!(held_back(&nodes(10)).ends_with("7 (to 4.0 MiB/s) and 2 more"));
    }

    #[test]
    fn a_node_is_away_until_it_answers() {
        let mut meter = Meter::default();
        let step = |node: u32, component: &str| v1::PushProgress {
            node,
            component: component.to_owned(),
            ..Default::default()
        };
        meter.on_publish(&step(0, "connection"));
        meter.on_publish(&step(3, ""));
        assert!(meter.away.contains_key(&3));
        meter.on_publish(&step(3, "connection"));
        assert!(meter.away.is_empty());
    }
}
