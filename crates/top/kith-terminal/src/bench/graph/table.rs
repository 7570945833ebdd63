//! Renders the results as tables.

use super::report::{GraphReport, RateReport};
use crate::{
    bench::stats::Interval,
    table::{Side, count, micros, table},
};

/// Renders a table for each rate, then the ratios, then how answers were checked.
pub fn render(report: &GraphReport) -> String {
    let mut text = String::new();
    for rate in &report.rates {
        text += &format!("{} queries per second\n{}", rate.rate, kinds(rate));
        if !rate.ratios.is_empty() {
            text += &format!("\n{}", ratios(rate, report.rounds));
        }
        text += "\n";
    }
    let answers = report.answers;
    text += &format!(
        "{} answers checked, {} of them against lists read from the object store: {} wrong\n",
        count(answers.checked),
        count(answers.computed),
        count(answers.wrong)
    );
    for (error, number) in &report.errors {
        text += &format!("{} failed: {error}\n", count(*number));
    }
    text
}

fn kinds(rate: &RateReport) -> String {
    let columns = [
        ("setting", Side::Left),
        ("queries", Side::Left),
        ("number", Side::Right),
        ("p50", Side::Right),
        ("p90", Side::Right),
        ("p99", Side::Right),
        ("max", Side::Right),
        ("requests each", Side::Right),
        ("a fan-out", Side::Right),
        ("groups", Side::Right),
        ("allowed", Side::Right),
        ("requests/s", Side::Right),
        ("ended early", Side::Right),
        ("errors", Side::Right),
    ];
    let rows = rate.settings.iter().flat_map(|setting| {
        setting.kinds.iter().map(|kind| {
            vec![
                setting.name.clone(),
                kind.kind.to_owned(),
                count(kind.queries),
                micros(kind.p50_us),
                micros(kind.p90_us),
                micros(kind.p99_us),
                micros(kind.max_us),
                format!("{:.2}", kind.requests_per_query),
                format!("{:.2}", kind.requests_per_fan_out),
                format!("{:.2}", kind.groups),
                format!("{:.2}", kind.groups_allowed),
                format!("{:.0}", kind.rps),
                kind.ended_early.map_or(String::new(), |share| format!("{:.0} %", share * 100.0)),
                count(kind.errors),
            ]
        })
    });
    table(&columns, rows)
}

fn ratios(rate: &RateReport, rounds: u32) -> String {
    let columns = [
        ("ratio", Side::Left),
        ("queries", Side::Left),
        ("p50", Side::Left),
        ("p90", Side::Left),
        ("p99", Side::Left),
        ("requests", Side::Left),
    ];
    let rows = rate.ratios.iter().map(|ratio| {
        vec![
            format!("{} / {}", ratio.setting, ratio.to),
            ratio.kind.to_owned(),
            interval(ratio.p50),
            interval(ratio.p90),
            interval(ratio.p99),
            interval(ratio.requests),
        ]
    });
    let sure = rate.ratios.iter().filter_map(|ratio| ratio.p50).map(|interval| interval.confidence).next();
    let sure = sure.map_or(0.0, |share| (share * 1_000.0).round() / 10.0);
    format!("medians of {rounds} pairs of turns, with their {sure} % intervals\n{}", table(&columns, rows))
}

fn interval(interval: Option<Interval>) -> String {
    interval.map_or(String::new(), |Interval { median, low, high, .. }| {
        format!("{median:.2} ({low:.2} to {high:.2})")
    })
}
