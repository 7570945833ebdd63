//! The writes that a session has made lately, so that its traversals show them, whichever replica answers.

use kith_live::{Ticket, VISIBLE_AFTER};
use kith_types::{LogPoint, PartitionId};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    time::Instant,
};

/// The most graphs whose writes are kept before old ones are looked for. Graphs that are created anew under the same name have
/// other identities, so their number is not bounded by that of graphs.
const GRAPHS_KEPT: usize = 64;

/// The log points of the latest writes, by the identity of their graph and by partition. Points are forgotten once every read
/// shows their writes anyway. So an entry is small, and a database that was replaced by an older copy of itself makes
/// traversals fail only for that long.
#[derive(Debug, Default)]
pub(crate) struct OwnWrites {
    graphs: Mutex<HashMap<u64, Points>>,
}

/// The latest log point of each partition, and when it was noted.
type Points = BTreeMap<PartitionId, (LogPoint, Instant)>;

impl OwnWrites {
    /// Remembers a write that was confirmed at `now`.
    pub fn note(&self, ticket: &Ticket, now: Instant) {
        let mut graphs = self.graphs.lock();
        if GRAPHS_KEPT < graphs.len() {
            graphs.values_mut().for_each(|points| forget_old(points, now));
            graphs.retain(|_, points| !points.is_empty());
        }
        let points = graphs.entry(ticket.graph).or_default();
        for (&partition, &point) in &ticket.points {
            let known = points.entry(partition).or_insert((point, now));
            *known = (point.max(known.0), now);
        }
    }

    /// A ticket of the writes to a graph that reads may not show yet. `None` if there are none.
    pub fn ticket(&self, graph: u64, now: Instant) -> Option<Ticket> {
        let mut graphs = self.graphs.lock();
        let points = graphs.get_mut(&graph)?;
        forget_old(points, now);
        if points.is_empty() {
            graphs.remove(&graph);
            return None;
        }
        let points = points.iter().map(|(partition, (point, _))| (*partition, *point));
        Some(Ticket { points: points.collect(), ..Ticket::new(graph) })
    }

    /// Forgets the writes to a graph, whose history was lost.
    pub fn forget(&self, graph: u64) {
        self.graphs.lock().remove(&graph);
    }
}

fn forget_old(points: &mut Points, now: Instant) {
    points.retain(|_, (_, noted)| now.saturating_duration_since(*noted) < VISIBLE_AFTER);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn ticket(graph: u64, points: &[(u32, u64)]) -> Ticket {
        let points = points.iter().map(|(partition, at)| (PartitionId(*partition), LogPoint::new(1, *at)));
        Ticket { points: points.collect(), ..Ticket::new(graph) }
    }

    #[test]
    fn the_latest_writes_to_each_partition_are_remembered_for_a_while() {
        let (writes, began) = (OwnWrites::default(), Instant::now());
        let later = began + Duration::from_secs(1);
        writes.note(&ticket(7, &[(0, 5), (1, 3)]), began);
        writes.note(&ticket(7, &[(1, 9)]), later);
        writes.note(&ticket(7, &[(1, 8)]), later);
        assert_eq!(writes.ticket(7, later), Some(ticket(7, &[(0, 5), (1, 9)])));
        assert_eq!(writes.ticket(8, later), None, "another graph, perhaps of the same name");
        assert_eq!(writes.ticket(7, began + VISIBLE_AFTER), Some(ticket(7, &[(1, 9)])));
        assert_eq!(writes.ticket(7, later + VISIBLE_AFTER), None);
    }

    #[test]
    fn a_lost_history_is_forgotten_and_dropped_graphs_do_not_pile_up() {
        let (writes, began) = (OwnWrites::default(), Instant::now());
        writes.note(&ticket(7, &[(0, 5)]), began);
        writes.forget(7);
        assert_eq!(writes.ticket(7, began), None);
        (0..1_000).for_each(|graph| {
            writes.note(&ticket(graph, &[(0, 1)]), began + Duration::from_secs(graph));
        });
        assert!(writes.graphs.lock().len() <= GRAPHS_KEPT + 1);
    }
}
