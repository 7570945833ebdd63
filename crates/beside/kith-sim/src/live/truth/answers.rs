//! Checks answers to reads. Each must be the state of its partition at one place in the log, which must not be too old.

use super::Truth;
use crate::live::database::Database;
use crate::live::node::ReadRequest;
use kith_cache::live::{DatedAnswer, Query, RowsAnswer, Start};
use kith_live::testing::Tables;
use kith_types::{LogPoint, PartitionId, Timestamp};
use std::time::Duration;

/// The time for which a cache may answer from memory after it was proven fresh, by its own clock.
const STALE_MAX: Duration = Duration::from_secs(2);
/// The time for which a read with a valid ticket may fail after the database was replaced, because the read may have
/// asked for the end of the log before the replacement.
const REPLACED_FOR: Duration = Duration::from_secs(5);

impl Truth {
    /// Checks the answer of a node to a read. `clock_rate` is the rate of the node's clock, with 1 for real time.
    pub(in crate::live) fn check_read(
        &mut self,
        asked: &ReadRequest,
        answered: &DatedAnswer,
        now: Timestamp,
        clock_rate: f64,
    ) {
        let ReadRequest { partition, query, ticket, .. } = asked;
        let DatedAnswer { answer, from, until } = answered;
        let history = &self.history;
        let is_right = |tables: &Tables| answer_of(tables, query) == *answer;
        let right = history.between(*partition, (*from, *until)).any(is_right);
        let bound = STALE_MAX.div_f64(clock_rate) + Duration::from_millis(1);
        // The answer to a read that takes long must at least show the writes before the client sent the request.
        let oldest = Timestamp(now.0.saturating_sub(bound)).min(asked.began);
        let oldest = history.end_at(*partition, oldest);
        let verified = history.end_at(*partition, asked.began);
        let what = if !right {
            "is not the state at any of these places"
        } else if until < ticket {
            "is behind the ticket"
        } else if history.is_lost(*partition, *ticket) && !history.is_lost(*partition, *until) {
            "was given although the ticket names a lost write"
        } else if *until < oldest && !history.is_lost(*partition, oldest) {
            "is too old"
        } else if asked.is_critical && *until < verified && !history.is_replaced(asked.began, now) {
            "is to a critical read and does not show all earlier writes"
        } else {
            return;
        };
        self.fault(format!(
            "at {:?} the answer {answer:?} to {asked:?}, valid from {from} to {until}, {what}",
            now.0
        ));
    }

    /// Checks the answer of a node that a ticket names a lost write.
    pub(in crate::live) fn check_history_lost(&mut self, asked: &ReadRequest, now: Timestamp) {
        let lost = self.history.is_lost(asked.partition, asked.ticket);
        let lately = Timestamp(asked.began.0.saturating_sub(REPLACED_FOR));
        if !lost && !self.history.is_replaced(lately, now) {
            self.fault(format!(
                "at {:?} {asked:?} got the answer that history was lost, but none was",
                now.0
            ));
        }
    }

    pub(in crate::live) fn is_lost(&self, partition: PartitionId, point: LogPoint) -> bool {
        self.history.is_lost(partition, point)
    }

    /// Checks that an answer after all faults is the data in the database.
    pub(in crate::live) fn check_last(
        &mut self,
        database: &Database,
        partition: PartitionId,
        query: &Query,
        answered: &DatedAnswer,
    ) {
        let log = &database.logs[partition.index()];
        let stored = answer_of(&log.tables, query);
        if log.end != answered.until || stored != answered.answer {
            self.fault(format!(
                "after all faults, the answer to {query:?} is {answered:?}, but {stored:?} is stored at {}",
                log.end
            ));
        }
    }
}

fn answer_of(tables: &Tables, query: &Query) -> RowsAnswer {
    match query {
        Query::Objects(ids) => {
            RowsAnswer::Objects(ids.iter().map(|id| tables.objects.get(id).cloned()).collect())
        }
        Query::Count(list) => RowsAnswer::Count(tables.list(*list).len() as u64),
        Query::Get { list, ids, high, low } => {
            let mut found = tables.list(*list);
            found.retain(|item| ids.contains(&item.id2) && (*low..=*high).contains(&item.time));
            RowsAnswer::Associations(found)
        }
        Query::Range { list, start, limit } => {
            let found = tables.list(*list);
            let first = match start {
                Start::Index(index) => *index as usize,
                Start::After(position) => found.partition_point(|item| item.place() <= *position),
            };
            RowsAnswer::Associations(found.into_iter().skip(first).take(*limit as usize).collect())
        }
        Query::TimeRange { list, high, low, limit } => {
            let mut found = tables.list(*list);
            found.retain(|item| (*low..=*high).contains(&item.time));
            found.truncate(*limit as usize);
            RowsAnswer::Associations(found)
        }
        Query::Entries { .. } => panic!("simulated clients look nothing up in indexes"),
    }
}
