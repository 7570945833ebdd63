//! The results of `kith bench graph`. Field names are a contract: `docs/benchmarks.md`.

use super::{
    GraphBenchFlags,
    slices::{Answers, AtRate, Slice},
};
use crate::bench::{
    setting::Setting,
    stats::{Interval, median_interval},
    tally::{KindReport, Tally},
    workload::Kind,
};
use serde::Serialize;
use std::{collections::BTreeMap, time::Duration};

#[derive(Clone, Debug, Serialize)]
pub struct GraphReport {
    pub graph: Option<String>,
    pub rounds: u32,
    pub rates: Vec<RateReport>,
    pub answers: AnswerReport,
    /// The messages of failed queries, with the number of times each occurred.
    pub errors: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct RateReport {
    /// The number of queries per second that were due.
    pub rate: f64,
    pub settings: Vec<SettingReport>,
    /// The ratios of each setting after the first to the first.
    pub ratios: Vec<Ratio>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SettingReport {
    pub name: String,
    pub kinds: Vec<KindReport>,
}

/// The ratios of the turns of two settings: the median and its interval.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    pub setting: String,
    pub to: String,
    pub kind: &'static str,
    pub p50: Option<Interval>,
    pub p90: Option<Interval>,
    pub p99: Option<Interval>,
    pub requests: Option<Interval>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct AnswerReport {
    pub checked: u64,
    /// The number of distinct queries whose answers were also computed from the lists.
    pub computed: u64,
    pub wrong: u64,
}

impl GraphReport {
    /// Whether no query failed and no answer was wrong.
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty() && self.answers.wrong == 0
    }
}

/// Summarises all turns.
pub fn report(
    flags: &GraphBenchFlags,
    settings: &[Setting],
    rates: &[AtRate],
    answers: &Answers,
) -> GraphReport {
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    let slices = rates.iter().flat_map(|at| at.slices.iter().flatten());
    for (error, count) in slices.flat_map(|slice| slice.kinds.values()).flat_map(|tally| &tally.errors) {
        *errors.entry(error.clone()).or_default() += count;
    }
    GraphReport {
        graph: flags.graph.clone(),
        rounds: flags.rounds,
        rates: rates.iter().map(|at| rate_report(settings, at)).collect(),
        answers: AnswerReport { checked: answers.checked, computed: answers.computed, wrong: answers.wrong },
        errors,
    }
}

fn rate_report(settings: &[Setting], at: &AtRate) -> RateReport {
    let names = settings.iter().map(|setting| setting.name.clone());
    let reports = names.zip(&at.slices).map(|(name, slices)| SettingReport { name, kinds: kinds(slices) });
    let others = settings.iter().zip(&at.slices).skip(1);
    RateReport {
        rate: at.rate,
        settings: reports.collect(),
        ratios: others
            .flat_map(|(setting, slices)| ratios(&settings[0], &at.slices[0], setting, slices))
            .collect(),
    }
}

fn kinds(slices: &[Slice]) -> Vec<KindReport> {
    let wall: Duration = slices.iter().map(|slice| slice.wall).sum();
    let mut by_kind: BTreeMap<Kind, Tally> = BTreeMap::new();
    let mut all = Tally::default();
    for (kind, tally) in slices.iter().flat_map(|slice| &slice.kinds) {
        by_kind.entry(*kind).or_default().add(tally);
        all.add(tally);
    }
    let kinds = by_kind.iter().map(|(kind, tally)| tally.report(Some(*kind), wall));
    kinds.chain([all.report(None, wall)]).collect()
}

fn ratios(base: &Setting, base_slices: &[Slice], setting: &Setting, slices: &[Slice]) -> Vec<Ratio> {
    let kinds: std::collections::BTreeSet<Kind> =
        base_slices.iter().flat_map(|slice| slice.kinds.keys().copied()).collect();
    let ratio = |kind: Kind| {
        let pairs = || {
            let both = base_slices.iter().zip(slices);
            both.filter_map(move |(a, b)| Some((a.kinds.get(&kind)?, b.kinds.get(&kind)?)))
        };
        let of = |value: &dyn Fn(&Tally) -> f64| {
            let values: Vec<f64> = pairs().map(|(a, b)| value(b) / value(a)).collect();
            median_interval(&values)
        };
        Ratio {
            setting: setting.name.clone(),
            to: base.name.clone(),
            kind: kind.name(),
            p50: of(&|tally| tally.quantile_us(0.5)),
            p90: of(&|tally| tally.quantile_us(0.9)),
            p99: of(&|tally| tally.quantile_us(0.99)),
            requests: of(&Tally::requests_per_query),
        }
    };
    kinds.into_iter().map(ratio).collect()
}
