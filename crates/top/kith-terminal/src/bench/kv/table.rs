//! Renders the results as a table.

use super::report::{KvReport, RateReport};
use crate::table::{Side, count, micros, plural, table};

/// Renders the settings, a line for each rate, then the failures and the written files.
pub fn render(report: &KvReport) -> String {
    let exponent = report.exponent.map_or(String::new(), |exponent| format!(" ({exponent})"));
    let mut text = format!(
        "{}: {} a request, {}{exponent} of {}\n{}",
        report.store,
        plural(u64::from(report.keys_per_request), "key"),
        report.distribution.name(),
        plural(report.keys, "key"),
        rates(&report.rates)
    );
    for (error, number) in &report.errors {
        text += &format!("{} failed: {error}\n", count(*number));
    }
    for file in &report.files {
        text += &format!("wrote {}\n", file.display());
    }
    text
}

fn rates(rates: &[RateReport]) -> String {
    let columns = ["rate", "answered", "p50", "p90", "p99", "p99.9", "max", "client CPU", "server CPU"];
    let more = ["a key", "found", "absent", "failed"];
    let columns: Vec<(&str, Side)> =
        columns.into_iter().chain(more).map(|name| (name, Side::Right)).collect();
    let cpu = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{us:.1} us"));
    let rows = rates.iter().map(|rate| {
        vec![
            format!("{:.0}/s", rate.rate),
            format!("{:.0}/s", rate.answered_rate),
            micros(rate.p50_us),
            micros(rate.p90_us),
            micros(rate.p99_us),
            micros(rate.p999_us),
            micros(rate.max_us),
            cpu(Some(rate.client_cpu_us)),
            cpu(rate.server_cpu_us),
            cpu(rate.server_cpu_us_per_key),
            count(rate.found),
            count(rate.absent),
            count(rate.error + rate.unanswered + rate.failed),
        ]
    });
    table(&columns, rows)
}
