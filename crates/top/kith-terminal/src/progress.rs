//! Shows the progress of a long command: as a bar on a terminal, otherwise as a line on standard error every few seconds.

use indicatif::{ProgressBar, ProgressStyle};
use std::{
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

/// The interval between lines without a terminal: long enough for a log, and short enough to show that the command still
/// runs.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// An estimate of the remaining time is shown after this time; an earlier one would be a guess.
const ESTIMATE_AFTER: Duration = Duration::from_secs(1);
/// The number of steps of the bar, whatever the unit of the stage.
const BAR_STEPS: u64 = 1_000;

/// Shows the progress of the stages of a command, one after the other.
#[derive(Debug)]
pub struct ProgressLine {
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
    line_due: Instant,
    stage: String,
    /// The time at which the stage began.
    started: Instant,
}

/// The progress of a stage, in the stage's own unit.
#[derive(Clone, Debug)]
pub struct StageProgress {
    /// The amount done, of `total`.
    pub done: u64,
    /// The total amount; 0 if it is unknown.
    pub total: u64,
    /// Further text about the stage.
    pub detail: String,
}

impl ProgressLine {
    /// Returns a progress line that shows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:30} {msg}").expect("the template is a constant");
            ProgressBar::new(BAR_STEPS).with_style(style.progress_chars("##."))
        });
        let now = Instant::now();
        Self { bar, line_due: now + LINE_INTERVAL, stage: String::new(), started: now }
    }

    /// Begins a stage, unless it has already begun. Returns the time since its beginning.
    pub fn enter(&mut self, stage: &str) -> Duration {
        if self.stage != stage {
            (self.stage, self.started) = (stage.to_owned(), Instant::now());
        }
        self.started.elapsed()
    }

    /// Shows the progress of the stage on the bar, or as a line if one is due.
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

    /// Makes the next line due at once.
    pub fn hurry(&mut self) {
        self.line_due = Instant::now();
    }

    /// Prints a text above the bar, or as a line if there is no bar.
    pub fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Removes the bar from the terminal.
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
    fn what_is_not_to_wait_is_reported_at_once() {
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
