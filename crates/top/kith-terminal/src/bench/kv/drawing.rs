//! Draws the results: latency and CPU time over the rate.

use super::report::{KvReport, RateReport};
use crate::failure::Failure;
use kith_sim::figures::{Axis, Drawing, Panel, Series, Style, Table, write_drawing};
use std::path::{Path, PathBuf};

const RATE: Axis = Axis::logarithmic("requests per second that were due", "rate");
const LATENCY: Axis = Axis::logarithmic("latency (us)", "latency_us");
const CPU: Axis = Axis::linear("processor time of a request (us)", "cpu_us");

/// Writes `kv-<store>-<distribution>` as CSV and SVG into a folder, and all numbers as `…-rates.csv`. Returns the written
/// paths.
///
/// # Errors
/// `cannot_write` if a file cannot be written.
pub fn write(report: &KvReport, out: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let name = format!("kv-{}-{}", report.store, report.distribution.name());
    let title = format!("kith bench kv {}, {}", report.store, report.distribution.name());
    Ok(write_drawing(&name, &title, &drawing(report), out).map_err(Failure::from)?)
}

fn drawing(report: &KvReport) -> Drawing {
    let line = |name: &str, value: &dyn Fn(&RateReport) -> Option<f64>| {
        let mut points: Vec<(f64, f64)> =
            report.rates.iter().filter_map(|rate| Some((rate.rate, value(rate)?))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series { name: name.to_owned(), points }
    };
    let latency = |name: &str, value: fn(&RateReport) -> u64| line(name, &|rate| Some(value(rate) as f64));
    let panel = |title: &str, y: Axis, series: Vec<Series>| Panel {
        title: title.to_owned(),
        x: RATE,
        y,
        style: Style::Lines,
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
    };
    let latencies = vec![
        latency("p50", |rate| rate.p50_us),
        latency("p90", |rate| rate.p90_us),
        latency("p99", |rate| rate.p99_us),
    ];
    let cpu =
        vec![line("client", &|rate| Some(rate.client_cpu_us)), line("servers", &|rate| rate.server_cpu_us)];
    Drawing {
        panels: vec![
            panel("latency, from when a request was due", LATENCY, latencies),
            panel("processor time", CPU, cpu),
        ],
        tables: vec![numbers(report)],
    }
}

fn numbers(report: &KvReport) -> Table {
    let columns = vec![
        "rate",
        "answered_rate",
        "requests",
        "p50_us",
        "p90_us",
        "p99_us",
        "p999_us",
        "max_us",
        "lag_p50_us",
        "client_cpu_us",
        "server_cpu_us",
        "found",
        "absent",
        "error",
        "unanswered",
        "failed",
    ];
    let rows = report.rates.iter().map(|rate| {
        let counts = [
            rate.requests,
            rate.p50_us,
            rate.p90_us,
            rate.p99_us,
            rate.p999_us,
            rate.max_us,
            rate.lag_p50_us,
        ];
        let ends = [rate.found, rate.absent, rate.error, rate.unanswered, rate.failed];
        let mut row = vec![rate.rate.to_string(), format!("{:.1}", rate.answered_rate)];
        row.extend(counts.map(|count| count.to_string()));
        row.push(format!("{:.2}", rate.client_cpu_us));
        row.push(rate.server_cpu_us.map_or(String::new(), |us| format!("{us:.2}")));
        row.extend(ends.map(|count| count.to_string()));
        row
    });
    Table { name: "rates", columns, rows: rows.collect() }
}
