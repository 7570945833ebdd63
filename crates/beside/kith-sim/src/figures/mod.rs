//! The figures of Moolle, drawn from production decisions, and two further reports.
//!
//! A figure is a value: its title, its parameters, its assumptions, and a function from a seed to a [`Drawing`]. Each family
//! of figures has a file, and each figure has a line in [`ALL`].

mod cache;
mod drawing;
mod early;
mod fan_out;
mod latency;
mod means;
mod parallel;
mod penalty;
mod svg;
mod tail;
mod write;

pub use cache::{CacheRun, Population, TraceOptions, run as run_cache};
pub use drawing::{Axis, Drawing, Panel, Series, Style, Table};
pub use means::{MeanPlan, mean_plan};
pub use tail::{LOADS, Load, mixed, rivals};
pub use write::{WriteError, write, write_drawing};

use std::fmt;

/// The size of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The size that `kith sim` draws.
    Full,
    /// A size that takes seconds and is large enough to test the shape of a figure.
    Reduced,
}

/// One figure.
#[derive(Clone, Copy)]
pub struct Figure {
    /// The name, as users type it.
    pub name: &'static str,
    /// The title above the figure.
    pub title: &'static str,
    /// The result that the figure shows, and the section of the paper.
    pub shows: &'static str,
    /// The parameters of the simulation.
    pub parameters: &'static [&'static str],
    /// The assumptions that replace numbers that the paper does not give.
    pub assumptions: &'static [&'static str],
    draw: fn(Size, u64) -> Drawing,
}

/// All figures in the order of the paper, followed by the reports.
pub static ALL: &[Figure] = &[
    latency::FIGURE_5,
    latency::FIGURE_6,
    fan_out::FIGURE_7A,
    fan_out::FIGURE_7B,
    latency::FIGURE_8A,
    latency::FIGURE_8B,
    penalty::FIGURE_9A,
    early::FIGURE_9B,
    early::FIGURE_9C,
    early::FIGURE_9D,
    tail::TAIL,
    cache::CACHE,
];

/// Returns the figure with the given name; `None` if there is none.
pub fn by_name(name: &str) -> Option<&'static Figure> {
    ALL.iter().find(|figure| figure.name == name)
}

impl Figure {
    /// Simulates and draws the figure. Equal seeds give equal drawings.
    pub fn run(&self, seed: u64) -> Drawing {
        self.run_at(Size::Full, seed)
    }

    /// Simulates and draws the figure at the given size.
    pub fn run_at(&self, size: Size, seed: u64) -> Drawing {
        (self.draw)(size, seed)
    }
}

impl fmt::Debug for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Figure").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Formats the figure for `kith sim fan-out --list`.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  {}", self.name, self.title)?;
        writeln!(f, "    {}", self.shows)?;
        for (word, lines) in [("with", self.parameters), ("assumes", self.assumptions)] {
            for line in lines {
                writeln!(f, "    {word} {line}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_the_issue_can_be_named_and_says_what_it_assumes() {
        for name in ["5", "6", "7a", "7b", "8a", "8b", "9a", "9b", "9c", "9d", "tail", "cache"] {
            let figure = by_name(name).unwrap_or_else(|| panic!("figure {name}"));
            assert!(!figure.parameters.is_empty() && !figure.assumptions.is_empty(), "{name}");
            assert!(figure.to_string().contains(figure.title));
        }
        assert!(by_name("9e").is_none());
        assert!(by_name("9d").unwrap().to_string().contains("100 clients"));
    }
}
