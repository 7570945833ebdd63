//! The messages to the task that leads.

use super::hand_over::Given;
use kith_live::{Answered, Delivery, DeliveryError, Event, GraphTypes, Write, WriteError};
use kith_types::{LogPoint, PartitionId, Term};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::oneshot;

/// What the task that leads is told.
pub(super) enum LeadMessage {
    /// A caller wants a write.
    Write(Write, oneshot::Sender<Result<Answered, WriteError>>),
    /// The leader of another partition delivers an intent.
    Deliver(Delivery, oneshot::Sender<Result<LogPoint, DeliveryError>>),
    /// What the metadata say that this node leads, and for which terms.
    Leads(BTreeMap<PartitionId, Term>),
    /// The types have changed.
    Types(Arc<GraphTypes>),
    /// An action came to its end.
    Event(Event),
    /// It is time to ask for new terms for partitions that were stepped down from.
    Renew,
    /// Other nodes have come or gone: perhaps partitions are to be handed over.
    Lives,
    /// An attempt to write the successors of released partitions has ended.
    Given(Given),
    /// New terms for these partitions, in place of these ones, cannot be had yet.
    NotRenewed(BTreeMap<PartitionId, Term>),
}
