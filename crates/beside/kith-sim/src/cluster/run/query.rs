//! The course of a query, from its arrival at the client to its record, including the actions of its execution.

use super::Run;
use crate::cluster::{Event, QueryRecord, RequestKey};
use kith_routing::execution::{Action, Event as Happened, Outcome, Verdict};
use kith_types::{FanOutKind, NodeId, Timestamp};

impl Run<'_> {
    pub(super) fn ask_later(&mut self, client: u32) {
        let gap = self.config.workload.gap(&mut self.clients[client as usize].asked);
        let at = self.now() + gap;
        if at < Timestamp(self.config.until) {
            self.agenda.at(at, Event::Asked { client });
        }
    }

    pub(super) fn on_asked(&mut self, number: u32) {
        let now = self.now();
        let client = &mut self.clients[number as usize];
        let spec = self.config.workload.draw(self.table.partition_count(), &mut client.asked);
        let (kind, keys) = (spec.kind, spec.partitions.len());
        match client.begin(spec, &self.table, now) {
            Ok(query) => {
                if let Some(deadline) = self.config.deadline {
                    self.agenda.at(now + deadline, Event::Deadline { client: number, query });
                }
                self.act(number, query);
            }
            Err(_) => self.keep(QueryRecord::begin(kind, keys, 0, now)),
        }
        self.ask_later(number);
    }

    /// Carries out the actions of a query's execution.
    pub(super) fn act(&mut self, client: u32, query: u64) {
        for action in self.clients[client as usize].next(query, &self.table) {
            match action {
                Action::Send { request, node, keys, .. } => {
                    self.send(RequestKey { client, query, request }, node, keys);
                }
                Action::Cancel { request, end } => {
                    let now = self.now();
                    self.clients[client as usize].close(RequestKey { client, query, request }, end, now);
                }
                Action::Use { .. } => unreachable!("simulated answers can be split by key"),
                Action::Refresh { .. } => unreachable!("the table of a simulated cluster does not change"),
                Action::Finish(outcome) => self.finish(client, query, &outcome),
            }
        }
        self.arm(client, query);
    }

    /// Schedules the query's hedge timer if the execution names a time for which it is not yet scheduled.
    fn arm(&mut self, client: u32, query: u64) {
        let Some(under_way) = self.clients[client as usize].queries.get_mut(&query) else { return };
        let due = under_way.execution.next_hedge();
        if let Some(at) = due.filter(|_| due != under_way.hedge_timer) {
            self.agenda.at(at, Event::HedgeDue { client, query });
        }
        under_way.hedge_timer = due;
    }

    pub(super) fn on_hedge_due(&mut self, client: u32, query: u64) {
        // The threads of simulated clients are never delayed.
        self.tell(client, query, Happened::HedgeDue { caught_up: Timestamp::ZERO });
    }

    pub(super) fn tell(&mut self, client: u32, query: u64, event: Happened) {
        let now = self.now();
        if let Some(under_way) = self.clients[client as usize].queries.get_mut(&query) {
            let _ = under_way.execution.on(event, now);
            self.act(client, query);
        }
    }

    /// Tells all queries of a client that a node is down, so that they request its unanswered keys from other nodes.
    pub(super) fn lose(&mut self, client: u32, node: NodeId) {
        let queries: Vec<u64> = self.clients[client as usize].queries.keys().copied().collect();
        for query in queries {
            self.tell(client, query, Happened::NodeDown { node });
        }
    }

    fn finish(&mut self, client: u32, query: u64, outcome: &Outcome) {
        let now = self.now();
        let ended = self.clients[client as usize].queries.remove(&query);
        let mut ended = ended.expect("a query ends once");
        let meter = &mut self.clients[client as usize].meter;
        if outcome.verdict == Verdict::Complete && ended.kind == FanOutKind::EarlyTerminable {
            meter.on_terminable_end(outcome.stopped_early);
        }
        if outcome.verdict == Verdict::Complete && !outcome.stopped_early {
            ended.record.wrong_keys += ended.answers.iter().filter(|answers| **answers != 1).count();
        }
        self.keep(QueryRecord {
            took: now.since(ended.record.began),
            requests: outcome.requests,
            retries: outcome.retries,
            hedged_keys: outcome.hedges.keys,
            verdict: Some(outcome.verdict),
            stopped_early: outcome.stopped_early,
            ..ended.record
        });
    }

    fn keep(&mut self, record: QueryRecord) {
        if Timestamp(self.config.warm_up) <= record.began {
            self.records.push(record);
        }
    }
}
