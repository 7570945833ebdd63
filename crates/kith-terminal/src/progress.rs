//! How far something is that takes a while: a bar on a terminal, else a line on standard error every few seconds.

use indicatif::{ProgressBar, ProgressStyle};
use std::{
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

/// Without a terminal: quiet enough for a log, often enough to see that it lives.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// An estimate from less than this is a guess.
const ESTIMATE_AFTER: Duration = Duration::from_secs(1);
/// Steps of a bar, whatever it counts.
const BAR_STEPS: u64 = 1_000;

/// Tells how far the stages of a command are, one after the other.
#[derive(Debug)]
pub struct ProgressLine {
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
    line_due: Instant,
    stage: String,
    /// When the stage began.
    started: Instant,
}

/// How far a stage is, in units of its own.
#[derive(Clone, Debug)]
pub struct StageProgress {
    /// What is done of `total`.
    pub done: u64,
    /// 0 if unknown.
    pub total: u64,
    /// What else there is to tell of it.
    pub detail: String,
}

impl ProgressLine {
    /// Silent until there is something to tell.
    #[must_use]
    pub fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:30} {msg}").expect("the template is a constant");
            ProgressBar::new(BAR_STEPS).with_style(style.progress_chars("##."))
        });
        let now = Instant::now();
        Self { bar, line_due: now + LINE_INTERVAL, stage: String::new(), started: now }
    }

    /// Begins a stage, unless it has begun; how long ago it did.
    pub fn enter(&mut self, stage: &str) -> Duration {
        if self.stage != stage {
            (self.stage, self.started) = (stage.to_owned(), Instant::now());
        }
        self.started.elapsed()
    }

    /// Tells how far the stage is, if a line is due or a bar shows it.
    pub fn tell(&mut self, standing: &StageProgress) {
        let StageProgress { done, total, .. } = *standing;
        let text = || line(&self.stage, standing, self.started.elapsed());
        if let Some(bar) = &self.bar {
            bar.set_position(done.saturating_mul(BAR_STEPS) / total.max(done).max(1));
            bar.set_message(text());
        } else if self.line_due <= Instant::now() {
            eprintln!("{}", text());
            self.line_due = Instant::now() + LINE_INTERVAL;
        }
    }

    /// What is told next is not to wait.
    pub fn hurry(&mut self) {
        self.line_due = Instant::now();
    }

    /// Prints a text of its own, whether or not anybody looks at the bar.
    pub fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Leaves no trace on a terminal.
    pub fn clear(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Default for ProgressLine {
    fn default() -> Self {
        Self::new()
    }
}

fn line(stage: &str, standing: &StageProgress, elapsed: Duration) -> String {
    let StageProgress { done, total, detail } = standing;
    let mut text = format!("{stage}: ");
    if *total != 0 {
        text += &format!("{} %, ", done.saturating_mul(100) / total);
    }
    text += detail;
    if ESTIMATE_AFTER <= elapsed && *done != 0 && done < total {
        let left = elapsed.as_secs_f64() * (total - done) as f64 / *done as f64;
        text += &format!(", {left:.0} s left");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_share_and_time_left() {
        let standing = StageProgress { done: 25, total: 100, detail: "7 lines".to_owned() };
        assert_eq!(
            line("reading a.csv", &standing, Duration::from_secs(3)),
            "reading a.csv: 25 %, 7 lines, 9 s left"
        );
        assert_eq!(
            line("reading a.csv", &standing, Duration::from_millis(3)),
            "reading a.csv: 25 %, 7 lines"
        );
        let pipe = StageProgress { total: 0, ..standing };
        assert_eq!(line("reading -", &pipe, Duration::from_secs(3)), "reading -: 7 lines");
    }

    #[test]
    fn what_is_not_to_wait_is_told_at_once() {
        let mut line = ProgressLine { bar: None, ..ProgressLine::new() };
        let standing = StageProgress { done: 1, total: 2, detail: String::new() };
        line.enter("publishing");
        let due = line.line_due;
        line.tell(&standing);
        assert_eq!(line.line_due, due, "no line is due yet");
        line.hurry();
        assert!(line.line_due < due);
        line.tell(&standing);
        assert!(due <= line.line_due, "the next line is due in a while");
    }
}
