//! Evaluates operators over a live graph.

use super::{
    count::count, errors::LiveError, find::IndexReader, freshness::Freshener, lists::LiveLists,
    logs::FollowedLogs, partitions::HeldPartitions, read::ElementReader, rows::ReadNeed, types::KnownTypes,
};
use crate::{serve::evaluator::status_of, serve::job::with_scratch, threads::evaluate_aside};
use kith_cache::adjacency::AdjacencyReader;
use kith_live::Ticket;
use kith_operators::{AssociationsEntry, ObjectEntry, Operator, Share, Value, evaluate};
use kith_query::convert::operator_from_wire;
use kith_types::{ErrorCode, LogPoint, NodeId, PartitionCount, PartitionId, partition_of_id};
use kith_wire::v1;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};
use tonic::Status;

/// The time limit of a request without a deadline.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(10);

/// A value, and the points of the logs at which it was read.
pub(crate) struct LiveValue {
    pub value: Value,
    pub reached: Ticket,
}

/// Evaluates requests over one graph.
pub(super) struct LiveEvaluator {
    pub graph: String,
    pub node: NodeId,
    pub count: PartitionCount,
    pub partitions: Arc<HeldPartitions>,
    pub types: Arc<KnownTypes>,
    pub logs: Arc<FollowedLogs>,
    pub freshener: Arc<Freshener>,
    pub lists: Arc<LiveLists>,
    pub elements: ElementReader,
    pub indexes: IndexReader,
}

impl LiveEvaluator {
    /// Evaluates a request over this graph.
    ///
    /// # Errors
    /// The status for the caller.
    pub async fn evaluate(&self, request: &v1::EvaluateRequest) -> Result<LiveValue, Status> {
        let left = left_of(request);
        let (need, ticket) = self.need_of(request)?;
        let late = |_| {
            let help = "give the query more time";
            kith_wire::status(ErrorCode::DeadlineExceeded, "the deadline passed while rows were read", help)
        };
        let evaluating = async {
            self.check_history(request, &ticket).await.map_err(|error| error.to_status())?;
            self.evaluate_plan(request, &need).await
        };
        tokio::time::timeout(left, evaluating).await.map_err(late)?
    }

    /// Checks that the logs of the partitions that a request reads contain the points of earlier terms that its ticket
    /// requires. The latest points are checked with what is read.
    ///
    /// # Errors
    /// [`LiveError::HistoryLost`] if they do not; the errors of [`FollowedLogs::shows`].
    async fn check_history(&self, request: &v1::EvaluateRequest, ticket: &Ticket) -> Result<(), LiveError> {
        if ticket.earlier.is_empty() {
            return Ok(());
        }
        let of_keys = request.keys.iter().map(|key| partition_of_id(*key, self.count));
        let partitions: BTreeSet<PartitionId> =
            of_keys.chain(request.partitions.iter().copied().map(PartitionId)).collect();
        for partition in partitions {
            for point in ticket.earlier_points(partition) {
                self.logs.catch_up(partition, ticket.point(partition)).await?;
                while !self.logs.shows(partition, point, self.partitions.applied(partition)?).await? {}
            }
        }
        Ok(())
    }

    async fn evaluate_plan(
        &self,
        request: &v1::EvaluateRequest,
        need: &ReadNeed,
    ) -> Result<LiveValue, Status> {
        let plan = request.plan.as_ref().map(operator_from_wire);
        let plan = match plan {
            Some(Ok(plan)) => plan,
            Some(Err(error)) => return Err(unsupported(&error.to_string())),
            None => return Err(unsupported("the request has no plan")),
        };
        let (value, reached) = match plan {
            Operator::Objects(fields) => {
                let objects = self.elements.objects(&request.keys, &fields, need).await;
                let (objects, reached) = objects.map_err(|error| error.to_status())?;
                let entry = |object: Option<_>| object.map_or(ObjectEntry::Absent, ObjectEntry::Found);
                (Value::Objects(objects.into_iter().map(entry).collect()), reached)
            }
            Operator::Find(find) => {
                let partitions: Vec<_> = request.partitions.iter().copied().map(PartitionId).collect();
                let found = self.indexes.find(&find, &partitions, need).await;
                let (ids, reached) = found.map_err(|error| error.to_status())?;
                (Value::Set(ids), reached)
            }
            Operator::CountElements(counted) => {
                let partitions: Vec<_> = request.partitions.iter().copied().map(PartitionId).collect();
                let counted = count(&self.indexes, &counted, &partitions, need).await;
                let (count, reached) = counted.map_err(|error| error.to_status())?;
                (Value::Count(count), reached)
            }
            Operator::Passing(tests) => {
                let passing = self.elements.passing(&request.keys, &tests, need).await;
                let (ids, reached) = passing.map_err(|error| error.to_status())?;
                (Value::Set(ids), reached)
            }
            Operator::Associations(plan) => {
                let lists = self.elements.associations(&request.keys, &plan, need).await;
                let (lists, reached) = lists.map_err(|error| error.to_status())?;
                (Value::Associations(lists.into_iter().map(AssociationsEntry::Answer).collect()), reached)
            }
            plan if plan.reads_values() => {
                return Err(unsupported("the graph is live: there are no values to look up"));
            }
            plan => self.evaluate_lists(plan, request, need).await?,
        };
        Ok(LiveValue { value, reached: Ticket { points: reached, ..Ticket::new(self.types.get().identity) } })
    }

    /// Evaluates a plan over adjacency lists, with each partition at a single point of its log.
    async fn evaluate_lists(
        &self,
        plan: Operator,
        request: &v1::EvaluateRequest,
        need: &ReadNeed,
    ) -> Result<(Value, BTreeMap<PartitionId, LogPoint>), Status> {
        let share = OwnedShare {
            keys: request.keys.clone(),
            partitions: request.partitions.iter().copied().map(PartitionId).collect(),
        };
        let of_keys = share.keys.iter().map(|key| partition_of_id(*key, self.count));
        let partitions: BTreeSet<PartitionId> = of_keys.chain(share.partitions.iter().copied()).collect();
        let pinned = ticket_of(&request.pinned)?.map_or_else(BTreeMap::new, |ticket| ticket.points);
        let live = |error: LiveError| error.to_status();
        let reader = self.lists_that_show(&partitions, &pinned, need).await.map_err(live)?;
        let reached = reader.points();
        let until = Instant::now() + left_of(request);
        let work = move || {
            let share = Share { keys: &share.keys, partitions: &share.partitions };
            with_scratch(|scratch| evaluate(&plan, &share, &reader, scratch, &|| until <= Instant::now()))
        };
        let joined = evaluate_aside(work).await;
        let value =
            joined.map_err(|error| Status::internal(format!("evaluation ended unexpectedly: {error}")))?;
        Ok((value.map_err(|error| status_of(self.node.0, 0, &error))?, reached))
    }

    /// Returns a reader of the lists of partitions that shows the writes that the answer must show. It reads again if an
    /// older copy of the database has replaced the logs in the meantime.
    async fn lists_that_show(
        &self,
        partitions: &BTreeSet<PartitionId>,
        pinned: &BTreeMap<PartitionId, LogPoint>,
        need: &ReadNeed,
    ) -> Result<AdjacencyReader, LiveError> {
        loop {
            let after = self.fresh_points(partitions, pinned, need).await?;
            // In an open graph, edges of unknown types are none. This must be right at these points.
            self.types.of_log().await?;
            let reader = self.lists.reader(partitions.iter().copied(), &after, pinned).await?;
            let mut shows = true;
            for (partition, shown) in reader.points() {
                // A pinned point was checked when it was pinned.
                if let (Some(&required), None) = (need.after.get(&partition), pinned.get(&partition)) {
                    shows = shows && self.logs.shows(partition, required, shown).await?;
                }
            }
            if shows {
                return Ok(reader);
            }
        }
    }

    /// Brings partitions to points at which an answer is fresh and shows the required writes. Returns these points.
    async fn fresh_points(
        &self,
        partitions: &BTreeSet<PartitionId>,
        pinned: &BTreeMap<PartitionId, LogPoint>,
        need: &ReadNeed,
    ) -> Result<BTreeMap<PartitionId, LogPoint>, LiveError> {
        let now = self.partitions.now();
        let stale: Vec<PartitionId> = {
            let mut caches = self.partitions.lock();
            let is_stale = |partition: &&PartitionId| {
                !pinned.contains_key(partition)
                    && caches
                        .partition(**partition)
                        .is_some_and(|cache| need.critical || cache.fresh_until() <= now)
            };
            partitions.iter().filter(is_stale).copied().collect()
        };
        if !stale.is_empty() {
            self.freshener.freshen(stale).await?;
        }
        let mut points = BTreeMap::new();
        for &partition in partitions {
            let required = need.after.get(&partition).copied().unwrap_or_default();
            self.logs.catch_up(partition, required).await?;
            points.insert(partition, self.partitions.applied(partition)?.max(required));
        }
        Ok(points)
    }

    /// Returns the requirements on the freshness of the answer, and the ticket that they come from.
    fn need_of(&self, request: &v1::EvaluateRequest) -> Result<(ReadNeed, Ticket), Status> {
        let ticket = request.header.as_ref().map(|header| &header.ticket[..]).unwrap_or_default();
        let ticket = match ticket_of(ticket)? {
            None => Ticket::new(self.types.get().identity),
            Some(ticket) => {
                if ticket.graph != self.types.get().identity {
                    let message = format!("the ticket is not of graph {:?}", self.graph);
                    return Err(kith_wire::status(
                        ErrorCode::WrongTicket,
                        message,
                        "use a ticket of a write to this graph",
                    ));
                }
                ticket
            }
        };
        Ok((ReadNeed { after: ticket.points.clone(), critical: request.critical }, ticket))
    }
}

/// The keys and partitions of a request.
struct OwnedShare {
    keys: Vec<u64>,
    partitions: Vec<PartitionId>,
}

/// Returns the time for which the caller waits.
fn left_of(request: &v1::EvaluateRequest) -> Duration {
    match request.header.as_ref().map_or(0, |header| header.deadline_us) {
        0 => DEADLINE_DEFAULT,
        micros => Duration::from_micros(micros),
    }
}

/// Decodes a ticket; `None` if there are no bytes.
fn ticket_of(bytes: &[u8]) -> Result<Option<Ticket>, Status> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let ticket = Ticket::from_bytes(bytes);
    ticket.map(Some).map_err(|error| {
        kith_wire::status(ErrorCode::BadRequest, error.to_string(), "use a ticket of a write")
    })
}

fn unsupported(message: &str) -> Status {
    kith_wire::status(ErrorCode::UnsupportedOperation, message, "use a client of this release")
}
