//! Options that every operation has besides its own fields: as flags of its subcommand, and as fields of its line.

use clap::{Args, ValueEnum};
use kith_api::{CacheMode, Page, QueryOptions};
use kith_routing::{FanOutLimits, load::Hedging};
use kith_types::{Direction, Workflow};
use serde::{Deserialize, Deserializer, de::Error};
use std::{num::NonZeroU32, time::Duration};

/// Options of any query. Field names are a contract: `docs/queries.md`.
#[derive(Clone, Debug, PartialEq, Args, Deserialize)]
#[command(next_help_heading = "Query options")]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The graph to ask
    #[arg(short, long)]
    pub graph: String,
    /// The edge type to follow [default: the graph's first]
    #[arg(long)]
    #[serde(default)]
    pub edge_type: Option<String>,
    /// Which way to follow it [default: `out` if it is directed, else `both`]
    #[arg(long, value_enum)]
    #[serde(default)]
    pub direction: Option<DirectionName>,
    /// Who waits for the answer
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub workflow: WorkflowName,
    /// How many replica groups may take part: min, max, auto or groups=N; for rounds of one kind KIND=LIMIT, such as
    /// sync-union=max; separate several with commas
    #[arg(long, value_name = "LIMITS", default_value = "auto")]
    #[serde(default, deserialize_with = "fan_out_field")]
    pub fan_out: FanOutLimits,
    /// The replica policy, such as `n-groups` [default: the router's]
    #[arg(long)]
    #[serde(default)]
    pub policy: Option<String>,
    /// When to send a late request to another node as well [default: the router's]
    #[arg(long, value_enum)]
    #[serde(default)]
    pub hedge: Option<HedgeName>,
    /// Whether to use the router's network cache
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub cache: CacheName,
    /// Milliseconds that the answer may take [default: the router's]
    #[arg(long, value_name = "MS")]
    #[serde(default)]
    pub deadline_ms: Option<NonZeroU32>,
    /// Show which node got which keys and how long each request took
    #[arg(long)]
    #[serde(default)]
    pub profile: bool,
    /// Accept an answer that lacks partitions
    #[arg(long)]
    #[serde(default)]
    pub partial: bool,
    /// Return at most this many ids, if the answer is a set of ids
    #[arg(long, value_name = "N")]
    #[serde(default)]
    pub limit: Option<u64>,
    /// Return only ids greater than this one, the last id of the previous page
    #[arg(long, value_name = "ID")]
    #[serde(default)]
    pub after: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DirectionName {
    /// Along the direction of the edges
    Out,
    /// Against the direction of the edges
    In,
    /// In both directions
    Both,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkflowName {
    /// A person or a page waits
    #[default]
    Interactive,
    /// Nobody waits
    Background,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheName {
    /// Look in the cache first, and fill it on a miss
    #[default]
    Use,
    /// Neither read nor fill the cache
    Bypass,
    /// Fetch again and store the result
    Refresh,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HedgeName {
    /// Once it takes longer than 99 % of such recent requests
    On,
    /// After a time that depends only on the number of keys
    Table,
    /// Never
    Off,
}

impl HedgeName {
    /// Converts it to the type of the client library.
    pub fn inner(self) -> Hedging {
        match self {
            HedgeName::On => Hedging::Live,
            HedgeName::Table => Hedging::Table,
            HedgeName::Off => Hedging::Off,
        }
    }
}

pub(super) fn fan_out_field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FanOutLimits, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

impl WorkflowName {
    /// Converts it to the type of the client library.
    pub fn inner(self) -> Workflow {
        match self {
            WorkflowName::Interactive => Workflow::Interactive,
            WorkflowName::Background => Workflow::Background,
        }
    }
}

impl Options {
    /// Which way to follow the edge type.
    pub fn direction(&self) -> Option<Direction> {
        self.direction.map(|direction| match direction {
            DirectionName::Out => Direction::Out,
            DirectionName::In => Direction::In,
            DirectionName::Both => Direction::Both,
        })
    }

    /// Who waits for the answer.
    pub fn workflow(&self) -> Workflow {
        self.workflow.inner()
    }

    /// Converts the options to those of the client library.
    pub fn query_options(&self) -> QueryOptions {
        QueryOptions {
            fan_out: self.fan_out,
            policy: self.policy.clone(),
            hedging: self.hedge.map(HedgeName::inner),
            cache: match self.cache {
                CacheName::Use => CacheMode::Use,
                CacheName::Bypass => CacheMode::Bypass,
                CacheName::Refresh => CacheMode::Refresh,
            },
            deadline: self.deadline_ms.map(|ms| Duration::from_millis(ms.get().into())),
            profile: self.profile,
            partial: self.partial,
            workflow: self.workflow(),
            page: Page { after: self.after, limit: self.limit },
            ..QueryOptions::default()
        }
    }
}
