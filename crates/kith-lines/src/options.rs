//! Options that every operation has besides its own fields: as flags of its subcommand, and as fields of its line.

use clap::{Args, ValueEnum};
use kith_api::{CacheMode, Page, QueryOptions};
use kith_ops::{EdgeCursor, NotACursor};
use kith_routing::{FanOutLimits, load::Hedging};
use kith_types::{Direction, Workflow};
use serde::{Deserialize, Deserializer, de::Error};
use std::{num::NonZeroU32, str::FromStr, time::Duration};

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
    /// How many replica groups may take part: min, max, auto or groups=N; of rounds of one kind KIND=LIMIT, as
    /// sync-union=max; several are separated by commas
    #[arg(long, value_name = "LIMITS", default_value = "auto")]
    #[serde(default, deserialize_with = "fan_out_field")]
    pub fan_out: FanOutLimits,
    /// The replica policy, as `n-groups` [default: the router's]
    #[arg(long)]
    #[serde(default)]
    pub policy: Option<String>,
    /// Whether a late request to a node is sent to another as well [default: the router's]
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
    /// Tell which node got which keys and how long each took
    #[arg(long)]
    #[serde(default)]
    pub profile: bool,
    /// Take an answer that lacks partitions rather than none
    #[arg(long)]
    #[serde(default)]
    pub partial: bool,
    /// Return at most this many ids of an answer that is a set of ids, or this many edges
    #[arg(long, value_name = "N")]
    #[serde(default)]
    pub limit: Option<u64>,
    /// Where to go on: the last id of the page before; with `edges`, the cursor that the page before ended with
    #[arg(long, value_name = "ID|CURSOR")]
    #[serde(default)]
    pub after: Option<After>,
}

/// Where the page before ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum After {
    /// At an id of a set of ids.
    Id(u64),
    /// At an edge.
    Cursor(EdgeCursor),
}

impl FromStr for After {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        text.parse().map(After::Id).or_else(|_| text.parse().map(After::Cursor))
    }
}

impl<'de> Deserialize<'de> for After {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected an id or the cursor of an answer")]
        enum Given {
            Id(u64),
            Cursor(String),
        }
        match Given::deserialize(input)? {
            Given::Id(id) => Ok(After::Id(id)),
            Given::Cursor(text) => text.parse().map(After::Cursor).map_err(D::Error::custom),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DirectionName {
    /// Along the arcs
    Out,
    /// Against the arcs
    In,
    /// Either way
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
    /// Look there first, fill it on a miss
    #[default]
    Use,
    /// Neither read nor fill it
    Bypass,
    /// Fetch again and store the result
    Refresh,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HedgeName {
    /// Once it takes longer than 99 in 100 such requests lately
    On,
    /// After a time that only the number of keys decides
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

    fn after_id(&self) -> Option<u64> {
        match self.after {
            Some(After::Id(id)) => Some(id),
            Some(After::Cursor(_)) | None => None,
        }
    }

    /// The cursor that the page before ended with.
    pub(crate) fn cursor(&self) -> Option<EdgeCursor> {
        match self.after {
            Some(After::Cursor(cursor)) => Some(cursor),
            Some(After::Id(_)) | None => None,
        }
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
            page: Page { after: self.after_id(), limit: self.limit },
            ..QueryOptions::default()
        }
    }
}
