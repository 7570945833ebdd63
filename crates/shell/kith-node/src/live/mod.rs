//! Live graphs on a node: the partitions that it leads, the logs that it follows, and the reads that it answers
//! (`docs/design/0019-live-graph.md`).

mod adjacency;
mod answer;
mod catch_up;
mod ends;
mod errors;
mod evaluate;
#[cfg(test)]
mod fail_points;
mod find;
mod graph;
mod hand_over;
mod lead;
mod message;
mod open;
mod read;
mod registry;
mod scan;
mod tail;
#[cfg(test)]
mod tests;
mod trim;
mod turns;
mod types;
mod unopened;

pub(crate) use evaluate::Evaluated;
pub(crate) use graph::LiveGraph;
pub(crate) use hand_over::LeadershipView;
#[cfg(test)]
use open::Databases;
pub(crate) use registry::{LiveGraphs, Surroundings};
