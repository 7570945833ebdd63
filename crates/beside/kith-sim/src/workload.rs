//! The queries of clients: the 40/40/20 mix of Moolle §II-C.
//!
//! The paper does not publish the numbers of keys of its multi-key queries. It says that most active members have enough
//! connections to reach "almost every" of 200 nodes (§II-C), and that its union queries range from under 450 keys to over
//! 3,000 (§IV-C3). [`KeyCounts::of_the_paper`] is therefore lognormal, with a median of 400 (which reaches 173 of 200 nodes
//! by equation 3), a spread of 1, and bounds of 50 and 5,000.

use crate::tail_latency::normal_quantile;
use kith_types::{FanOutKind, OperationName, PartitionCount, PartitionId};
use rand::{Rng, RngExt};
use std::time::Duration;

/// The distribution of the number of keys of multi-key queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyCounts {
    /// The median of the distribution without its bounds.
    pub median: f64,
    /// The standard deviation of the logarithm; 0 if all queries have the same number of keys.
    pub spread: f64,
    /// The minimum.
    pub least: u32,
    /// The maximum.
    pub most: u32,
}

impl KeyCounts {
    /// Returns the lognormal distribution that the module documentation explains.
    pub fn of_the_paper() -> Self {
        Self { median: 400.0, spread: 1.0, least: 50, most: 5_000 }
    }

    /// Returns a distribution in which all queries have the same number of keys.
    pub fn exactly(keys: u32) -> Self {
        Self { median: f64::from(keys), spread: 0.0, least: keys, most: keys }
    }

    /// Draws a number of keys. If the number is outside the bounds, it is drawn again.
    pub fn draw(&self, rng: &mut impl Rng) -> u32 {
        loop {
            let u = rng.random_range(1e-9..1.0 - 1e-9);
            let keys = self.median * (self.spread * normal_quantile(u)).exp();
            if (f64::from(self.least)..=f64::from(self.most)).contains(&keys.round()) {
                return keys.round() as u32;
            }
        }
    }
}

/// Returns the operation that makes fan-outs of the given kind in the paper (§IV-A).
pub fn operation_of(kind: FanOutKind) -> OperationName {
    match kind {
        FanOutKind::SingleKey => OperationName::new("connections"),
        FanOutKind::NonUnion => OperationName::new("distance"),
        FanOutKind::SyncUnion | FanOutKind::AsyncUnion => OperationName::new("network"),
        FanOutKind::EarlyTerminable | FanOutKind::Broadcast => OperationName::new("common"),
    }
}

/// The distribution of the gaps between queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Queries arrive independently of each other.
    Poisson,
    /// Queries are evenly spaced.
    Regular,
}

/// The workload of each client.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The kinds of fan-out with their relative frequencies, which need not add up to 1.
    pub mix: Vec<(FanOutKind, f64)>,
    /// The number of keys of the multi-key kinds.
    pub keys: KeyCounts,
    /// The share of early-terminable queries that have a positive answer. The paper only says "a high probability of early
    /// termination" (§IV-D).
    pub positive_share: f64,
    /// The mean number of partitions with a positive answer, among queries that have one. The distribution is geometric.
    pub hits_mean: f64,
    /// Queries per second at each client.
    pub qps: f64,
    /// The distribution of the gaps between queries.
    pub arrivals: Arrivals,
}

/// One query as a client receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuerySpec {
    /// The kind of its fan-out.
    pub kind: FanOutKind,
    /// The partition of each key.
    pub partitions: Vec<PartitionId>,
    /// The partitions with a positive answer, sorted.
    pub hits: Vec<PartitionId>,
}

impl Workload {
    /// Returns a workload of 40 % single-key, 40 % multi-key and 20 % common-entity queries, seven in ten of which have a
    /// common entity.
    pub fn mixed(qps: f64) -> Self {
        Self {
            mix: vec![
                (FanOutKind::SingleKey, 0.4),
                (FanOutKind::SyncUnion, 0.4),
                (FanOutKind::EarlyTerminable, 0.2),
            ],
            keys: KeyCounts::of_the_paper(),
            positive_share: 0.7,
            hits_mean: 4.0,
            qps,
            arrivals: Arrivals::Poisson,
        }
    }

    /// Returns a workload of queries of one kind.
    pub fn only(kind: FanOutKind, qps: f64) -> Self {
        Self { mix: vec![(kind, 1.0)], ..Self::mixed(qps) }
    }

    /// Draws the time until the next query.
    pub fn gap(&self, rng: &mut impl Rng) -> Duration {
        let mean = 1.0 / self.qps;
        match self.arrivals {
            Arrivals::Regular => Duration::from_secs_f64(mean),
            Arrivals::Poisson => Duration::from_secs_f64(-mean * (1.0 - rng.random::<f64>()).ln()),
        }
    }

    /// Draws the next query. Keys are distributed uniformly over the partitions, as a hash would distribute them.
    pub fn draw(&self, partitions: PartitionCount, rng: &mut impl Rng) -> QuerySpec {
        let kind = self.draw_kind(rng);
        let mut any = || PartitionId(rng.random_range(0..partitions.get()));
        match kind {
            FanOutKind::SingleKey => QuerySpec { kind, partitions: vec![any()], hits: Vec::new() },
            FanOutKind::NonUnion | FanOutKind::SyncUnion | FanOutKind::AsyncUnion => {
                let keys = self.keys.draw(rng);
                let mut any = || PartitionId(rng.random_range(0..partitions.get()));
                QuerySpec { kind, partitions: (0..keys).map(|_| any()).collect(), hits: Vec::new() }
            }
            FanOutKind::EarlyTerminable | FanOutKind::Broadcast => {
                let hits = self.draw_hits(partitions, rng);
                QuerySpec { kind, partitions: partitions.iter().collect(), hits }
            }
        }
    }

    fn draw_kind(&self, rng: &mut impl Rng) -> FanOutKind {
        let total: f64 = self.mix.iter().map(|(_, share)| share).sum();
        let mut left = rng.random::<f64>() * total;
        for (kind, share) in &self.mix {
            left -= share;
            if left < 0.0 {
                return *kind;
            }
        }
        self.mix.last().expect("a workload has at least one kind of query").0
    }

    fn draw_hits(&self, partitions: PartitionCount, rng: &mut impl Rng) -> Vec<PartitionId> {
        let mut hits = Vec::new();
        if rng.random::<f64>() < self.positive_share {
            hits.push(PartitionId(rng.random_range(0..partitions.get())));
            while 1.0 < self.hits_mean && rng.random::<f64>() < 1.0 - 1.0 / self.hits_mean {
                hits.push(PartitionId(rng.random_range(0..partitions.get())));
            }
        }
        hits.sort_unstable();
        hits.dedup();
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    #[test]
    fn the_mix_is_40_40_20_and_multi_key_queries_have_at_least_50_keys() {
        let (workload, mut rng) = (Workload::mixed(10.0), StdRng::seed_from_u64(3));
        let partitions = PartitionCount::new(1_536).unwrap();
        let drawn: Vec<QuerySpec> = (0..10_000).map(|_| workload.draw(partitions, &mut rng)).collect();
        let share =
            |kind| drawn.iter().filter(|query| query.kind == kind).count() as f64 / drawn.len() as f64;
        for (kind, expected) in &workload.mix {
            assert!((share(*kind) - expected).abs() < 0.02, "{kind:?}: {}", share(*kind));
        }
        let multi = drawn.iter().filter(|query| query.kind == FanOutKind::SyncUnion);
        let mut keys: Vec<usize> = multi.map(|query| query.partitions.len()).collect();
        keys.sort_unstable();
        assert!(50 <= keys[0] && keys[keys.len() - 1] <= 5_000);
        assert!((370..450).contains(&keys[keys.len() / 2]), "median {}", keys[keys.len() / 2]);
    }

    #[test]
    fn seven_in_ten_common_entity_queries_have_a_hit() {
        let (workload, mut rng) =
            (Workload::only(FanOutKind::EarlyTerminable, 10.0), StdRng::seed_from_u64(4));
        let partitions = PartitionCount::new(1_536).unwrap();
        let hits: Vec<usize> = (0..5_000).map(|_| workload.draw(partitions, &mut rng).hits.len()).collect();
        let positive = hits.iter().filter(|hits| 0 < **hits).count();
        assert!((3_350..3_650).contains(&positive), "{positive}");
        let mean = hits.iter().sum::<usize>() as f64 / positive as f64;
        assert!((3.7..4.3).contains(&mean), "{mean}");
    }

    #[test]
    fn gaps_have_the_mean_of_the_rate() {
        let (mut workload, mut rng) = (Workload::mixed(50.0), StdRng::seed_from_u64(5));
        let total: Duration = (0..10_000).map(|_| workload.gap(&mut rng)).sum();
        assert!((total.as_secs_f64() / 200.0 - 1.0).abs() < 0.05, "{total:?}");
        workload.arrivals = Arrivals::Regular;
        assert_eq!(workload.gap(&mut rng), Duration::from_millis(20));
    }
}
