//! The outcome of a fan-out as text.

use kith_routing::execution::{HedgeAbort, Outcome, Verdict};
use kith_routing::load::RequestEnd;
use kith_sim::scenario::cluster::{count, counted, list};

pub fn why(end: RequestEnd) -> &'static str {
    match end {
        RequestEnd::Answered => "answered",
        RequestEnd::Failed => "its node is down",
        RequestEnd::Cancelled => "no longer needed",
        RequestEnd::Overtaken => "another was first",
        RequestEnd::TimedOut => "out of time",
    }
}

pub fn describe(outcome: &Outcome) -> Vec<String> {
    let verdict = match outcome.verdict {
        Verdict::Complete if outcome.stopped_early => "settled early",
        Verdict::Complete => "complete",
        Verdict::Incomplete => "incomplete",
        Verdict::Failed => "failed",
        Verdict::Cancelled => "cancelled",
    };
    let mut end = format!(
        "over: {verdict}, {} of {} answered, {}",
        outcome.answered,
        count(outcome.keys as usize, "key"),
        count(outcome.requests as usize, "request")
    );
    if 0 < outcome.retries {
        end += &format!(", {}", counted(outcome.retries as usize, "retry", "retries"));
    }
    if 0 < outcome.hedges.sent {
        let (sent, won) = (outcome.hedges.sent, outcome.hedges.won);
        end += &format!(", {} of which {won} won", count(sent as usize, "hedge"));
    }
    if 0 < outcome.abandoned {
        end += &format!(", {} no longer needed", count(outcome.abandoned as usize, "key"));
    }
    let mut lines = vec![end];
    for missing in &outcome.missing {
        let tried = if missing.tried.is_empty() { "nobody".to_owned() } else { list(&missing.tried) };
        let keys = if missing.keys == 1 { String::new() } else { format!(" ({} keys)", missing.keys) };
        lines.push(format!("{}{keys} is missing: {}; asked {tried}", missing.partition, missing.reason));
    }
    // A request that was answered before it was due is not worth reporting.
    let aborts = HedgeAbort::ALL.into_iter().filter(|reason| *reason != HedgeAbort::Answered);
    let aborted = aborts.filter(|reason| 0 < outcome.hedges.aborted(*reason));
    lines.extend(
        aborted.map(|reason| format!("not hedged: {} {}", reason.name(), outcome.hedges.aborted(reason))),
    );
    lines
}
