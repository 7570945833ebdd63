//! `kith top`: shows the load, latencies, pending keys, hedges, partial answers and failures of a cluster, and
//! refreshes them every second (`docs/design/0014-live-view.md`). It only reads: it asks routers and nodes for their
//! counters, and changes nothing.
//!
//! ```text
//! sample (counters of all processes) ─► rates, view: what happened between two samples ─► table ─► screen or JSON
//! ```
//!
//! - `sample`: asks all processes at about the same time. It is the only module that talks to the cluster.
//! - `rates`, `view`: pure functions from two samples to what is shown. `view/live.rs` is about live graphs.
//! - `table`: the view as tables, fitted to the width of the terminal.
//! - `screen`, `keys`: the alternate screen, and keys that are pressed.
//!
//! [`run`] is the loop: without a terminal, it prints one table or one line of JSON for each interval. A router that
//! restarts does not end the display.
//!
//! To show something new, count it in the process (`counters.rs` of `kith-router`, or the replies of nodes), carry it
//! in the sample, and add it to `view` and `table`.

mod keys;
mod rates;
mod sample;
mod screen;
mod table;
mod view;

use rates::Rates;
use view::{DatabaseView, LiveGraphView, LiveNodeView, NodeView, RouterView, View};

use crate::{
    connect::TargetFlags,
    failure::Exit,
    output::{self, Format},
};
use anyhow::Context;
use clap::Args;
use sample::Sampler;
use screen::Screen;
use std::{
    io::{self, IsTerminal},
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{Instant, MissedTickBehavior, interval_at},
};

/// The minimum interval. Counters over a shorter time are mostly noise.
const INTERVAL_MIN: f64 = 0.1;
/// The maximum interval: longer than anybody watches.
const INTERVAL_MAX: f64 = 3_600.0;

/// Flags of `kith top`.
#[derive(Clone, Debug, Args)]
pub struct TopFlags {
    /// Print one interval and exit
    #[arg(long)]
    once: bool,
    /// Length of the interval that rates and percentiles cover
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if (INTERVAL_MIN..=INTERVAL_MAX).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("it must be {INTERVAL_MIN} to {INTERVAL_MAX} seconds"))
    }
}

/// Shows the cluster until `q` is pressed or the process gets a signal to end. Without a terminal, prints one table, or
/// one line of JSON, per interval.
///
/// # Errors
/// If no router answers at the start or, with `--once`, at the end.
pub async fn run(target: &TargetFlags, format: Format, flags: &TopFlags) -> anyhow::Result<Exit> {
    let mut sampler = Sampler::connect(target).await?;
    let mut before = sampler.sample().await?;
    let live = !flags.once && format == Format::Table && io::stdout().is_terminal();
    let mut screen = live.then(Screen::open).transpose()?;
    let mut pressed_keys = keys::read(live);
    let mut ended = signal(SignalKind::terminate()).context("wait for signals")?;
    let mut tick = interval_at(Instant::now() + flags.interval, flags.interval);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            _ = ended.recv() => return Ok(Exit::Done),
            Some(key) = pressed_keys.recv() => {
                if matches!(key, b'q' | b'Q') {
                    return Ok(Exit::Done);
                }
                continue;
            }
            pressed = tokio::signal::ctrl_c() => {
                pressed.context("wait for signals")?;
                return Ok(Exit::Done);
            }
        }
        let after = match (sampler.sample().await, &mut screen) {
            (Ok(after), _) => after,
            // A router that restarts is not a reason to end the display.
            (Err(error), Some(screen)) => {
                screen.show(&format!("{error:#}\n"))?;
                continue;
            }
            (Err(error), None) => return Err(error),
        };
        let view = view::view(&before, &after);
        match &mut screen {
            Some(screen) => {
                let width = screen.width();
                screen.show(&table::render(&view, Some(width)))?;
            }
            None => output::print(format, &view, |view| table::render(view, None))?,
        }
        if flags.once {
            return Ok(Exit::Done);
        }
        before = after;
    }
}
