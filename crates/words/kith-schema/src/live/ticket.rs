//! Tickets: the log points that a read must have reached (FlightTracker, OSDI 2020, §3; here, one for each partition).

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use kith_types::{
    LogPoint, PartitionId, Position, Term, crc32c,
    delta::{put_varint, take_varint},
};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// The time for which a replica answers from memory after it has last proven to the database that it is up to date. A
/// write that was confirmed this long before a read began is shown by it, with or without its ticket.
pub const STALE_MAX: Duration = Duration::from_secs(2);

/// The time for which sessions keep the tickets of their own writes: well beyond [`STALE_MAX`].
pub const VISIBLE_AFTER: Duration = Duration::from_secs(5 * STALE_MAX.as_secs());

/// The log points of a live graph that a read must have reached. As text, a ticket is URL-safe base64
/// (`docs/formats/ticket.md`). Callers pass it back as they got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The identity of the graph, which is chosen when the graph is created.
    pub graph: u64,
    /// The log point that must have been reached, by partition.
    pub points: BTreeMap<PartitionId, LogPoint>,
    /// Log points of earlier terms that must be part of the history of the log, the last of each term. A later point does not
    /// stand for them: they are missing if the database was replaced by an older copy of itself.
    pub earlier: BTreeMap<(PartitionId, Term), Position>,
}

const FORMAT: u8 = 2;
/// The maximum number of earlier terms of a partition whose points a ticket keeps. The latest ones are kept.
const EARLIER_MAX: usize = 8;
/// The maximum number of partitions of a ticket, which is that of a cluster.
const POINTS_MAX: u64 = kith_types::PartitionCount::MAX as u64;

/// A text, or a sequence of bytes, is not a ticket.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the ticket is not one that a write returned")]
pub struct NotATicket;

impl Ticket {
    /// Creates a ticket that requires nothing yet. `graph` is the identity of the graph.
    pub fn new(graph: u64) -> Self {
        Self { graph, points: BTreeMap::new(), earlier: BTreeMap::new() }
    }

    /// Requires the log point `point` of `partition`, besides what is already required.
    pub fn require(&mut self, partition: PartitionId, point: LogPoint) {
        let required = self.points.entry(partition).or_default();
        let before = point.min(*required);
        *required = point.max(*required);
        if before.term < required.term && before != LogPoint::default() {
            self.require_earlier(partition, before);
        }
    }

    fn require_earlier(&mut self, partition: PartitionId, point: LogPoint) {
        let last = self.earlier.entry((partition, point.term)).or_default();
        *last = point.position.max(*last);
        let of_partition = (partition, Term(0))..=(partition, Term(u64::MAX));
        if EARLIER_MAX < self.earlier.range(of_partition.clone()).count() {
            let first = self.earlier.range(of_partition).next().map(|(key, _)| *key);
            first.and_then(|key| self.earlier.remove(&key));
        }
    }

    /// Requires everything that `other` requires, which must be a ticket of the same graph.
    pub fn merge(&mut self, other: &Ticket) {
        debug_assert_eq!(self.graph, other.graph, "positions of different graphs cannot be compared");
        for (&partition, &point) in &other.points {
            self.require(partition, point);
        }
        for (&(partition, term), &position) in &other.earlier {
            self.require(partition, LogPoint { term, position });
        }
    }

    /// The log points of earlier terms that must be part of the history of `partition`.
    pub fn earlier_points(&self, partition: PartitionId) -> impl Iterator<Item = LogPoint> {
        let of_partition = (partition, Term(0))..=(partition, Term(u64::MAX));
        self.earlier
            .range(of_partition)
            .map(|((_, term), position)| LogPoint { term: *term, position: *position })
    }

    /// Returns the log point that a read of `partition` must have reached; the start of the log if the ticket does not name
    /// the partition.
    pub fn point(&self, partition: PartitionId) -> LogPoint {
        self.points.get(&partition).copied().unwrap_or_default()
    }

    /// Encodes the ticket: the format, the identity of the graph, the number of log points, and for each log point the gap
    /// to the partition before, the term and the position; the number of points of earlier terms, and for each of them the
    /// partition, the term and the position; then a CRC-32C of all of these bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.graph.to_le_bytes());
        put_varint(&mut bytes, self.points.len() as u64);
        let mut next = 0;
        for (partition, point) in &self.points {
            put_varint(&mut bytes, u64::from(partition.0 - next));
            put_varint(&mut bytes, point.term.0);
            put_varint(&mut bytes, point.position.0);
            next = partition.0 + 1;
        }
        put_varint(&mut bytes, self.earlier.len() as u64);
        for ((partition, term), position) in &self.earlier {
            for number in [u64::from(partition.0), term.0, position.0] {
                put_varint(&mut bytes, number);
            }
        }
        let checksum = crc32c(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }

    /// Decodes a ticket that [`Ticket::to_bytes`] encoded.
    ///
    /// # Errors
    /// [`NotATicket`] if bytes were changed, are missing, or follow the ticket.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotATicket> {
        let (body, checksum) = bytes.split_last_chunk().ok_or(NotATicket)?;
        if crc32c(body) != u32::from_le_bytes(*checksum) {
            return Err(NotATicket);
        }
        let (&[FORMAT], rest) = body.split_first_chunk().ok_or(NotATicket)? else { return Err(NotATicket) };
        let (graph, mut rest) = rest.split_first_chunk().ok_or(NotATicket)?;
        let mut ticket = Self::new(u64::from_le_bytes(*graph));
        let mut take = || take_varint(&mut rest).map_err(|_| NotATicket);
        let count = take()?;
        if POINTS_MAX < count {
            return Err(NotATicket);
        }
        let mut next = 0u64;
        for _ in 0..count {
            let partition =
                take()?.checked_add(next).and_then(|it| u32::try_from(it).ok()).ok_or(NotATicket)?;
            let point = LogPoint::new(take()?, take()?);
            ticket.points.insert(PartitionId(partition), point);
            next = u64::from(partition) + 1;
        }
        for _ in 0..take()? {
            let partition = PartitionId(u32::try_from(take()?).map_err(|_| NotATicket)?);
            let (point, later) = (LogPoint::new(take()?, take()?), ticket.point(partition));
            if later.term <= point.term || EARLIER_MAX <= ticket.earlier_points(partition).count() {
                return Err(NotATicket);
            }
            ticket.earlier.insert((partition, point.term), point.position);
        }
        if rest.is_empty() { Ok(ticket) } else { Err(NotATicket) }
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(self.to_bytes()))
    }
}

impl FromStr for Ticket {
    type Err = NotATicket;

    fn from_str(text: &str) -> Result<Self, NotATicket> {
        Self::from_bytes(&BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| NotATicket)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn merging_keeps_the_later_place_of_each_partition() {
        let mut one = Ticket::new(7);
        one.require(PartitionId(3), LogPoint::new(2, 10));
        let mut other = Ticket::new(7);
        other.require(PartitionId(3), LogPoint::new(1, 99));
        other.require(PartitionId(4), LogPoint::new(1, 5));
        one.merge(&other);
        assert_eq!(one.point(PartitionId(3)), LogPoint::new(2, 10));
        assert_eq!(one.point(PartitionId(4)), LogPoint::new(1, 5));
        assert_eq!(one.point(PartitionId(5)), LogPoint::default());
        assert_eq!(one.earlier_points(PartitionId(3)).collect::<Vec<_>>(), [LogPoint::new(1, 99)]);
        assert_eq!(one.earlier_points(PartitionId(4)).count(), 0);
    }

    /// A history of one partition: how long the log was when each term ended, and which position the term began at.
    fn contains(history: &[(u64, u64, u64)], point: LogPoint) -> bool {
        let is_of = |(term, begin, end): &(u64, u64, u64)| {
            *term == point.term.0 && (*begin..=*end).contains(&point.position.0)
        };
        history.iter().any(is_of)
    }

    proptest! {
        /// Whatever is merged, in whatever order: the history must contain what the ticket requires exactly if it contains
        /// every single point, and the latest of them is the one that reads must have reached.
        #[test]
        fn a_merged_ticket_is_lost_if_one_of_its_points_is(
            terms in prop::collection::btree_map(1u64..8, 1u64..20, 1..7),
            points in prop::collection::vec((1u64..8, 1u64..60), 1..12),
            groups in prop::collection::vec(0usize..4, 12),
        ) {
            let (mut begin, mut history) = (1, Vec::new());
            for (term, length) in terms {
                history.push((term, begin, begin + length));
                begin += length + 1;
            }
            let mut tickets = vec![Ticket::new(7); 4];
            for (point, group) in points.iter().zip(groups) {
                tickets[group].require(PartitionId(3), LogPoint::new(point.0, point.1));
            }
            let mut merged = Ticket::new(7);
            tickets.iter().for_each(|ticket| merged.merge(ticket));
            let merged: Ticket = merged.to_string().parse().unwrap();
            let points: Vec<_> = points.iter().map(|point| LogPoint::new(point.0, point.1)).collect();
            // Within a term, a later point stands for those before it, if it is part of the history.
            let last_of_terms = points.iter().filter(|point| {
                !points.iter().any(|other| other.term == point.term && point.position < other.position)
            });
            let twin = last_of_terms.copied().all(|point| contains(&history, point));
            let latest = merged.point(PartitionId(3));
            let is_contained = merged.earlier_points(PartitionId(3)).chain([latest]).all(|point| contains(&history, point));
            prop_assert_eq!(is_contained, twin);
            prop_assert_eq!(Some(&latest), points.iter().max());
        }

        #[test]
        fn a_ticket_is_bounded(points in prop::collection::vec((0u32..3, 0u64..1_000, 0u64..1_000), 0..200)) {
            let mut ticket = Ticket::new(7);
            for (partition, term, position) in points {
                ticket.require(PartitionId(partition), LogPoint::new(term, position));
            }
            prop_assert!(ticket.earlier.len() <= 3 * EARLIER_MAX);
            prop_assert_eq!(ticket.to_string().parse::<Ticket>(), Ok(ticket));
        }

        #[test]
        fn a_ticket_survives_its_text_and_no_other_text_is_one(
            graph: u64,
            points in proptest::collection::btree_map(0u32..=65_535, (0u64.., 0u64..), 0..6),
            at: proptest::sample::Index,
            flip in 1u8..,
        ) {
            let points = points.into_iter()
                .map(|(partition, (term, position))| (PartitionId(partition), LogPoint::new(term, position)))
                .collect();
            let ticket = Ticket { points, ..Ticket::new(graph) };
            prop_assert_eq!(ticket.to_string().parse::<Ticket>(), Ok(ticket.clone()));
            let mut bytes = ticket.to_bytes();
            let at = at.index(bytes.len());
            prop_assert_eq!(Ticket::from_bytes(&bytes[..at]), Err(NotATicket));
            bytes[at] ^= flip;
            prop_assert_eq!(Ticket::from_bytes(&bytes), Err(NotATicket));
        }
    }
}
