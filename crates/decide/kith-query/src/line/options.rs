//! Options of requests: as flags of a command, and as fields of a line.

use crate::{AnswerPage, CacheMode, GraphQuery, Page, PageStart, QueryOptions, line::live};
use clap::{Args, ValueEnum};
use kith_schema::live::Ticket;
use kith_types::{Direction, Workflow};
use kith_types::{FanOutLimits, Hedging};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{num::NonZeroU32, time::Duration};

/// Options of any query of a graph. Field names are a contract: `docs/queries.md`.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Query options")]
#[serde(deny_unknown_fields)]
pub struct GraphOptions {
    /// The graph to query
    #[arg(short, long)]
    pub graph: String,
    /// The edge type to follow [default: the graph's first]
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_type: Option<String>,
    /// Which way to follow it [default: `out` if it is directed, else `both`]
    #[arg(long, value_enum)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<DirectionName>,
    /// Whether to use the router's network cache
    #[arg(long, value_enum, default_value_t)]
    #[serde(default, skip_serializing_if = "is_default")]
    pub cache: CacheName,
    /// Return at most this many ids, if the answer is a set of ids, or this many edges or associations
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Return what follows the previous page: its last id; with `edges`, the cursor that it ended with; with `range`, the time and
    /// id of its last association
    #[arg(long, value_name = "ID|CURSOR|TIME,ID")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<PageStart>,
    /// Show the write that returned this ticket; for several, repeat the flag [live graphs only]
    #[arg(long, value_name = "TICKET")]
    #[serde(
        default,
        deserialize_with = "live::read_tickets",
        serialize_with = "live::write_tickets",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub ticket: Vec<Ticket>,
    /// Show every write that was answered before [live graphs only]
    #[arg(long)]
    #[serde(default, skip_serializing_if = "is_default")]
    pub critical: bool,
    /// Ask only the replicas of this group
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
}

/// Options of any read, of a graph or of a store. Field names are a contract: `docs/queries.md`.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Query options")]
#[serde(deny_unknown_fields)]
pub struct ReadOptions {
    /// Who waits for the answer
    #[arg(long, value_enum, default_value_t)]
    #[serde(default, skip_serializing_if = "is_default")]
    pub workflow: WorkflowName,
    /// How many replica groups may take part: min, max, auto or groups=N; for rounds of one kind KIND=LIMIT, such as
    /// sync-union=max; separate several with commas
    #[arg(long, value_name = "LIMITS", default_value = "auto")]
    #[serde(
        default,
        deserialize_with = "limits_of",
        serialize_with = "text_of",
        skip_serializing_if = "is_default"
    )]
    pub fan_out: FanOutLimits,
    /// The replica policy, such as `n-groups` [default: the router's]
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// When to send a late request to another node as well [default: the router's]
    #[arg(long, value_enum)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hedge: Option<HedgeName>,
    /// Milliseconds that the answer may take [default: the router's]
    #[arg(long, value_name = "MS")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<NonZeroU32>,
    /// Show which node got which keys and how long each request took
    #[arg(long)]
    #[serde(default, skip_serializing)]
    pub profile: bool,
    /// Accept an answer that lacks partitions or keys
    #[arg(long)]
    #[serde(default, skip_serializing_if = "is_default")]
    pub partial: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn limits_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FanOutLimits, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn text_of<S: Serializer>(limits: &FanOutLimits, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(limits)
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DirectionName {
    /// Along the direction of the edges
    Out,
    /// Against the direction of the edges
    In,
    /// In both directions
    Both,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkflowName {
    /// A person or a page waits
    #[default]
    Interactive,
    /// Nobody waits
    Background,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum, Serialize, Deserialize)]
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

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HedgeName {
    /// Once it takes longer than 99 % of such recent requests
    On,
    /// After a time that depends only on the number of keys
    Table,
    /// Never
    Off,
}

impl DirectionName {
    fn of(direction: Direction) -> Self {
        match direction {
            Direction::Out => DirectionName::Out,
            Direction::In => DirectionName::In,
            Direction::Both => DirectionName::Both,
        }
    }

    fn inner(self) -> Direction {
        match self {
            DirectionName::Out => Direction::Out,
            DirectionName::In => Direction::In,
            DirectionName::Both => Direction::Both,
        }
    }
}

impl WorkflowName {
    fn of(workflow: Workflow) -> Self {
        match workflow {
            Workflow::Interactive => WorkflowName::Interactive,
            Workflow::Background => WorkflowName::Background,
        }
    }

    fn inner(self) -> Workflow {
        match self {
            WorkflowName::Interactive => Workflow::Interactive,
            WorkflowName::Background => Workflow::Background,
        }
    }
}

impl CacheName {
    fn of(cache: CacheMode) -> Self {
        match cache {
            CacheMode::Use => CacheName::Use,
            CacheMode::Bypass => CacheName::Bypass,
            CacheMode::Refresh => CacheName::Refresh,
        }
    }

    fn inner(self) -> CacheMode {
        match self {
            CacheName::Use => CacheMode::Use,
            CacheName::Bypass => CacheMode::Bypass,
            CacheName::Refresh => CacheMode::Refresh,
        }
    }
}

impl HedgeName {
    fn of(hedging: Hedging) -> Self {
        match hedging {
            Hedging::Live => HedgeName::On,
            Hedging::Table => HedgeName::Table,
            Hedging::Off => HedgeName::Off,
        }
    }

    fn inner(self) -> Hedging {
        match self {
            HedgeName::On => Hedging::Live,
            HedgeName::Table => Hedging::Table,
            HedgeName::Off => Hedging::Off,
        }
    }
}

impl GraphOptions {
    /// The fields that may hold ids.
    pub(super) const ID_FIELDS: &[&str] = &["after"];

    /// Converts a query of a graph.
    pub fn of(graph: &str, query: &GraphQuery, options: &QueryOptions) -> Self {
        let of_ids = || AnswerPage::after_id(options.page.limit, options.page.after);
        let AnswerPage { limit, after } = query.operation.page().unwrap_or_else(of_ids);
        Self {
            graph: graph.to_owned(),
            edge_type: query.edge_type.clone(),
            direction: query.direction.map(DirectionName::of),
            cache: CacheName::of(options.cache),
            limit,
            after,
            ticket: options.ticket.iter().cloned().collect(),
            critical: options.critical,
            group: options.group,
        }
    }

    /// The direction in which to follow the edge type.
    pub fn direction(&self) -> Option<Direction> {
        self.direction.map(DirectionName::inner)
    }

    /// The page of the answer.
    pub fn page(&self) -> AnswerPage {
        AnswerPage { limit: self.limit, after: self.after }
    }

    /// Adds these options to those that every read has.
    pub fn query_options(&self, read: &ReadOptions) -> QueryOptions {
        QueryOptions {
            cache: self.cache.inner(),
            page: Page { after: self.page().id(), limit: self.limit },
            ticket: live::merged(&self.ticket),
            critical: self.critical,
            group: self.group,
            ..read.query_options()
        }
    }
}

impl ReadOptions {
    /// Converts the options of a request.
    pub fn of(options: &QueryOptions) -> Self {
        let milliseconds = |deadline: Duration| u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX);
        Self {
            workflow: WorkflowName::of(options.workflow),
            fan_out: options.fan_out,
            policy: options.policy.clone(),
            hedge: options.hedging.map(HedgeName::of),
            deadline_ms: options.deadline.map(milliseconds).and_then(NonZeroU32::new),
            profile: options.profile,
            partial: options.partial,
        }
    }

    /// The workflow that waits for the answer.
    pub fn workflow(&self) -> Workflow {
        self.workflow.inner()
    }

    /// Converts the options to [`QueryOptions`].
    pub fn query_options(&self) -> QueryOptions {
        QueryOptions {
            fan_out: self.fan_out,
            policy: self.policy.clone(),
            hedging: self.hedge.map(HedgeName::inner),
            deadline: self.deadline_ms.map(|ms| Duration::from_millis(ms.get().into())),
            profile: self.profile,
            partial: self.partial,
            workflow: self.workflow(),
            ..QueryOptions::default()
        }
    }
}
