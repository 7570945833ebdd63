//! A query's plan as text for people: for each round, the keys and times of each node; and an explanation of the names in
//! it.

use super::{Side, bytes, count, fitted, fitted_with_note, micros, plural, screen_width, table, wrapped};
use crate::reply::{ExplainReply, InputsReply, ProfileReply, RequestReply, RoundReply};
use kith_routing::{fan_out, policy};

/// The width of a timeline, in characters.
const BAR_CHARS: u64 = 32;
/// The width of a timeline on a narrow terminal.
const BAR_CHARS_MIN: u64 = 12;

/// The columns that are left out on a narrow terminal, the least important first.
const LESS_IMPORTANT: [&str; 4] = ["reply", "service", "timeline", "group"];

/// Returns the plan of a query that was run.
pub fn render(profile: &ProfileReply) -> String {
    render_for(profile, screen_width())
}

/// As [`render`], for a terminal of this width.
pub fn render_for(profile: &ProfileReply, screen: Option<usize>) -> String {
    let mut text = format!("{}, {}", summary(profile), micros(profile.total_us));
    if !profile.cache.is_empty() {
        text += &format!(", cache {}", profile.cache);
    }
    text += &wasted(profile);
    text = wrapped(&text, screen);
    for (index, round) in profile.rounds.iter().enumerate() {
        let took = format!(
            ", took {}, {}{}",
            micros(round.took_us),
            plural(round.merged_ids, "merged id"),
            if round.ended_early { ", ended early" } else { "" }
        );
        text += &wrapped(&(heading(index, round) + &took), screen);
        text += &requests(round, profile.total_us, screen);
    }
    text + &wrapped(&legend(profile), screen)
}

/// Returns the plan of a query that was not run.
pub fn explain(reply: &ExplainReply) -> String {
    explain_for(reply, screen_width())
}

/// As [`explain`], for a terminal of this width.
pub fn explain_for(reply: &ExplainReply, screen: Option<usize>) -> String {
    let mut text = format!("{}\n", summary(&reply.plan));
    for (index, round) in reply.plan.rounds.iter().enumerate() {
        text += &heading(index, round);
        text += "\n";
        text += &planned(round);
        text += &round.inputs.as_ref().map(|inputs| decision(round, inputs)).unwrap_or_default();
    }
    text += &legend(&reply.plan);
    for note in &reply.notes {
        text += &format!("note: {note}\n");
    }
    wrapped(&text, screen)
}

fn summary(profile: &ProfileReply) -> String {
    let parts = [
        plural(profile.rounds.len() as u64, "round"),
        plural(profile.requests.into(), "request"),
        plural(profile.nodes.into(), "node"),
        plural(profile.groups.into(), "group"),
    ];
    parts.join(", ")
}

/// Returns the requests that were made twice, and their outcome.
fn wasted(profile: &ProfileReply) -> String {
    let requests = || profile.rounds.iter().flat_map(|round| &round.requests);
    let hedges = || requests().filter(|request| request.cause == "hedge");
    let won = hedges().filter(|request| request.won).count();
    let keys: u64 = requests().filter(|request| !request.won).map(|request| request.keys).sum();
    let mut text = String::new();
    if let Some(age) = profile.metadata_age_ms {
        text += &format!(", metadata {:.0} s old: this router may have missed a swap", age as f64 / 1e3);
    }
    if 0 < profile.hedges {
        text += &format!(", {}, {won} won", plural(profile.hedges.into(), "hedge"));
    }
    if 0 < keys {
        text += &format!(", {} requested in vain", plural(keys, "key"));
    }
    text
}

fn heading(index: usize, round: &RoundReply) -> String {
    let mut text =
        format!("\nround {}: {} ({}), {}", index + 1, round.name, round.kind, plural(round.keys, "key"));
    if !round.controller.is_empty() {
        text += &format!(", {} by {}", plural(round.groups_allowed.into(), "group"), round.controller);
        if !round.selector.is_empty() {
            text += &format!(" for {}", round.selector);
        }
        let RoundReply { groups_asked: asked, groups_allowed: allowed, .. } = *round;
        if allowed < asked {
            text += &format!(" ({asked} asked for, but there are no more)");
        } else if asked < allowed {
            text += &format!(" ({asked} asked for, but one is the minimum)");
        }
    }
    if !round.policy.is_empty() {
        text += &format!(", policy {}", round.policy);
    }
    if 1 < round.requests.len() {
        text += &format!(", busiest/mean {:.2}", round.busiest_over_mean);
    }
    text
}

/// Returns who decided how many groups take part, and the inputs of the decision.
fn decision(round: &RoundReply, inputs: &InputsReply) -> String {
    let mut text = match (inputs.controller.as_str(), round.selector.as_str()) {
        ("", _) => "decided by the caller, without a controller".to_owned(),
        (controller, "") => format!("decided by {controller}, the default for {}", round.kind),
        (controller, selector) => {
            format!("decided by {controller}, which the settings choose for {selector}")
        }
    };
    text += &format!(
        "\ninputs: operation {}, kind {}, workflow {}, {}; {} of {}",
        inputs.operation,
        round.kind,
        inputs.workflow,
        plural(round.keys, "key"),
        plural(inputs.groups.into(), "group"),
        plural(inputs.nodes_per_group.into(), "node"),
    );
    text += &format!(
        "\nload: this client makes {} such fan-outs/s with {} requests/s, of {} requests/s in all; ",
        inputs.kind_fan_outs_per_second, inputs.kind_requests_per_second, inputs.client_requests_per_second,
    );
    text += &match inputs.clients {
        0 => "no node has reported its load yet".to_owned(),
        clients => format!(
            "a node takes {} requests/s, of {}",
            inputs.node_requests_per_second,
            plural(clients.into(), "client")
        ),
    };
    if let Some(share) = inputs.termination_share {
        text += &format!("; {:.0} % of early-terminable fan-outs end early", share * 100.0);
    }
    text + "\n"
}

/// Returns an explanation of the names in a plan, one per line.
fn legend(profile: &ProfileReply) -> String {
    let rounds = || profile.rounds.iter();
    let controllers = rounds().filter_map(|round| {
        Some(format!("controller {}: {}", round.controller, fan_out::summary(&round.controller)?))
    });
    let policies = rounds().filter_map(|round| {
        Some(format!("policy {}: {}", round.policy, policy::by_name(&round.policy)?.summary()))
    });
    let requests = rounds().flat_map(|round| &round.requests).filter_map(|request| match request {
        RequestReply { cause, .. } if cause == "hedge" => Some(HEDGE.to_owned()),
        RequestReply { outcome, .. } if outcome == "overtaken" => Some(OVERTAKEN.to_owned()),
        RequestReply { attempt, .. } if 1 < *attempt => Some(ATTEMPT.to_owned()),
        _ => None,
    });
    let mut lines: Vec<String> = Vec::new();
    for line in controllers.chain(policies).chain(requests) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join("\n")) }
}

const HEDGE: &str = "hedge: a second request for the keys of a late one, to another node; the first answer for each key counts";
const OVERTAKEN: &str = "overtaken: its hedge answered first";
const ATTEMPT: &str = "attempt 2: its keys failed at another node before";

fn requests(round: &RoundReply, total_us: u64, screen: Option<usize>) -> String {
    if round.requests.is_empty() {
        return String::new();
    }
    let columns = [
        ("node", Side::Right),
        ("group", Side::Right),
        ("keys", Side::Right),
        ("took", Side::Right),
        ("service", Side::Right),
        ("reply", Side::Right),
        ("outcome", Side::Left),
        ("timeline", Side::Left),
    ];
    let rows = |bar_chars| {
        let row = |request: &RequestReply| {
            vec![
                request.node.to_string(),
                request.group.to_string(),
                count(request.keys),
                micros(request.took_us),
                micros(request.service_us),
                bytes(request.reply_bytes),
                outcome(request),
                bar(request, total_us, bar_chars),
            ]
        };
        round.requests.iter().map(row).collect::<Vec<_>>()
    };
    // A shorter timeline is better than a column less.
    let (text, left_out) = fitted(&columns, rows(BAR_CHARS), &LESS_IMPORTANT, screen);
    if left_out.is_empty() {
        return text;
    }
    fitted_with_note(&columns, rows(BAR_CHARS_MIN), &LESS_IMPORTANT, screen)
}

fn planned(round: &RoundReply) -> String {
    let columns = [("node", Side::Right), ("group", Side::Right), ("keys", Side::Right)];
    let rows = round
        .requests
        .iter()
        .map(|request| vec![request.node.to_string(), request.group.to_string(), count(request.keys)]);
    if round.requests.is_empty() { String::new() } else { table(&columns, rows) }
}

fn outcome(request: &RequestReply) -> String {
    match (request.cause.as_str(), request.attempt) {
        ("hedge", _) => format!("{} (hedge)", request.outcome),
        (_, 0 | 1) => request.outcome.clone(),
        (_, attempt) => format!("{} (attempt {attempt})", request.outcome),
    }
}

/// Returns a timeline of a request, from the query's start to its end: `#` if its answer was used, `-` if not.
fn bar(request: &RequestReply, total_us: u64, chars: u64) -> String {
    let RequestReply { start_us, took_us, won, .. } = *request;
    let total = total_us.max(start_us + took_us).max(1);
    let column = |us: u64| us * chars / total;
    let from = column(start_us).min(chars - 1);
    let to = column(start_us + took_us).clamp(from + 1, chars);
    let part = |c: &str, from: u64, to: u64| c.repeat(usize::try_from(to - from).unwrap_or_default());
    format!("|{}{}{}|", part(".", 0, from), part(if won { "#" } else { "-" }, from, to), part(".", to, chars))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_wire::v1;

    #[test]
    fn a_bar_shows_when_a_request_was_under_way() {
        let bar = |start_us, took_us, total_us, won| {
            let request = v1::RequestProfile { start_us, took_us, won, ..Default::default() };
            bar(&RequestReply::from(&request), total_us, BAR_CHARS)
        };
        assert_eq!(bar(0, 100, 100, true), format!("|{}|", "#".repeat(32)));
        assert_eq!(bar(50, 25, 100, true), format!("|{}{}{}|", ".".repeat(16), "#".repeat(8), ".".repeat(8)));
        assert_eq!(
            bar(50, 25, 100, false),
            format!("|{}{}{}|", ".".repeat(16), "-".repeat(8), ".".repeat(8))
        );
        assert_eq!(bar(100, 0, 100, true), format!("|{}#|", ".".repeat(31)));
        assert_eq!(bar(0, 0, 0, true), format!("|#{}|", ".".repeat(31)));
    }

    #[test]
    fn a_profile_fits_80_columns() {
        let request = v1::RequestProfile {
            node: 117,
            group: 3,
            keys: 123_456,
            took_us: 1_234_567,
            service_us: 123_456,
            reply_bytes: 12_345_678,
            outcome: "answered".to_owned(),
            cause: "hedge".to_owned(),
            won: true,
            ..Default::default()
        };
        let round = v1::RoundProfile {
            name: "connections of the first degree".to_owned(),
            kind: "synchronous union".to_owned(),
            keys: 123_456,
            groups_allowed: 3,
            controller: "adaptive".to_owned(),
            policy: "greedy".to_owned(),
            requests: vec![request; 3],
            ..Default::default()
        };
        let profile = v1::Profile { total_us: 1_234_567, rounds: vec![round; 2], ..Default::default() };
        let profile = ProfileReply::from(&profile);
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(80 < widest(&render_for(&profile, None)));
        for width in [60, 80, 100] {
            let text = render_for(&profile, Some(width));
            assert!(widest(&text) <= width && text.contains("outcome") && text.contains("took"), "{text}");
        }
        assert!(render_for(&profile, Some(80)).contains("timeline"), "it is only shorter");
        assert_eq!(
            render_for(&profile, Some(200)).lines().count(),
            render_for(&profile, None).lines().count()
        );
    }
}
