//! The queries of a run: the mix of Moolle's evaluation (§V-A), or the lines of a query record.

use super::population::{Draw, Population};
use crate::failure::Failure;
use anyhow::Context;
use kith_client::QueryOptions;
use kith_query::{
    CommonPlan, CommonQuery, ConnectionsQuery, GraphQuery, NetworkQuery, NetworkReturn, Operation, Want,
    line::Line,
};
use kith_types::{ErrorCode, Workflow};
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};
use serde::Serialize;
use std::{fs, path::Path, str::FromStr};
use strum::IntoStaticStr;

/// The number of distinct queries of a mix. It is large enough that a slice seldom repeats one, and small enough to know
/// all answers.
const POOL: usize = 4_000;

/// The kinds of queries that results distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One key: connections of a member.
    SingleKey,
    /// Many keys, whose lists are united: the size of a network.
    MultiKey,
    /// A query that ends with the first positive answer: whether two members have a common entity.
    Common,
    /// Any other operation of a record.
    Other,
}

impl Kind {
    /// The name in output.
    pub fn name(self) -> &'static str {
        self.into()
    }

    fn of(operation: &Operation) -> Self {
        match operation {
            Operation::Connections(_) | Operation::Entities(_) | Operation::Members(_) => Kind::SingleKey,
            Operation::Network(_) | Operation::Suggest(_) => Kind::MultiKey,
            Operation::Common(_) => Kind::Common,
            _ => Kind::Other,
        }
    }
}

/// One query.
#[derive(Clone, Debug)]
pub struct PlannedQuery {
    pub kind: Kind,
    pub graph: String,
    pub query: GraphQuery,
    pub options: QueryOptions,
}

/// The shares of single-key, multi-key and common-entity queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix([f64; 3]);

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not three shares, such as 40/40/20");
        let shares: Result<Vec<f64>, _> = text.split('/').map(str::parse).collect();
        let shares: [f64; 3] = shares.map_err(|_| wrong())?.try_into().map_err(|_| wrong())?;
        let sum: f64 = shares.iter().sum();
        if shares.iter().any(|share| !share.is_finite() || *share < 0.0) || sum <= 0.0 {
            return Err(wrong());
        }
        Ok(Self(shares.map(|share| share / sum)))
    }
}

/// The options for drawing the queries of a mix.
#[derive(Clone, Debug)]
pub struct MixOptions {
    pub mix: Mix,
    pub draw: Draw,
    /// The least number of connections of members in multi-key queries.
    pub keys_min: u64,
    /// The plan for finding common entities.
    pub plan: CommonPlan,
}

/// The queries of a run, which are repeated in a seeded order.
#[derive(Debug)]
pub struct Workload {
    pub pool: Vec<PlannedQuery>,
    /// Whether the queries are sent in their own order, as for a record.
    in_order: bool,
}

impl Workload {
    /// Draws a pool of queries of a mix.
    ///
    /// # Errors
    /// If no member has the required number of connections.
    pub fn mixed(
        graph: &str,
        population: &Population,
        options: &MixOptions,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let mut rng = StdRng::seed_from_u64(seed);
        let kinds = population.entity_kinds();
        let pool = (0..POOL).map(|_| {
            let operation = draw_operation(population, &kinds, options, &mut rng)?;
            let query =
                GraphQuery { operation, edge_type: None, direction: None, workflow: Workflow::Interactive };
            let kind = Kind::of(&query.operation);
            Ok(PlannedQuery { kind, graph: graph.to_owned(), query, options: QueryOptions::default() })
        });
        Ok(Self { pool: pool.collect::<anyhow::Result<_>>()?, in_order: false })
    }

    /// Reads the lines of a query record, or any lines that `kith run` accepts.
    ///
    /// # Errors
    /// If the file cannot be read, is empty, or contains a line that is not a request.
    pub fn recorded(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read(file)
            .and_then(kith_types::without_mark)
            .with_context(|| format!("read {}", file.display()))
            .map_err(|error| {
                Failure::new(
                    ErrorCode::InputUnreadable,
                    format!("{error:#}"),
                    "check the path and its permissions",
                )
            })?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let pool = lines.filter_map(|(number, line)| {
            let question = match kith_query::line::parse(line) {
                Ok(Line::Graph(question)) => question,
                // A router also records reads of stores.
                Ok(
                    Line::Batch(_)
                    | Line::Compute(_)
                    | Line::Aggregate(_)
                    | Line::Gremlin(_)
                    | Line::Write(_),
                ) => return None,
                Err(failure) => {
                    let message = format!("{}:{}: {}", file.display(), number + 1, failure.message);
                    return Some(Err(Failure { message, ..failure.into() }));
                }
            };
            let query = question.query();
            let options = question.query_options();
            Some(Ok(PlannedQuery {
                kind: Kind::of(&query.operation),
                graph: question.options.graph,
                query,
                options,
            }))
        });
        let pool = pool.collect::<Result<Vec<_>, Failure>>()?;
        if pool.is_empty() {
            let message = format!("{} holds no requests", file.display());
            return Err(Failure::new(
                ErrorCode::InputUnreadable,
                message,
                "record some with `kith router --record`",
            )
            .into());
        }
        Ok(Self { pool, in_order: true })
    }

    /// Draws `count` indexes into the pool. Equal seeds give equal sequences.
    pub fn sequence(&self, count: usize, seed: u64) -> Vec<usize> {
        let mut rng = StdRng::seed_from_u64(seed);
        let pool = self.pool.len();
        (0..count).map(|index| if self.in_order { index % pool } else { rng.random_range(0..pool) }).collect()
    }
}

fn draw_operation(
    population: &Population,
    kinds: &[String],
    options: &MixOptions,
    rng: &mut impl Rng,
) -> anyhow::Result<Operation> {
    let share: f64 = rng.random();
    let [single, multi, _] = options.mix.0;
    if share < single {
        return Ok(Operation::Connections(ConnectionsQuery { id: population.draw(options.draw, rng) }));
    }
    if share < single + multi {
        let id = population.draw_with_degree(options.draw, options.keys_min, rng).ok_or_else(|| {
            let message = format!("no member has {} connections", options.keys_min);
            Failure::new(ErrorCode::BadRequest, message, "choose a smaller --keys-min")
        })?;
        return Ok(Operation::Network(NetworkQuery { id, returns: NetworkReturn::Size }));
    }
    // Two kinds of pairs in equal numbers: members two steps apart, which have a common connection, and any two members.
    let id = population.draw(options.draw, rng);
    let to = if rng.random() { two_steps(population, id, rng)? } else { population.draw(options.draw, rng) };
    let kind = (!kinds.is_empty()).then(|| kinds[rng.random_range(0..kinds.len())].clone());
    Ok(Operation::Common(CommonQuery { id, to, kind, returns: Want::Exists, plan: options.plan }))
}

fn two_steps(population: &Population, id: u64, rng: &mut impl Rng) -> anyhow::Result<u64> {
    let mut at = id;
    for _ in 0..2 {
        let list = population.list(population.edge(), at)?.unwrap_or_default();
        if !list.is_empty() {
            at = list[rng.random_range(0..list.len())];
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn mixes_are_shares() {
        assert_eq!("40/40/20".parse(), Ok(Mix([0.4, 0.4, 0.2])));
        assert_eq!("0/1/0".parse(), Ok(Mix([0.0, 1.0, 0.0])));
        for wrong in ["", "40/40", "40/40/20/1", "a/b/c", "-1/1/1", "0/0/0", "nan/1/1"] {
            assert!(wrong.parse::<Mix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_record_is_replayed_in_its_order() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, r#"{{"op":"connections","graph":"v","id":1}}"#).unwrap();
        writeln!(
            file,
            r#"
{{"op":"network","graph":"w","id":2,"return":"size","fan_out":"max"}}"#
        )
        .unwrap();
        let workload = Workload::recorded(file.path()).unwrap();
        assert_eq!(workload.sequence(5, 9), [0, 1, 0, 1, 0]);
        assert_eq!((workload.pool[1].kind, workload.pool[1].graph.as_str()), (Kind::MultiKey, "w"));
        assert_eq!(workload.pool[1].options.fan_out, kith_routing::FanOutLimit::Max.into());
    }

    #[test]
    fn a_line_that_is_no_request_is_reported_by_number() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "{{\"op\":\"connections\",\"graph\":\"v\",\"id\":1}}\n{{\"op\":\"reticulate\"}}")
            .unwrap();
        let error = Workload::recorded(file.path()).unwrap_err().to_string();
        assert!(error.contains(":2:"), "{error}");
    }
}
