//! The points of the logs at which nodes read the partitions of a live graph. All answers of a query show each partition at
//! one point.

use super::ReachedPoints;
use kith_live::Ticket;
use kith_topology::Pin;
use kith_types::PartitionId;
use kith_wire::v1;

/// The points of the logs at which the answers that count were read. Only used for live graphs.
pub(in crate::executor) struct ReadPoints {
    pin: Pin,
    points: ReachedPoints,
}

impl ReadPoints {
    /// Begins with the points at which the query has read partitions before.
    pub fn new(pin: Pin, points: ReachedPoints) -> Self {
        Self { pin, points }
    }

    /// The points at which a reply was read; none for a loaded graph or a store. `None` if the reply does not name them, or
    /// is about another state than was asked for.
    pub fn of_reply(&self, reply: &v1::EvaluateReply) -> Option<ReachedPoints> {
        points_of(self.pin, &reply.served)
    }

    /// The first partition that was read at another point than in the answers that count.
    pub fn moved(&self, points: &ReachedPoints) -> Option<PartitionId> {
        let mut moved = points
            .iter()
            .filter(|(partition, point)| self.points.get(partition).is_some_and(|known| known != *point));
        moved.next().map(|(partition, _)| *partition)
    }

    /// Notes the points of an answer that counts. Returns `false` if other answers show a partition at another point.
    pub fn note(&mut self, points: ReachedPoints) -> bool {
        let is_one_state = self.moved(&points).is_none();
        for (partition, point) in points {
            self.points.entry(partition).or_insert(point);
        }
        is_one_state
    }

    /// The points at which further requests must read, encoded for requests.
    pub fn encoded(&self) -> Vec<u8> {
        match self.pin {
            Pin::Live { identity } if !self.points.is_empty() => {
                Ticket { points: self.points.clone(), ..Ticket::new(identity) }.to_bytes()
            }
            _ => Vec::new(),
        }
    }

    /// Takes out the points.
    pub fn take(&mut self) -> ReachedPoints {
        std::mem::take(&mut self.points)
    }
}

fn points_of(pin: Pin, served: &[v1::Served]) -> Option<ReachedPoints> {
    match pin {
        Pin::Version(version) => {
            let is_it = |served: &v1::Served| served.version == version && served.ticket.is_empty();
            served.iter().all(is_it).then(ReachedPoints::new)
        }
        Pin::Live { identity } => {
            let [served] = served else { return None };
            let ticket = Ticket::from_bytes(&served.ticket).ok()?;
            (ticket.graph == identity).then_some(ticket.points)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::LogPoint;

    fn ticket(graph: u64) -> Ticket {
        Ticket { points: ReachedPoints::from([(PartitionId(3), LogPoint::new(1, 9))]), ..Ticket::new(graph) }
    }

    fn live(ticket: &Ticket) -> v1::Served {
        v1::Served { name: "g".to_owned(), version: 0, ticket: ticket.to_bytes().into() }
    }

    #[test]
    fn a_reply_of_a_live_graph_has_the_points_that_it_was_read_at() {
        let pin = Pin::Live { identity: 7 };
        assert_eq!(points_of(pin, &[live(&ticket(7))]), Some(ticket(7).points));
        assert_eq!(points_of(pin, &[live(&ticket(8))]), None, "another graph");
        assert_eq!(points_of(pin, &[v1::Served::of_version("g".to_owned(), 0)]), None);
        assert_eq!(points_of(pin, &[]), None);
    }

    #[test]
    fn a_reply_of_a_loaded_graph_is_of_the_version_that_was_asked() {
        let pin = Pin::Version(4);
        let version = |version| v1::Served::of_version("g".to_owned(), version);
        assert_eq!(points_of(pin, &[version(4)]), Some(ReachedPoints::new()));
        assert_eq!(points_of(pin, &[version(5)]), None);
        assert_eq!(points_of(pin, &[live(&ticket(7))]), None);
    }
}
