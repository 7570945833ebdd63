//! The time after which a request counts as late: measured on similar requests, or from a fixed table (0008).

use super::{HedgeRule, HedgeTime};
use crate::load::latency::Durations;
use crate::load::{Hedging, KeyClass, RequestKind, Work};
use kith_types::{NodeId, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// A node's latencies count from this many samples on. With fewer samples, its 99th percentile is its slowest request.
const SAMPLES_MIN: u64 = 100;
/// The earliest hedge (Venice). Below this, a second request costs more than it can gain.
const AFTER_MIN: Duration = Duration::from_millis(1);
/// The time for which results that were computed from the samples are reused.
const REFRESH: Duration = Duration::from_millis(100);
/// Venice's table for batches at the fast client: milliseconds by the number of keys of the query. Single gets have 1 ms.
const TABLE: [(usize, u64); 6] = [(1, 1), (12, 8), (20, 30), (150, 50), (500, 100), (usize::MAX, 500)];

type Class = (Work, KeyClass);

/// The durations of requests by node and class.
#[derive(Clone, Debug, Default)]
pub(super) struct HedgeTimes {
    durations: BTreeMap<NodeId, BTreeMap<Class, Durations>>,
    /// The last result for each class, and when it was computed.
    computed: BTreeMap<Class, (Timestamp, Option<HedgeTime>)>,
}

impl HedgeTimes {
    pub fn add(&mut self, node: NodeId, work: Work, keys: usize, took: Duration, now: Timestamp) {
        let classes = self.durations.entry(node).or_default();
        let durations = classes.entry((work, KeyClass::of(keys))).or_insert_with(|| Durations::new(now));
        durations.add(took, now);
    }

    pub fn forget(&mut self, node: NodeId) {
        self.durations.remove(&node);
    }

    /// Returns the rule for the requests of a query with `keys` keys; `None` if nothing is hedged.
    pub fn rule(&mut self, hedging: Hedging, work: Work, keys: usize, now: Timestamp) -> Option<HedgeRule> {
        let fixed = HedgeTime { after: fixed_after(keys), expected: Duration::ZERO };
        let mut times = [None; KeyClass::COUNT];
        match hedging {
            Hedging::Off => return None,
            Hedging::Table => times = [Some(fixed); KeyClass::COUNT],
            Hedging::Live => {
                // The table for reads by key does not apply to graph queries, which are not hedged before their latencies
                // are known.
                let unknown = (work.asked == RequestKind::Values).then_some(fixed);
                for (time, class) in times.iter_mut().zip(KeyClass::all()) {
                    *time = self.time((work, class), now).or(unknown);
                }
            }
        }
        times.iter().any(Option::is_some).then_some(HedgeRule { times, ..HedgeRule::default() })
    }

    /// Returns the lower median over the nodes. The percentile of all requests together would be that of the one slow node
    /// that hedging is meant for.
    fn time(&mut self, class: Class, now: Timestamp) -> Option<HedgeTime> {
        if let Some((when, time)) = self.computed.get(&class)
            && now.since(*when) < REFRESH
        {
            return *time;
        }
        let known = self.durations.values().filter_map(|classes| classes.get(&class));
        let known: Vec<&Durations> = known.filter(|durations| SAMPLES_MIN <= durations.samples()).collect();
        let median = |per_mille: u64| {
            let mut of_nodes: Vec<Duration> = known.iter().filter_map(|d| d.per_mille(per_mille)).collect();
            of_nodes.sort_unstable();
            of_nodes.get(of_nodes.len().saturating_sub(1) / 2).copied()
        };
        let time = median(990)
            .zip(median(500))
            .map(|(p99, p50)| HedgeTime { after: p99.max(AFTER_MIN), expected: p50 });
        self.computed.insert(class, (now, time));
        time
    }
}

fn fixed_after(keys: usize) -> Duration {
    let row = TABLE.iter().find(|(most, _)| keys <= *most).expect("the last row has no bound");
    Duration::from_millis(row.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::FanOutKind;

    const VALUES: Work = Work { asked: RequestKind::Values, kind: FanOutKind::NonUnion };
    const GRAPH: Work = Work { asked: RequestKind::Graph, kind: FanOutKind::SyncUnion };

    fn at(millis: u64) -> Timestamp {
        Timestamp(Duration::from_millis(millis))
    }

    fn after(times: &mut HedgeTimes, hedging: Hedging, work: Work, keys: usize) -> Option<Duration> {
        Some(times.rule(hedging, work, keys, at(60_000))?.times[KeyClass::of(keys).index()]?.after)
    }

    fn ms(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    #[test]
    fn the_table_is_venices() {
        let mut times = HedgeTimes::default();
        let mut of = |keys: usize| after(&mut times, Hedging::Table, GRAPH, keys);
        assert_eq!([of(1), of(2), of(12), of(13), of(20)], [ms(1), ms(8), ms(8), ms(30), ms(30)]);
        assert_eq!([of(21), of(150), of(151), of(500), of(501)], [ms(50), ms(50), ms(100), ms(100), ms(500)]);
    }

    #[test]
    fn a_slow_node_in_six_does_not_move_the_time() {
        let mut times = HedgeTimes::default();
        for sample in 0..1_000u64 {
            for node in 0..6 {
                let slow = if node == 3 { 10 } else { 1 };
                let took = Duration::from_micros((2_000 + sample % 100 * 10) * slow);
                times.add(NodeId(node), VALUES, 50, took, at(60_000));
            }
        }
        let after = after(&mut times, Hedging::Live, VALUES, 50).unwrap();
        assert!((ms(3)..=ms(4)).contains(&Some(after)), "{after:?}");
    }

    #[test]
    fn until_times_are_known_values_go_by_the_table_and_graphs_are_not_hedged() {
        let mut times = HedgeTimes::default();
        assert_eq!(after(&mut times, Hedging::Live, VALUES, 50), ms(50));
        assert_eq!(times.rule(Hedging::Live, GRAPH, 50, at(0)), None);
        assert_eq!(times.rule(Hedging::Off, VALUES, 50, at(0)), None);
        (0..200).for_each(|_| times.add(NodeId(0), GRAPH, 50, Duration::from_micros(90), at(60_000)));
        assert_eq!(after(&mut times, Hedging::Live, GRAPH, 50), ms(1), "never below a millisecond");
        assert_eq!(after(&mut times, Hedging::Live, GRAPH, 5_000), None, "another class");
    }
}
