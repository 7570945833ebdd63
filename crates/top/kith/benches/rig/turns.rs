//! Sides that answer the same questions in turn. Time is measured for each question, and CPU time for blocks of
//! questions.

use super::cpu::{self, Parts};
use kith_terminal::bench::stats::{Interval, median_interval};
use std::time::Duration;

/// The thoroughness of the check of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Every byte.
    Whole,
    /// The length and the beginning of each value, as a user of the values would read them. This check is used while
    /// CPU time is measured.
    Glance,
}

/// One way to get answers.
pub struct Side<'a> {
    pub name: &'static str,
    /// The processes whose CPU time it takes, the client first.
    pub parts: Parts,
    /// Asks the question of this number, checks the answer, and returns the time until it arrived.
    pub ask: Box<dyn FnMut(usize, Check) -> Duration + 'a>,
}

/// The amount of the measurements.
#[derive(Clone, Copy)]
pub struct Amount {
    /// The number of questions that all sides answer in turn.
    pub pairs: usize,
    /// The number of blocks for which CPU time is measured.
    pub blocks: usize,
    /// The number of questions in a block.
    pub block: usize,
}

/// The measurements of one side.
pub struct SideMeasurements {
    pub name: &'static str,
    /// The time of each question, in microseconds.
    took: Vec<f64>,
    parts: Vec<&'static str>,
    /// For each block and each part, the CPU time per question, in microseconds.
    cpu: Vec<Vec<f64>>,
}

/// The number of questions to each side before anything is measured, so that connections are open and caches are full.
const WARM_QUESTIONS: usize = 5;

/// Lets all sides answer the same questions in turn. The side that comes first changes.
pub fn take_turns(sides: &mut [Side<'_>], amount: Amount) -> Vec<SideMeasurements> {
    let mut seen: Vec<SideMeasurements> = sides
        .iter()
        .map(|side| SideMeasurements {
            name: side.name,
            took: Vec::new(),
            parts: side.parts.iter().map(|(name, _)| *name).collect(),
            cpu: Vec::new(),
        })
        .collect();
    for question in 0..WARM_QUESTIONS + amount.pairs {
        for turn in 0..sides.len() {
            let index = (question + turn) % sides.len();
            let took = (sides[index].ask)(question, Check::Whole);
            if WARM_QUESTIONS <= question {
                seen[index].took.push(took.as_secs_f64() * 1e6);
            }
        }
    }
    for block in 0..amount.blocks {
        for turn in 0..sides.len() {
            let index = (block + turn) % sides.len();
            let side = &mut sides[index];
            (side.ask)(block * amount.block, Check::Whole);
            let before = cpu::now(&side.parts);
            for question in block * amount.block..(block + 1) * amount.block {
                (side.ask)(question, Check::Glance);
            }
            let after = cpu::now(&side.parts);
            let used = after.iter().zip(&before).map(|(after, before)| after.saturating_sub(*before));
            seen[index].cpu.push(used.map(|used| used.as_secs_f64() * 1e6 / amount.block as f64).collect());
        }
    }
    seen
}

impl SideMeasurements {
    /// Formats the medians, such as `p50 4100 us; CPU client 1800 + servers 2000 = 3800 us`.
    pub fn describe(&self) -> String {
        let of = |part: usize| median(self.cpu.iter().map(|block| block[part]).collect());
        let parts: Vec<String> =
            self.parts.iter().enumerate().map(|(part, name)| format!("{name} {:.0}", of(part))).collect();
        let all = median(self.totals());
        format!("p50 {:.0} us; CPU {} = {all:.0} us", median(self.took.clone()), parts.join(" + "))
    }

    /// The ratio of the times of this side and another, question by question.
    pub fn time_to(&self, other: &Self) -> Interval {
        ratio(&self.took, &other.took)
    }

    /// The ratio of all CPU time of this side and another, block by block.
    pub fn cpu_to(&self, other: &Self) -> Interval {
        ratio(&self.totals(), &other.totals())
    }

    /// The ratio of the CPU time of all parts except the first, which is the client.
    pub fn server_cpu_to(&self, other: &Self) -> Interval {
        let of = |seen: &Self| seen.cpu.iter().map(|block| block[1..].iter().sum()).collect::<Vec<f64>>();
        ratio(&of(self), &of(other))
    }

    fn totals(&self) -> Vec<f64> {
        self.cpu.iter().map(|block| block.iter().sum()).collect()
    }
}

/// Formats an interval, such as `1.25 (1.20 to 1.31)`.
pub fn interval_text(interval: Interval) -> String {
    format!("{:.2} ({:.2} to {:.2})", interval.median, interval.low, interval.high)
}

fn ratio(ours: &[f64], theirs: &[f64]) -> Interval {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    median_interval(&ratios).expect("something was measured")
}

fn median(values: Vec<f64>) -> f64 {
    median_interval(&values).expect("something was measured").median
}
