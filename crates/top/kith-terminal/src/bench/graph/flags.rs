//! The flags of `kith bench graph`.

use crate::{
    bench::{
        population::Draw,
        setting::{Setting, split_outside_parentheses},
        workload::Mix,
    },
    controllers::ControllerSet,
    failure::Failure,
    names::positive,
};
use clap::{Args, ValueEnum};
use kith_client::CacheMode;
use kith_query::CommonPlan;
use kith_routing::FanOutLimits;
use kith_routing::policy;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct GraphBenchFlags {
    /// The graph to query
    #[arg(short, long, required_unless_present = "log")]
    pub graph: Option<String>,
    /// Queries per second, one run after another
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "50,100,200", value_parser = positive)]
    pub rates: Vec<f64>,
    /// Seconds at each rate under each setting, over all rounds
    #[arg(long, value_name = "S", default_value_t = 12.0, value_parser = positive)]
    pub seconds: f64,
    /// Turns that each setting takes at each rate
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// Shares of single-key, multi-key and common-entity queries
    #[arg(long, value_name = "A/B/C", default_value = "40/40/20")]
    pub mix: Mix,
    /// Replay a query record (`--record` of a router, or lines of `kith run`) instead of a mix
    #[arg(long, value_name = "FILE", conflicts_with_all = ["graph", "mix", "members", "keys_min", "common_plan"])]
    pub log: Option<PathBuf>,
    /// How members are drawn
    #[arg(long, value_enum, default_value_t)]
    pub members: Draw,
    /// Use members with at least this many connections for multi-key queries
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub keys_min: u64,
    /// How common entities are found; `push` is the one that ends early
    #[arg(long, value_enum, default_value_t)]
    pub common_plan: PlanName,
    /// Replica policies to compare
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    policies: Vec<String>,
    /// Fan-out limits to compare: min, max, auto, groups=N, or for rounds of one kind, such as sync-union=max
    #[arg(long, value_name = "LIMITS", value_delimiter = ',')]
    fan_out: Vec<FanOutLimits>,
    /// Controllers to compare: default, maximum, …, or by selector, such as early-terminable=maximum;network=static(2);
    /// only with --direct
    #[arg(long, value_name = "CONTROLLERS")]
    controllers: Vec<String>,
    /// A setting to compare, in place of the lists above: 'name=naive policy=round-robin fan-out=max controllers=…'
    #[arg(long, value_name = "SETTING", conflicts_with_all = ["policies", "fan_out", "controllers"])]
    setting: Vec<Setting>,
    /// Settings of direct sessions (TOML, as for a router); only with --direct
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Whether to use the router's network cache [default: bypass; as recorded with --log]
    #[arg(long, value_enum)]
    cache: Option<CacheName>,
    /// Seed: equal seeds send equal queries
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CacheName {
    /// Look in the cache first, and fill it on a miss
    Use,
    /// Neither read nor fill the cache
    Bypass,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanName {
    /// Choose by the lengths of the lists
    Auto,
    /// Fetch both lists
    Fetch,
    /// Ask every partition's inverted index
    #[default]
    Push,
}

impl From<PlanName> for CommonPlan {
    fn from(plan: PlanName) -> Self {
        match plan {
            PlanName::Auto => Self::Auto,
            PlanName::Fetch => Self::Fetch,
            PlanName::Push => Self::Push,
        }
    }
}

impl GraphBenchFlags {
    /// The settings to compare.
    ///
    /// # Errors
    /// If a setting names something that does not exist, or that only a direct session can have.
    pub fn settings(&self, direct: bool) -> Result<Vec<Setting>, Failure> {
        let settings = if self.setting.is_empty() { self.product()? } else { self.setting.clone() };
        for setting in &settings {
            if let Some(name) = setting.policy.as_deref().filter(|name| policy::by_name(name).is_none()) {
                let known: Vec<&str> = policy::ALL.iter().map(|policy| policy.name()).collect();
                let message = format!("there is no policy {name:?}");
                return Err(Failure::usage(message, format!("policies: {}", known.join(", "))));
            }
        }
        let controlled = settings.iter().any(|setting| !setting.controllers.is_empty());
        if !direct && (controlled || self.config.is_some()) {
            let what = if controlled { "controllers" } else { "settings" };
            return Err(Failure::not_direct(what));
        }
        Ok(settings)
    }

    fn product(&self) -> Result<Vec<Setting>, Failure> {
        let texts = self.controllers.iter().flat_map(|text| split_outside_parentheses(text));
        let controllers: Result<Vec<ControllerSet>, String> = texts.map(str::parse).collect();
        let controllers = controllers.map_err(|error| {
            Failure::usage(error, "docs/design/0002-fan-out-control.md lists the controllers")
        })?;
        Ok(Setting::product(&self.policies, &self.fan_out, &controllers))
    }

    /// The cache mode of the queries; `None` uses what the record says.
    pub fn cache(&self) -> Option<CacheMode> {
        match (self.cache, &self.log) {
            (Some(CacheName::Use), _) => Some(CacheMode::Use),
            (Some(CacheName::Bypass), _) | (None, None) => Some(CacheMode::Bypass),
            (None, Some(_)) => None,
        }
    }
}
