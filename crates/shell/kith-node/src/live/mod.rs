//! Live graphs on a node: the partitions that it leads, the logs that it follows, and the reads that it answers
//! (`docs/design/0019-live-graph.md`). [`registry`] holds the graphs that the topology names, and [`graph`] lists the parts
//! of each.

mod answer;
mod count;
mod database;
mod ends;
mod errors;
mod evaluate;
#[cfg(test)]
mod fail_points;
mod find;
mod freshness;
mod graph;
mod hand_over;
mod lead;
mod list_builder;
mod lists;
mod logs;
mod message;
mod open;
mod outcomes;
mod partitions;
mod read;
mod registry;
mod rows;
mod scan;
#[cfg(test)]
mod tests;
mod trim;
mod turns;
mod types;
mod unopened;
mod wire;

pub(crate) use evaluate::LiveValue;
pub(crate) use graph::LiveGraph;
pub(crate) use hand_over::LeadershipView;
#[cfg(test)]
use open::Databases;
pub(crate) use registry::{LiveGraphs, Surroundings};
