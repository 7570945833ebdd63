//! Reads objects and associations: from memory if it is proven to be fresh enough, otherwise from the database.

use super::{
    errors::LiveError,
    graph::{LiveGraph, Waiter},
    turns::Turn,
};
use futures::{StreamExt, TryStreamExt, future::join_all, stream};
use kith_cache::{
    Failure, FlightId, Landing,
    live::{Answer, Answered, Begin, Filled, Query, Reading, ReadingStep, Start},
};
use kith_database::DatabaseError;
use kith_live::{
    Association, AssociationAnswer, AssociationRead, FieldsFault, GraphTypes, INDEX_MAX, ListKey,
    ListedAssociation, Object, ObjectAnswer, RowQuery, RowsAt, Select, Start as AskedStart, TypeId,
};
use kith_types::{LogPoint, PartitionId, partition_of_id};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::oneshot;

/// The number of lists that one request reads at a time, so that lists that are not in memory do not wait for each
/// other.
const LISTS_AT_ONCE: usize = 32;

/// The requirements on the freshness of a read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadNeed {
    /// The place in the log that the read must have reached, by partition.
    pub after: BTreeMap<PartitionId, LogPoint>,
    /// Whether the read must see all writes from before its arrival.
    pub critical: bool,
}

/// The rows of one partition that a read fetches from the database.
type Fetch = Vec<(FlightId, RowQuery)>;

impl LiveGraph {
    /// Reads objects by id, without `with_data` only their types and versions. Returns them in the order of the ids, and by
    /// partition the place at which they were read.
    pub async fn objects(
        self: &Arc<Self>,
        ids: &[u64],
        with_data: bool,
        need: &ReadNeed,
    ) -> Result<(Vec<Option<ObjectAnswer>>, BTreeMap<PartitionId, LogPoint>), LiveError> {
        let mut shares: BTreeMap<PartitionId, Vec<usize>> = BTreeMap::new();
        for (place, id) in ids.iter().enumerate() {
            shares.entry(partition_of_id(*id, self.count)).or_default().push(place);
        }
        let (mut rows, mut reached) = (vec![None; ids.len()], BTreeMap::new());
        let reads = shares.into_iter().map(async |(partition, places)| {
            let query = Query::Objects(places.iter().map(|place| ids[*place]).collect());
            Ok::<_, LiveError>((partition, places, self.read(partition, query, need).await?))
        });
        for read in join_all(reads).await {
            let (partition, places, answered) = read?;
            reached.insert(partition, answered.until);
            let Answer::Objects(found) = answered.answer else { continue };
            for (place, object) in places.into_iter().zip(found) {
                rows[place] = object;
            }
        }
        let answer = |types: &GraphTypes, object: &Object| {
            let kind = types.objects.get(&object.kind).ok_or(FieldsFault::NoType(object.kind))?;
            let data = match with_data {
                true => types.decode(object.kind, &object.data)?,
                false => String::new(),
            };
            let (kind, version) = (kind.name.clone(), object.stamp.position.0);
            Ok::<_, FieldsFault>(ObjectAnswer { id: object.id, kind, version, data })
        };
        let objects = self.decoded(|types| {
            rows.iter().map(|row| row.as_ref().map(|object| answer(types, object)).transpose()).collect()
        });
        Ok((objects.await?, reached))
    }

    /// Reads association lists of each of these ids. Returns them for each id in the order of the reads, and by partition the
    /// place at which they were read.
    pub async fn associations(
        self: &Arc<Self>,
        ids: &[u64],
        reads: &[AssociationRead],
        need: &ReadNeed,
    ) -> Result<(Vec<Vec<AssociationAnswer>>, BTreeMap<PartitionId, LogPoint>), LiveError> {
        let each = ids.iter().flat_map(|id1| (0..reads.len()).map(move |at| (*id1, at)));
        let each: Vec<(u64, usize)> = each.collect();
        let lists = stream::iter(each).map(|(id1, at)| self.association_list(id1, &reads[at], need));
        let lists: Vec<_> = lists.buffered(LISTS_AT_ONCE).try_collect().await?;
        let mut reached = BTreeMap::new();
        for (partition, point) in lists.iter().map(|(_, partition, point)| (*partition, *point)) {
            let known = reached.entry(partition).or_insert(point);
            *known = point.max(*known);
        }
        let mut answers = lists.into_iter().map(|(answer, ..)| answer);
        Ok((ids.iter().map(|_| answers.by_ref().take(reads.len()).collect()).collect(), reached))
    }

    /// Reads associations of `id1`. Returns them with their partition and the place at which they were read.
    async fn association_list(
        self: &Arc<Self>,
        id1: u64,
        read: &AssociationRead,
        need: &ReadNeed,
    ) -> Result<(AssociationAnswer, PartitionId, LogPoint), LiveError> {
        let partition = partition_of_id(id1, self.count);
        let mut types = self.types();
        if types.open && types.association(&read.kind).is_none() {
            // Lists of this type are empty unless the log that the answer must show names a type that is unknown here.
            let none = Query::Count(ListKey { id1, kind: TypeId::default() });
            let until = self.read(partition, none, need).await?.until;
            types = self.types_of_log().await?;
            if types.association(&read.kind).is_none() {
                return Ok((no_associations(&read.select), partition, until));
            }
        }
        let (number, kind) = types.association_named(&read.kind)?;
        let list = ListKey { id1, kind: number };
        let (query, limit) = query_of(list, &read.select, kind.cap)?;
        let answered = self.read(partition, query, need).await?;
        let mut found = match answered.answer {
            Answer::Count(count) => return Ok((AssociationAnswer::Count(count), partition, answered.until)),
            Answer::Associations(found) => found,
            Answer::Objects(_) => Vec::new(),
        };
        let more = limit < found.len();
        found.truncate(limit);
        let answer = |types: &GraphTypes, association: &Association| {
            let data = read.with_data.then(|| types.decode(number, &association.data)).transpose()?;
            let version = read.with_versions.then_some(association.stamp.position.0);
            Ok::<_, FieldsFault>(ListedAssociation {
                id2: association.id2,
                time: association.time,
                data,
                version,
            })
        };
        let out = self.decoded(|types| found.iter().map(|it| answer(types, it)).collect()).await?;
        Ok((AssociationAnswer::List { out, more }, partition, answered.until))
    }

    /// Answers a query of one partition.
    pub(super) async fn read(
        self: &Arc<Self>,
        partition: PartitionId,
        query: Query,
        need: &ReadNeed,
    ) -> Result<Answered, LiveError> {
        let ticket = need.after.get(&partition).copied().unwrap_or_default();
        let verified = match need.critical {
            true => Some(self.verified_end(partition).await?),
            false => None,
        };
        let mut reading = Reading::new(query, ticket, verified);
        let (mut turn, mut memory) = (None, self.turns.memory());
        loop {
            let step = {
                let mut caches = self.caches.lock();
                let mut cache = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?;
                reading.next(&mut cache, self.now())
            };
            // A turn is for a statement of this read, so it is not kept while the read waits for something else.
            if !matches!(step, ReadingStep::Fetch(_)) {
                turn = None;
            }
            match step {
                ReadingStep::Answer(answered) => return Ok(answered),
                ReadingStep::CatchUp(place) => self.catch_up(partition, place).await?,
                ReadingStep::Find(search) => self.look_for(partition, search).await?,
                ReadingStep::Freshen => self.freshen_one(partition).await?,
                ReadingStep::Fetch(rows) => {
                    let skips = rows.iter().any(skips);
                    let own = turn.take().filter(|turn: &Turn| turn.is_for(skips));
                    match own.or_else(|| self.turns.now(skips)) {
                        Some(turn) => {
                            reading.filled(self.bring(partition, rows, turn).await?);
                            memory.grow_to(partition, reading.bytes())?;
                        }
                        // Other reads may have fetched the rows by then, so the cache is asked again.
                        None => turn = Some(self.turns.wait(partition, skips).await?),
                    }
                }
                ReadingStep::GiveUp => return Err(LiveError::Behind(partition)),
            }
        }
    }

    /// Reads rows of a partition from the database, or waits until other reads have fetched them.
    async fn bring(
        self: &Arc<Self>,
        partition: PartitionId,
        rows: Vec<RowQuery>,
        turn: Turn,
    ) -> Result<Vec<Filled>, LiveError> {
        let (mut fetch, mut waits) = (Fetch::new(), Vec::new());
        {
            let mut caches = self.caches.lock();
            let mut cache = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?;
            let mut is_busy = false;
            for row in rows {
                match cache.begin(&row) {
                    Begin::Fetch(flight) => fetch.push((flight, row)),
                    Begin::Join(flight) => {
                        let (waiter, wait) = oneshot::channel();
                        if cache.join(flight, waiter).is_ok() {
                            waits.push(wait);
                        }
                    }
                    Begin::Busy | Begin::Uncached => is_busy = true,
                }
            }
            if is_busy && fetch.is_empty() && waits.is_empty() {
                return Err(LiveError::Busy(partition));
            }
        }
        // The fetch runs in a task of its own, so that other reads get the rows even if this caller goes away.
        let mut rows = Vec::new();
        if fetch.is_empty() {
            drop(turn);
        } else {
            let graph = Arc::clone(self);
            let fetching = tokio::spawn(async move {
                let _turn = turn;
                graph.fetch(partition, fetch).await
            });
            rows = fetching.await.map_err(|_| LiveError::Busy(partition))??;
        }
        for wait in waits {
            // If the flight ended otherwise, because the partition was closed, the next step says so.
            if let Ok(arrived) = wait.await {
                rows.extend(arrived?);
            }
        }
        Ok(rows)
    }

    async fn fetch(&self, partition: PartitionId, fetch: Fetch) -> Result<Vec<Filled>, LiveError> {
        metrics::counter!("kith_live_fills_total").increment(fetch.len() as u64);
        let queries = fetch.iter().map(|(_, query)| query.clone()).collect();
        let read = self.database.read(partition, queries).await;
        let mut caches = self.caches.lock();
        let Some(mut cache) = caches.partition(partition) else {
            return Err(LiveError::NotOwner(partition));
        };
        let (rows, error) = match read {
            Ok(rows) => (rows, None),
            Err(error) => (RowsAt { at: LogPoint::default(), answers: Vec::new() }, Some(error)),
        };
        let (mut filled, mut answers) = (Vec::new(), rows.answers.iter());
        for (flight, query) in &fetch {
            match answers.next() {
                Some(answer) => {
                    let landed = cache.land(*flight, rows.at, query, answer);
                    wake(landed.waiters, &Ok(landed.filled.clone()));
                    match landed.filled {
                        Some(rows) => filled.push(rows),
                        None => metrics::counter!("kith_live_fills_refused_total").increment(1),
                    }
                }
                None => {
                    if let Landing::Wake(waiters) = cache.failed(*flight, query, Failure::Everyone) {
                        let short =
                            || DatabaseError::Damaged { detail: "it returned too few rows".to_owned() };
                        wake(waiters, &Err(error.clone().unwrap_or_else(short)));
                    }
                }
            }
        }
        error.map_or(Ok(filled), |error| Err(error.into()))
    }
}

/// Whether the database passes over a part of a list to answer this query.
fn skips(query: &RowQuery) -> bool {
    matches!(query, RowQuery::List { skip: 1.., .. })
}

/// Gives rows, or the reason why there are none, to the reads that waited for them.
fn wake(waiters: Vec<Waiter>, arrived: &Result<Option<Filled>, DatabaseError>) {
    for waiter in waiters {
        // The read may have been cancelled.
        let _ = waiter.send(arrived.clone());
    }
}

/// The answer from a list without associations.
fn no_associations(select: &Select) -> AssociationAnswer {
    match select {
        Select::Count => AssociationAnswer::Count(0),
        Select::Ids { .. } | Select::Range { .. } | Select::Times { .. } => {
            AssociationAnswer::List { out: Vec::new(), more: false }
        }
    }
}

/// Returns the query for the cache, and the maximum number of associations for the caller. Range and time-range queries ask for
/// one more association, so that the answer can say whether there are more.
///
/// # Errors
/// The range begins at a greater index than any may.
fn query_of(list: ListKey, select: &Select, cap: u32) -> Result<(Query, usize), LiveError> {
    let limited = |limit: Option<u32>| limit.unwrap_or(cap).min(cap);
    Ok(match select {
        Select::Ids { ids, high, low } => {
            let (high, low) = (high.unwrap_or(u64::MAX), low.unwrap_or(0));
            (Query::Get { list, ids: ids.clone(), high, low }, usize::MAX)
        }
        Select::Count => (Query::Count(list), usize::MAX),
        Select::Range { start, limit } => {
            let limit = limited(*limit);
            let start = match start {
                AskedStart::Index(index) if INDEX_MAX < *index => {
                    return Err(LiveError::IndexTooGreat(*index));
                }
                AskedStart::Index(index) => Start::Index(u32::try_from(*index).unwrap_or(u32::MAX)),
                AskedStart::After(place) => Start::After(*place),
            };
            (Query::Range { list, start, limit: limit.saturating_add(1) }, limit as usize)
        }
        Select::Times { high, low, limit } => {
            let limit = limited(*limit);
            let (high, low) = (high.unwrap_or(u64::MAX), low.unwrap_or(0));
            (Query::TimeRange { list, high, low, limit: limit.saturating_add(1) }, limit as usize)
        }
    })
}
