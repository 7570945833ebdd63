//! The parts that whole-system benchmarks share: a graph read from its file, CPU time by process, the rivals.

pub mod cpu;
pub mod gather;
pub mod mariadb;
pub mod memcached;
pub mod postgres;
pub mod reads;
pub mod received;
pub mod redis;
pub mod slow;
pub mod turns;

use flate2::read::MultiGzDecoder;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

/// An undirected graph in memory. It draws members to ask about, and computes answers in the simplest way.
pub struct Edges {
    /// The edges in the order of the file, each once.
    pub edges: Vec<(u64, u64)>,
    neighbours: BTreeMap<u64, Vec<u64>>,
}

impl Edges {
    /// Reads `src,dst` lines under one header line, gzipped.
    pub fn read(file: &Path) -> Self {
        let file = File::open(file).unwrap_or_else(|error| panic!("open {}: {error}", file.display()));
        let lines = BufReader::new(MultiGzDecoder::new(file)).lines().skip(1);
        let edges: Vec<(u64, u64)> = lines
            .map(|line| {
                let line = line.expect("the file can be read");
                let (src, dst) = line.split_once(',').expect("two columns");
                (src.parse().expect("an id"), dst.parse().expect("an id"))
            })
            .collect();
        let mut neighbours: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (a, b) in &edges {
            neighbours.entry(*a).or_default().push(*b);
            neighbours.entry(*b).or_default().push(*a);
        }
        Self { edges, neighbours }
    }

    /// Draws members, each with the same probability.
    pub fn uniform(&self, count: usize, seed: u64) -> Vec<u64> {
        let members: Vec<u64> = self.neighbours.keys().copied().collect();
        let mut rng = StdRng::seed_from_u64(seed);
        (0..count).map(|_| members[rng.random_range(0..members.len())]).collect()
    }

    /// The number of members.
    pub fn members(&self) -> usize {
        self.neighbours.len()
    }

    /// Draws members with a probability in proportion to their connections, as the ends of random edges.
    pub fn by_degree(&self, count: usize, seed: u64) -> Vec<u64> {
        let mut rng = StdRng::seed_from_u64(seed);
        let end = |rng: &mut StdRng| {
            let (a, b) = self.edges[rng.random_range(0..self.edges.len())];
            if rng.random() { a } else { b }
        };
        (0..count).map(|_| end(&mut rng)).collect()
    }

    /// The number of connections of a member.
    pub fn degree(&self, id: u64) -> usize {
        self.neighbours[&id].len()
    }

    /// The number of ids in the lists that a network is made of. This is the work of a query about it in any system.
    pub fn ids_read(&self, id: u64) -> usize {
        let first = &self.neighbours[&id];
        first.len() + first.iter().map(|friend| self.neighbours[friend].len()).sum::<usize>()
    }

    /// The number of members in the first degree, and the number within two steps without the member itself.
    pub fn network(&self, id: u64) -> (u64, u64) {
        let first = &self.neighbours[&id];
        let mut within: BTreeSet<u64> = first.iter().copied().collect();
        within.extend(first.iter().flat_map(|friend| &self.neighbours[friend]));
        within.remove(&id);
        (first.len() as u64, within.len() as u64)
    }

    /// The number of members that two steps reach, which may include the member itself.
    pub fn reached(&self, id: u64) -> u64 {
        let second: BTreeSet<u64> =
            self.neighbours[&id].iter().flat_map(|friend| &self.neighbours[friend]).copied().collect();
        second.len() as u64
    }

    /// The number of neighbours that two members have in common.
    pub fn common(&self, a: u64, b: u64) -> u64 {
        let other: BTreeSet<&u64> = self.neighbours[&b].iter().collect();
        self.neighbours[&a].iter().filter(|id| other.contains(id)).count() as u64
    }

    /// The number of walks of a length from a member.
    pub fn walks(&self, from: u64, length: u32) -> u64 {
        if length == 0 {
            return 1;
        }
        self.neighbours[&from].iter().map(|next| self.walks(*next, length - 1)).sum()
    }

    /// The distances of members, from 0 to 3; `None` for those that are farther away.
    pub fn distances(&self, from: u64, to: &[u64]) -> Vec<Option<u8>> {
        let mut steps = BTreeMap::from([(from, 0)]);
        let mut frontier = vec![from];
        for step in 1..=3 {
            let mut next = Vec::new();
            for friend in frontier.iter().flat_map(|id| &self.neighbours[id]) {
                steps.entry(*friend).or_insert_with(|| {
                    next.push(*friend);
                    step
                });
            }
            frontier = next;
        }
        to.iter().map(|id| steps.get(id).copied()).collect()
    }
}

/// Reads a number from the environment, which says how much to measure.
pub fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
