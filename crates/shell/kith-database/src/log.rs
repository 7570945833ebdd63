//! Checks whether a place is in the log of a partition, and whether changes that were read follow it.

use crate::{DatabaseError, LogEntry, LogError, LogPart, Trim};
use kith_types::{LogPoint, PartitionId, Position};

/// The most changes that one call reads.
pub(crate) const ENTRIES_MAX: u32 = 4096;
/// The most changes, and the most outcomes, that one call removes. Commits wait for about 10 ms meanwhile.
pub(crate) const TRIMMED_MAX: u32 = 1024;

/// The positions that belong to a term, according to the table `terms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TermSpan {
    /// The last position before the term's first change.
    pub began_at: u64,
    /// The last position before the first change of the next term; `None` if there is no next term.
    pub next_began_at: Option<u64>,
}

/// Checks that this log has had the place `point`: the start of the log, or a position that belongs to the point's
/// term.
pub(crate) fn check(
    partition: PartitionId,
    point: LogPoint,
    span: Option<TermSpan>,
    end: LogPoint,
) -> Result<(), LogError> {
    let position = point.position.0;
    let is_in_log = point == LogPoint::default()
        || span.is_some_and(|span| {
            span.began_at <= position && position <= span.next_began_at.unwrap_or(end.position.0)
        });
    if is_in_log { Ok(()) } else { Err(LogError::HistoryLost { partition, point, end }) }
}

/// Returns the changes that were read after `after`, a place that [`check`] has found in the log.
pub(crate) fn part(
    partition: PartitionId,
    after: LogPoint,
    changes: Vec<LogEntry>,
    end: LogPoint,
) -> Result<LogPart, LogError> {
    let first = changes.first().map_or(end.position.next(), |entry| entry.at.position);
    if first != after.position.next() && after.position < end.position {
        return Err(LogError::Trimmed { partition, after, first });
    }
    let is_next = |pair: &[LogEntry]| {
        pair[1].at.position == pair[0].at.position.next() && pair[0].at.term <= pair[1].at.term
    };
    if !changes.windows(2).all(is_next) || changes.last().is_some_and(|entry| end < entry.at) {
        let detail = format!("the log of {partition} has a gap, or changes out of order, after {first}");
        return Err(DatabaseError::damaged(detail).into());
    }
    Ok(LogPart { changes, end })
}

/// Returns how many of the first entries fit into `bytes_max`, but at least one if there is any.
#[cfg(any(feature = "mysql", test))]
pub(crate) fn fitting(sizes: impl Iterator<Item = u64>, bytes_max: usize) -> usize {
    let mut bytes = 0u64;
    let fits = |size: u64| {
        bytes = bytes.saturating_add(size);
        bytes <= bytes_max as u64
    };
    let mut sizes = sizes.peekable();
    let any = usize::from(sizes.peek().is_some());
    sizes.map(fits).take_while(|fits| *fits).count().max(any)
}

/// Whether a change may be removed if all changes before it are removed.
pub(crate) fn may_go(trim: Trim, position: u64, written_ms: u64) -> bool {
    position < trim.changes_before.0 && written_ms < trim.changes_written_before_ms
}

/// Returns the position before which the log may be cut. `written_ms` lists the positions and times of the first
/// changes, in order.
pub(crate) fn cut(trim: Trim, written_ms: &[(u64, u64)]) -> Option<Position> {
    let goes = |(position, at): &&(u64, u64)| may_go(trim, *position, *at);
    let last = written_ms.iter().take_while(goes).last()?;
    Some(Position(last.0).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: PartitionId = PartitionId(1);

    #[test]
    fn a_place_is_in_the_log_if_its_term_had_it() {
        let end = LogPoint::new(5, 12);
        let old = Some(TermSpan { began_at: 3, next_began_at: Some(8) });
        for (position, is_in) in [(2, false), (3, true), (8, true), (9, false)] {
            assert_eq!(check(P, LogPoint::new(2, position), old, end).is_ok(), is_in, "{position}");
        }
        let last = Some(TermSpan { began_at: 8, next_began_at: None });
        for (position, is_in) in [(7, false), (8, true), (12, true), (13, false)] {
            assert_eq!(check(P, LogPoint::new(5, position), last, end).is_ok(), is_in, "{position}");
        }
        assert!(check(P, LogPoint::new(3, 8), None, end).is_err(), "a term that never began here");
        assert!(check(P, LogPoint::default(), None, end).is_ok(), "the start of every log");
    }

    #[test]
    fn a_prefix_is_cut_that_is_old_by_position_and_time() {
        let changes = [(4, 100), (5, 90), (6, 200), (7, 90)];
        let trim = |before, written| Trim {
            changes_before: Position(before),
            changes_written_before_ms: written,
            outcomes_before_ms: 0,
        };
        assert_eq!(cut(trim(9, 150), &changes), Some(Position(6)));
        assert_eq!(cut(trim(5, 999), &changes), Some(Position(5)));
        assert_eq!(cut(trim(9, 100), &changes), None, "a newer change in front of it keeps an old one");
    }

    #[test]
    fn at_least_one_change_fits() {
        assert_eq!(fitting([10, 10, 10].into_iter(), 20), 2);
        assert_eq!(fitting([10, 10].into_iter(), 5), 1);
        assert_eq!(fitting([].into_iter(), 5), 0);
    }
}
