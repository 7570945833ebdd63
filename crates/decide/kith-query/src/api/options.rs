//! The options of one query.

use crate::{EarlyResults, QueryError};
use kith_schema::live::Ticket;
use kith_types::Workflow;
use kith_types::{FanOutLimits, Hedging};
use std::time::Duration;

/// The options of one query. `Default` leaves every choice to the session's configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryOptions {
    /// The number of groups that may take part, for all rounds or by kind of fan-out.
    pub fan_out: FanOutLimits,
    /// The name of a replica policy; `None` uses the session's.
    pub policy: Option<String>,
    /// Whether to use the router's network cache.
    pub cache: CacheMode,
    /// The deadline, counted from arrival; `None` uses the session's default. The session has an upper limit.
    pub deadline: Option<Duration>,
    /// Whether late requests are also sent to another node; `None` uses the session's setting.
    pub hedging: Option<Hedging>,
    /// Whether the plan and its timings are returned.
    pub profile: bool,
    /// Whether an answer that lacks partitions is accepted.
    pub partial: bool,
    /// Whether somebody waits for the answer.
    pub workflow: Workflow,
    /// The requested page of an answer that is a set of ids.
    pub page: Page,
    /// An id that logs print with the query.
    pub trace_id: String,
    /// The process that checks the checksums of the values of a batch read. Clients keep the default; a router takes
    /// the choice of its client.
    pub proofs: Proofs,
    /// Whether another router forwarded the query. That router has recorded it.
    pub forwarded: bool,
    /// The name of the door that it came through, if that door cannot return partial answers, such as `resp`. An incomplete
    /// answer is an error then. Not sent over the wire.
    pub door: Option<&'static str>,
    /// The writes to a live graph that the answer must show.
    pub ticket: Option<Ticket>,
    /// Whether the answer of a live graph must show every write that was acknowledged before.
    pub critical: bool,
    /// The only replica group whose nodes are asked; `None` means any. With a group, caches of routers are not used.
    pub group: Option<u32>,
    /// Takes results of a traversal before it has ended. Not sent over the wire.
    pub early: Option<EarlyResults>,
}

impl QueryOptions {
    /// The rest of the deadline after `elapsed`; `None` if it has passed, and `Some(None)` if there is no deadline.
    pub fn left(&self, elapsed: Duration) -> Option<Option<Duration>> {
        match self.deadline {
            Some(deadline) => Some(Some(deadline.checked_sub(elapsed).filter(|left| !left.is_zero())?)),
            None => Some(None),
        }
    }

    /// The use of the router's caches. They do not record the group that an answer came from, so they are bypassed if
    /// the query is for a single group.
    pub fn cache_mode(&self) -> CacheMode {
        if self.group.is_some() { CacheMode::Bypass } else { self.cache }
    }
}

/// The ticket that combines all of these texts; `None` if there are none.
///
/// # Errors
/// [`QueryError::BadRequest`] if a text is not a ticket; [`QueryError::WrongTicket`] if the tickets belong to different
/// graphs.
pub fn merged_tickets<T: AsRef<str>>(texts: &[T]) -> Result<Option<Ticket>, QueryError> {
    let tickets = texts.iter().map(|text| text.as_ref().parse::<Ticket>());
    let tickets: Result<Vec<Ticket>, _> = tickets.collect();
    let tickets = tickets.map_err(|why| QueryError::BadRequest { detail: why.to_string() })?;
    let mut tickets = tickets.into_iter();
    let Some(mut merged) = tickets.next() else { return Ok(None) };
    for ticket in tickets {
        if ticket.graph != merged.graph {
            return Err(QueryError::MixedTickets);
        }
        merged.merge(&ticket);
    }
    Ok(Some(merged))
}

/// The process that checks the checksums of the values of a batch read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proofs {
    /// The session that asks the nodes checks every value.
    #[default]
    Here,
    /// The session passes values on with their proofs, and the client that it answers checks them.
    There,
    /// The session checks every value, and so does the client that it answers.
    Everywhere,
}

/// A page of a sorted set of ids. The default is the whole set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Returns only ids greater than this one, the last of the previous page.
    pub after: Option<u64>,
    /// The most ids of the page.
    pub limit: Option<u64>,
}

impl Page {
    /// Reduces `ids`, which are sorted, to the page.
    pub fn cut(self, ids: &mut Vec<u64>) {
        if let Some(after) = self.after {
            ids.drain(..ids.partition_point(|&id| id <= after));
        }
        if let Some(limit) = self.limit {
            ids.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
    }
}

/// Parses a hedging mode: `on`, `table` or `off`.
///
/// # Errors
/// The text, if it is none of them.
pub fn parse_hedging(text: &str) -> Result<Hedging, String> {
    Hedging::by_name(text).ok_or_else(|| text.to_owned())
}

/// The use of the router's network cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// Reads the cache, and fills it after a miss.
    #[default]
    Use,
    /// Neither reads nor fills the cache.
    Bypass,
    /// Fetches again, and fills the cache.
    Refresh,
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::{LogPoint, PartitionId};

    #[test]
    fn several_tickets_ask_for_what_each_of_them_asks_for() {
        let ticket = |graph, partition, position| {
            let mut ticket = Ticket::new(graph);
            ticket.require(PartitionId(partition), LogPoint::new(1, position));
            ticket
        };
        let merge =
            |tickets: &[Ticket]| merged_tickets(&tickets.iter().map(Ticket::to_string).collect::<Vec<_>>());
        let merged = merge(&[ticket(7, 0, 3), ticket(7, 1, 5), ticket(7, 0, 2)]);
        let mut both = ticket(7, 0, 3);
        both.require(PartitionId(1), LogPoint::new(1, 5));
        assert_eq!(merged, Ok(Some(both)));
        assert_eq!(merge(&[]), Ok(None));
        assert_eq!(merge(&[ticket(7, 0, 3), ticket(8, 0, 3)]), Err(QueryError::MixedTickets));
        assert!(matches!(merged_tickets(&["ticket"]), Err(QueryError::BadRequest { .. })));
    }

    #[test]
    fn a_page_starts_after_an_id_and_ends_at_its_limit() {
        let cut = |after, limit| {
            let mut ids = vec![1, 5, 9, 12];
            Page { after, limit }.cut(&mut ids);
            ids
        };
        assert_eq!(cut(Some(1), Some(2)), [5, 9]);
        assert_eq!(cut(Some(6), None), [9, 12]);
        assert!(cut(Some(12), None).is_empty() && cut(None, Some(0)).is_empty());
        assert_eq!(cut(None, None), [1, 5, 9, 12]);
    }
}
