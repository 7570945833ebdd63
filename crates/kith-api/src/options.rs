//! What a caller may say about one query besides the question.

use crate::QueryError;
use kith_live::Ticket;
use kith_routing::{FanOutLimits, load::Hedging};
use kith_types::Workflow;
use std::time::Duration;

/// How one query is run. `Default` leaves every choice to the session's configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryOptions {
    /// How many groups may take part, for all rounds or by their kind.
    pub fan_out: FanOutLimits,
    /// Name of a replica policy; `None` is the session's.
    pub policy: Option<String>,
    /// Whether to use the router's network cache.
    pub cache: CacheMode,
    /// Time from arrival; `None` is the session's default. Bounded by the session's longest.
    pub deadline: Option<Duration>,
    /// Whether late requests are sent to another node as well; `None` is the session's.
    pub hedging: Option<Hedging>,
    /// Whether to return the plan and its timings.
    pub profile: bool,
    /// Whether an answer that lacks partitions is better than none.
    pub partial: bool,
    /// Who waits for the answer.
    pub workflow: Workflow,
    /// Which part of an answer that is a set of ids is wanted.
    pub page: Page,
    /// Printed in logs beside the query.
    pub trace_id: String,
    /// For a batch read: who checks the checksums of its values. Clients keep the default; a router does what its client asks.
    pub proofs: Proofs,
    /// Whether another router passed it on, which has recorded it.
    pub forwarded: bool,
    /// The name of the front door that it came through, if that is one without partial answers, such as `resp`: an incomplete
    /// answer is a failure then. Never travels.
    pub door: Option<&'static str>,
    /// Of a live graph: the writes that the answer must show.
    pub ticket: Option<Ticket>,
    /// Of a live graph: whether the answer must show every write that was answered before.
    pub critical: bool,
    /// The only replica group whose nodes are asked; `None`: any. Caches of routers are not used then.
    pub group: Option<u32>,
}

impl QueryOptions {
    /// What is left of the deadline after `elapsed`, if there is a deadline; `None` if nothing is left.
    pub fn left(&self, elapsed: Duration) -> Option<Option<Duration>> {
        match self.deadline {
            Some(deadline) => Some(Some(deadline.checked_sub(elapsed).filter(|left| !left.is_zero())?)),
            None => Some(None),
        }
    }

    /// How to use the router's caches, which do not know the group that an answer came from.
    pub fn cache_mode(&self) -> CacheMode {
        if self.group.is_some() { CacheMode::Bypass } else { self.cache }
    }
}

/// The ticket that asks for all that these texts ask for; `None` if there are none.
///
/// # Errors
/// [`QueryError::BadRequest`] if a text is no ticket; [`QueryError::WrongTicket`] if they are tickets of different graphs.
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

/// Who checks the checksums of the values of a batch read.
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

/// A page of a sorted set of ids. `Default` is the whole set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Only ids greater than this one: the last of the page before.
    pub after: Option<u64>,
    /// At most so many.
    pub limit: Option<u64>,
}

impl Page {
    /// Leaves the page of `ids`, which are sorted.
    pub fn cut(self, ids: &mut Vec<u64>) {
        if let Some(after) = self.after {
            ids.drain(..ids.partition_point(|&id| id <= after));
        }
        if let Some(limit) = self.limit {
            ids.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
    }
}

/// Whether to hedge, from `on`, `table` or `off`.
///
/// # Errors
/// The text, if it is none of these.
pub fn parse_hedging(text: &str) -> Result<Hedging, String> {
    Hedging::by_name(text).ok_or_else(|| text.to_owned())
}

/// Whether to use the router's network cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// Look there first, fill it on a miss.
    #[default]
    Use,
    /// Neither read nor fill it.
    Bypass,
    /// Fetch anew and fill it.
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
