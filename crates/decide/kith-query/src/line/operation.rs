//! The operations and their fields. Each operation is a subcommand, and a value of `op` in a request line.

use crate::{
    EdgesQuery, Operand, PATH_LENGTH_MAX, Want,
    line::choices::{CommonReturn, NetworkReturn, Plan},
    line::filter::Filter,
    line::live::{self, AssocCount, AssocGet, AssocRange, AssocTimeRange, ObjectFind, ObjectGet},
};
use clap::{Args, Subcommand};
use serde::{Deserialize, Deserializer, Serialize, de::Error};

/// The operation of a query of a graph, with its own fields. Field names are a contract: `docs/queries.md`.
#[derive(Clone, Debug, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// The members that a member is connected to
    Connections(Connections),
    /// A member's entities of one kind, such as its schools or companies
    Entities(Entities),
    /// The members of an entity
    Members(Members),
    /// How many connections members have
    Degree(Degree),
    /// The edges of a member with their columns, sorted, page by page
    Edges(Edges),
    #[command(skip)]
    #[serde(rename = "object_get")]
    ObjectGet(ObjectGet),
    #[command(skip)]
    #[serde(rename = "object_find")]
    ObjectFind(ObjectFind),
    #[command(skip)]
    #[serde(rename = "assoc_get")]
    AssocGet(AssocGet),
    #[command(skip)]
    #[serde(rename = "assoc_count")]
    AssocCount(AssocCount),
    #[command(skip)]
    #[serde(rename = "assoc_range")]
    AssocRange(AssocRange),
    #[command(skip)]
    #[serde(rename = "assoc_time_range")]
    AssocTimeRange(AssocTimeRange),
    /// First and second degree of a member
    Network(Network),
    /// Only the sizes of `network`
    #[serde(skip)]
    NetworkSize(Member),
    /// How far members are: 0, 1, 2, 3 or farther
    Distance(Distance),
    /// A shortest path between two members
    Path(Path),
    /// What two members have in common
    Common(Common),
    /// Whether two members have anything in common: a connection of any edge type, or an entity of any kind
    #[serde(skip)]
    HasCommon(HasCommon),
    /// People you may know: members at distance 2, most common connections first
    Suggest(Suggest),
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// The member
    id: u64,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entities {
    /// The member
    id: u64,
    /// The entity kind, such as `school`
    #[arg(long)]
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Members {
    /// The entity; unique only together with its kind
    entity: u64,
    /// The entity kind, such as `school`
    #[arg(long)]
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Degree {
    /// The members
    #[arg(required = true, value_name = "ID")]
    ids: Vec<u64>,
    /// Count only edges whose value in a column lies in a range, both ends included
    #[arg(long, value_name = "COLUMN=LOW..HIGH")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filter: Option<Filter>,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edges {
    /// The member
    id: u64,
    /// The columns to return, separated by commas [default: all]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    columns: Option<Vec<String>>,
    /// The column to sort by, ties by ascending id [default: sorted by id]
    #[arg(long, value_name = "COLUMN")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order_by: Option<String>,
    /// Greatest first
    #[arg(long)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    descending: bool,
    /// Return only edges whose value in a column lies in a range, both ends included
    #[arg(long, value_name = "COLUMN=LOW..HIGH")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filter: Option<Filter>,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The member
    id: u64,
    /// What to return of the network
    #[arg(long = "return", value_name = "WHAT", value_enum, default_value_t)]
    #[serde(rename = "return", default)]
    returns: NetworkReturn,
}

#[derive(Clone, Debug, PartialEq, Args)]
pub struct Member {
    /// The member
    id: u64,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distance {
    /// The member to start from
    id: u64,
    /// The members to reach
    #[arg(required = true)]
    to: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// The member to start from
    id: u64,
    /// The member to reach
    to: u64,
    /// The longest path to look for, 0 to 6
    #[arg(long, default_value_t = path_length(), allow_negative_numbers = true, value_parser = parse_length)]
    #[serde(default = "path_length", deserialize_with = "read_length")]
    max: u32,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Common {
    /// One member
    id: u64,
    /// The other member
    to: u64,
    /// An edge type or an entity kind [default: the edge type that is followed; with --return exists, every one]
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// What to return of the common ids
    #[arg(long = "return", value_name = "WHAT", value_enum, default_value_t)]
    #[serde(rename = "return", default)]
    returns: CommonReturn,
    /// How to find them
    #[arg(long, value_enum, default_value_t)]
    #[serde(default, skip_serializing_if = "Plan::is_auto")]
    plan: Plan,
}

#[derive(Clone, Debug, PartialEq, Args)]
pub struct HasCommon {
    /// One member
    id: u64,
    /// The other member
    to: u64,
    /// Look only at this edge type or entity kind [default: at every one; with --edge-type, at that one]
    #[arg(long)]
    kind: Option<String>,
    /// How to find out
    #[arg(long, value_enum, default_value_t)]
    plan: Plan,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suggest {
    /// The member
    id: u64,
    /// How many
    #[arg(short, long, default_value_t = suggestions())]
    #[serde(default = "suggestions")]
    k: u32,
}

/// The default number of members that `suggest` returns.
fn suggestions() -> u32 {
    20
}

fn path_length() -> u32 {
    PATH_LENGTH_MAX
}

// Numbers above the maximum are accepted here, because the operation itself refuses them as `out_of_range`, for every client.
fn parse_length(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| length_expected())
}

fn read_length<'de, D: Deserializer<'de>>(input: D) -> Result<u32, D::Error> {
    u32::deserialize(input).map_err(|_| D::Error::custom(length_expected()))
}

fn length_expected() -> String {
    format!("the longest path to look for is a whole number from 0 to {PATH_LENGTH_MAX}")
}

/// The form of an answer, if the kind of the answer does not determine it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One set of ids, which `limit` and `after` divide into pages.
    Ids,
    /// The same as [`Shape::Ids`], with the member `entities` in place of `ids`.
    Entities,
    /// Edges, which `limit` and a cursor divide into pages.
    Edges,
    /// Associations, which `limit` and a place divide into pages.
    Range,
    /// Associations, which `limit` and the time divide into pages.
    TimeRange,
    /// A network with the ids that the answer contains.
    Network,
    /// A network with checksums in place of ids.
    NetworkSha,
    /// The kind of the answer determines its form.
    Plain,
}

/// Operations of graphs that are the subcommands of one command.
pub trait Operations: Subcommand + Into<Operation> {
    /// Whether the operations follow edges, so that the options include the edge type and the direction.
    const FOLLOWS_EDGES: bool;
}

impl Operations for Operation {
    const FOLLOWS_EDGES: bool = true;
}

impl Operation {
    /// Converts an operand to its operation.
    pub fn of(operand: &Operand) -> Self {
        match operand.clone() {
            Operand::Connections { id } => Operation::Connections(Connections { id }),
            Operand::Entities { id, kind } => Operation::Entities(Entities { id, kind }),
            Operand::Members { kind, entity } => Operation::Members(Members { entity, kind }),
            Operand::Degree { ids, filter } => {
                Operation::Degree(Degree { ids, filter: filter.map(Filter::of) })
            }
            Operand::Edges(EdgesQuery { id, columns, order_by, descending, filter, .. }) => {
                let filter = filter.map(Filter::of);
                Operation::Edges(Edges { id, columns, order_by, descending, filter })
            }
            Operand::Objects { ids, is_single } => Operation::ObjectGet(ObjectGet::of(ids, is_single)),
            Operand::Find(find) => Operation::ObjectFind(ObjectFind::of(find)),
            Operand::Associations { id1, read } => live::operation(id1, read),
            Operand::Network { id, want } => {
                let returns = if want == Want::Ids { NetworkReturn::Ids } else { NetworkReturn::Size };
                Operation::Network(Network { id, returns })
            }
            Operand::Distance { from, to } => Operation::Distance(Distance { id: from, to }),
            Operand::Path { from, to, max } => Operation::Path(Path { id: from, to, max }),
            Operand::Common { id, to, kind, want, plan } => {
                let (returns, plan) = (CommonReturn::of(want), Plan::of(plan));
                Operation::Common(Common { id, to, kind, returns, plan })
            }
            Operand::Suggest { id, k } => Operation::Suggest(Suggest { id, k }),
        }
    }

    /// Converts the operation to the operand of the client library. The page of edges or associations is among the options.
    pub fn operand(&self) -> Operand {
        match self.clone() {
            Operation::Connections(Connections { id }) => Operand::Connections { id },
            Operation::Entities(Entities { id, kind }) => Operand::Entities { id, kind },
            Operation::Members(Members { entity, kind }) => Operand::Members { kind, entity },
            Operation::Degree(Degree { ids, filter }) => {
                Operand::Degree { ids, filter: filter.map(Filter::inner) }
            }
            Operation::Edges(Edges { id, columns, order_by, descending, filter }) => {
                let (filter, limit, after) = (filter.map(Filter::inner), None, None);
                Operand::Edges(EdgesQuery { id, columns, order_by, descending, filter, limit, after })
            }
            Operation::ObjectGet(get) => get.operand(),
            Operation::ObjectFind(find) => find.operand(),
            Operation::AssocGet(get) => get.operand(),
            Operation::AssocCount(count) => count.operand(),
            Operation::AssocRange(range) => range.operand(),
            Operation::AssocTimeRange(range) => range.operand(),
            Operation::Network(Network { id, returns: NetworkReturn::Size })
            | Operation::NetworkSize(Member { id }) => Operand::Network { id, want: Want::Size },
            Operation::Network(Network { id, .. }) => Operand::Network { id, want: Want::Ids },
            Operation::Distance(Distance { id, to }) => Operand::Distance { from: id, to },
            Operation::Path(Path { id, to, max }) => Operand::Path { from: id, to, max },
            Operation::Common(Common { id, to, kind, returns, plan }) => {
                Operand::Common { id, to, kind, want: returns.want(), plan: plan.inner() }
            }
            Operation::HasCommon(HasCommon { id, to, kind, plan }) => {
                Operand::Common { id, to, kind, want: Want::Exists, plan: plan.inner() }
            }
            Operation::Suggest(Suggest { id, k }) => Operand::Suggest { id, k },
        }
    }

    /// Returns the form of the operation's answer.
    pub fn shape(&self) -> Shape {
        match self {
            Operation::Connections(_) | Operation::Members(_) | Operation::ObjectFind(_) => Shape::Ids,
            Operation::Entities(_) => Shape::Entities,
            Operation::Common(Common { returns: CommonReturn::Ids, .. }) => Shape::Ids,
            Operation::Edges(_) => Shape::Edges,
            Operation::AssocRange(_) => Shape::Range,
            Operation::AssocTimeRange(_) => Shape::TimeRange,
            Operation::Network(Network { returns: NetworkReturn::Sha, .. }) => Shape::NetworkSha,
            Operation::Network(_) | Operation::NetworkSize(_) => Shape::Network,
            Operation::Degree(_)
            | Operation::ObjectGet(_)
            | Operation::AssocGet(_)
            | Operation::AssocCount(_)
            | Operation::Distance(_)
            | Operation::Path(_)
            | Operation::Common(_)
            | Operation::HasCommon(_)
            | Operation::Suggest(_) => Shape::Plain,
        }
    }
}
