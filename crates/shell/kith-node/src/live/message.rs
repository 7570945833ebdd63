//! The messages to the task that leads.

use super::hand_over::HandedOver;
use kith_live::{Delivery, DeliveryError, Event, GraphTypes, Write, WriteAnswer, WriteError};
use kith_types::{LogPoint, PartitionId, Term};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::oneshot;

/// A message to the task that leads.
pub(super) enum LeadMessage {
    /// A caller requests a write.
    Write(Write, oneshot::Sender<Result<WriteAnswer, WriteError>>),
    /// The leader of another partition delivers an intent.
    Deliver(Delivery, oneshot::Sender<Result<LogPoint, DeliveryError>>),
    /// The partitions that this node leads according to the metadata store, with the terms.
    Leads(BTreeMap<PartitionId, Term>),
    /// The types have changed.
    Types(Arc<GraphTypes>),
    /// An action has ended, or something else has happened that the leader must know.
    Event(Event),
    /// It is time to ask for new terms for partitions whose leader stepped down.
    Renew,
    /// Other nodes have come or gone, so partitions may have to be handed over.
    Lives,
    /// An attempt to write the successors of released partitions has ended.
    HandedOver(HandedOver),
    /// The attempt to get new terms for these partitions, in place of these terms, has failed.
    NotRenewed(BTreeMap<PartitionId, Term>),
}
