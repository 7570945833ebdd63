//! The open intents of one partition, and the writes that wait for them.

use super::CallerId;
use super::queue::PendingWrite;
use crate::{Intent, Pair, ResolvedWrite, WriteId};
use kith_types::{LogPoint, Timestamp};
use std::collections::{BTreeMap, VecDeque};

/// The open intents of a partition, by stamp.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenIntents {
    open: BTreeMap<LogPoint, OpenIntent>,
    pairs: BTreeMap<Pair, LogPoint>,
    names: BTreeMap<WriteId, LogPoint>,
}

/// An intent that is committed, but not complete.
#[derive(Clone, Debug)]
pub(super) struct OpenIntent {
    pub(super) intent: Intent,
    /// The caller that waits for the write; `None` if an earlier leader began the intent.
    pub(super) caller: Option<CallerId>,
    /// Newer writes to the pair, or with the same id, in the order of their arrival.
    pub(super) waiting: VecDeque<PendingWrite>,
    /// The number of failed deliveries.
    pub(super) failures: u32,
    /// The time at which the intent is delivered again; `None` once the other end has answered.
    pub(super) send_at: Option<Timestamp>,
    /// The log point that the other end had reached when it answered.
    pub(super) there: Option<LogPoint>,
}

impl OpenIntents {
    pub(super) fn add(&mut self, intent: Intent, caller: Option<CallerId>, send_at: Timestamp) {
        self.pairs.insert(intent.pair, intent.stamp);
        if let Some(name) = &intent.name {
            self.names.insert(name.id.clone(), intent.stamp);
        }
        let (waiting, failures, there) = (VecDeque::new(), 0, None);
        let open = OpenIntent { intent, caller, waiting, failures, send_at: Some(send_at), there };
        self.open.insert(open.intent.stamp, open);
    }

    pub(super) fn remove(&mut self, stamp: LogPoint) -> Option<OpenIntent> {
        let open = self.open.remove(&stamp)?;
        self.pairs.remove(&open.intent.pair);
        if let Some(name) = &open.intent.name {
            self.names.remove(&name.id);
        }
        Some(open)
    }

    pub(super) fn get(&self, stamp: LogPoint) -> Option<&OpenIntent> {
        self.open.get(&stamp)
    }

    pub(super) fn get_mut(&mut self, stamp: LogPoint) -> Option<&mut OpenIntent> {
        self.open.get_mut(&stamp)
    }

    /// Returns the stamp of the intent that a write must wait for.
    pub(super) fn blocking(&self, write: &ResolvedWrite) -> Option<LogPoint> {
        let pair = write.split.and_then(|pair| self.pairs.get(&pair));
        pair.or_else(|| self.names.get(&write.name.as_ref()?.id)).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the lowest stamp of an open intent.
    pub(super) fn lowest(&self) -> Option<LogPoint> {
        self.open.keys().next().copied()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut OpenIntent> {
        self.open.values_mut()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &OpenIntent> {
        self.open.values()
    }
}
