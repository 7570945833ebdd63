//! The members of a graph, read from the cluster's object store: the members to query, and the correct answers. Asking the
//! cluster for either would add the benchmark's own load.

use crate::failure::Failure;
use anyhow::Context;
use kith_engine::{ComponentReader, GraphReader};
use kith_schema::{EdgeSelector, GraphSchema, KindRole, NeighbourSource};
use kith_types::{Direction, ErrorCode, PartitionCount, PartitionId};
use kith_wire::documents::{ServedDocument, TopologyDocument};
use rand::{Rng, RngExt};
use std::{ops::ControlFlow, path::Path, sync::Arc};

/// The number of keys whose lists are read together.
const BATCH: usize = 1_024;

/// The distribution from which members are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Draw {
    /// Each as likely as any other
    #[default]
    Uniform,
    /// In proportion to its number of connections, as people look at members
    Degree,
}

/// A graph with all its partitions.
#[derive(Debug)]
pub struct Population {
    reader: GraphReader,
    /// Its first edge type; in both directions if it is undirected.
    edge: EdgeSelector,
    /// The member ids, ascending.
    members: Vec<u64>,
    /// The sum of the degrees up to and including each member, by its index.
    degrees_up_to: Vec<u64>,
}

impl Population {
    /// Opens a graph of the cluster at its current version.
    ///
    /// # Errors
    /// If there is no such graph, or its object store is not on this machine.
    pub fn open(topology: &TopologyDocument, graph: &str) -> anyhow::Result<Self> {
        let document = topology.graph(graph).ok_or_else(|| {
            let known: Vec<&str> = topology.graphs().map(|document| document.name.as_str()).collect();
            let help = format!("graphs: {}; load one with `kith load graph`", known.join(", "));
            Failure::new(ErrorCode::UnknownGraph, format!("there is no graph {graph:?}"), help)
        })?;
        let partitions =
            PartitionCount::new(topology.cluster.partitions).context("read the partition count")?;
        let reader =
            open(Path::new(&topology.cluster.object_store), document, partitions).map_err(|error| {
                let message =
                    format!("the graph's files in the cluster's object store cannot be read: {error:#}");
                Failure::new(
                    ErrorCode::ObjectStoreUnreachable,
                    message,
                    "run the benchmark on a machine that has this folder",
                )
            })?;
        Self::over(reader)
    }

    fn over(reader: GraphReader) -> anyhow::Result<Self> {
        let edge = first_edge_type(reader.schema())
            .ok_or_else(|| Failure::new(ErrorCode::BadRequest, "the graph has no edges", "load some"))?;
        let mut members = Vec::new();
        for component in reader.components() {
            if component.manifest().component != edge.kind {
                continue;
            }
            for partition in component.held().filter_map(|partition| component.partition(partition)) {
                members.extend(partition.members().ids()?);
            }
        }
        members.sort_unstable();
        let mut population = Self { reader, edge, members, degrees_up_to: Vec::new() };
        population.sum_degrees()?;
        Ok(population)
    }

    fn sum_degrees(&mut self) -> anyhow::Result<()> {
        let mut sums = Vec::with_capacity(self.members.len());
        let mut sum = 0;
        for keys in self.members.chunks(BATCH) {
            self.reader.lists(&self.edge, keys, &mut |_, list| {
                sum += list.map_or(0, <[u64]>::len) as u64;
                sums.push(sum);
                ControlFlow::Continue(())
            })?;
        }
        self.degrees_up_to = sums;
        anyhow::ensure!(0 < sum, Failure::new(ErrorCode::BadRequest, "the graph has no edges", "load some"));
        Ok(())
    }

    /// The reader of the graph's lists.
    pub fn source(&self) -> &GraphReader {
        &self.reader
    }

    /// The edge type that queries follow.
    pub fn edge(&self) -> &EdgeSelector {
        &self.edge
    }

    /// The names of the entity kinds.
    pub fn entity_kinds(&self) -> Vec<String> {
        let kinds = self.reader.schema().kinds.iter().filter(|kind| kind.role == KindRole::Entity);
        kinds.map(|kind| kind.name.clone()).collect()
    }

    /// Draws a member.
    pub fn draw(&self, draw: Draw, rng: &mut impl Rng) -> u64 {
        let index = match draw {
            Draw::Uniform => rng.random_range(0..self.members.len()),
            Draw::Degree => {
                let total = self.degrees_up_to.last().copied().unwrap_or(1);
                let end = rng.random_range(0..total);
                self.degrees_up_to.partition_point(|sum| *sum <= end)
            }
        };
        self.members[index]
    }

    /// Draws a member with at least this many connections; `None` if there is none.
    pub fn draw_with_degree(&self, draw: Draw, least: u64, rng: &mut impl Rng) -> Option<u64> {
        // Rare members are found too: first by random draws, then by a search through all members.
        let lucky = (0..200).map(|_| self.draw(draw, rng)).find(|id| least <= self.degree(*id));
        lucky.or_else(|| {
            let start = rng.random_range(0..self.members.len());
            let around = self.members[start..].iter().chain(&self.members[..start]);
            around.copied().find(|id| least <= self.degree(*id))
        })
    }

    fn degree(&self, id: u64) -> u64 {
        let Ok(index) = self.members.binary_search(&id) else { return 0 };
        let before = index.checked_sub(1).map_or(0, |index| self.degrees_up_to[index]);
        self.degrees_up_to[index] - before
    }

    /// A member's list; `None` if it is not in the graph.
    ///
    /// # Errors
    /// If its bytes are damaged.
    pub fn list(&self, edge: &EdgeSelector, id: u64) -> anyhow::Result<Option<Vec<u64>>> {
        let mut found = None;
        self.reader.lists(edge, &[id], &mut |_, list| {
            found = list.map(<[u64]>::to_vec);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }
}

fn open(store: &Path, graph: &ServedDocument, partitions: PartitionCount) -> anyhow::Result<GraphReader> {
    let all: Vec<PartitionId> = partitions.iter().collect();
    let components = graph.components.iter().map(|component| {
        let folder = store.join(&graph.name).join(&component.name).join(component.version.to_string());
        let reader = ComponentReader::open(&folder, &all);
        reader.map(Arc::new).with_context(|| format!("open {}", folder.display()))
    });
    Ok(GraphReader::new(partitions, components.collect::<anyhow::Result<_>>()?)?)
}

fn first_edge_type(schema: &GraphSchema) -> Option<EdgeSelector> {
    let kind =
        schema.kinds.iter().find(|kind| matches!(kind.role, KindRole::Undirected | KindRole::Directed))?;
    let direction = if kind.role == KindRole::Directed { Direction::Out } else { Direction::Both };
    Some(EdgeSelector { kind: kind.name.clone(), direction, filter: None })
}
