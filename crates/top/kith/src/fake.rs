//! A fake service with fixed answers: those of the operations' examples, or answers that show what was asked.

use futures::{FutureExt, future::BoxFuture};
use kith_client::{
    BatchAnswer, BatchKeys, BatchPiece, BatchStream, QueryAnswer, QueryError, QueryOptions, Question, Reply,
    Request, Service, StoreShape, StreamFailure, StreamFooter, StreamItem, StreamStatus,
};
use kith_live::{CompletedWrite, ListedAssociation, ObjectAnswer, Ticket};
use kith_operators::{EdgePosition, Network, RecordsOver};
use kith_query::{
    AssociationsAnswer, CommonAnswer, CommonQuery, ConnectionsQuery, DegreeQuery, DistanceQuery, EdgeColumn,
    EdgeCursor, EdgesAnswer, EdgesQuery, GraphAnswer, GraphQuery, NetworkAnswer, NetworkQuery, NetworkReturn,
    ObjectGetQuery, Operation, OperationError, Outlet, PathAnswer, PathQuery, ServedGraph, ServedState, Want,
    WriteOutcome, driven,
};
use kith_schema::ColumnNumber;
use kith_schema::{KeyType, ValueType};
use kith_types::{ErrorCode, StoreVersion};
use kith_wire::LookupError;
use kith_wire::v1;
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// Members with this id or a greater one are in no graph. There is no path to member `STRANGER`, and it shares no
/// connections.
const STRANGER: u64 = 100_000;

/// A service that knows every graph except `missing`.
pub struct Fake;

impl Fake {
    fn answer(graph: &str, query: &GraphQuery, options: &QueryOptions) -> Result<QueryAnswer, QueryError> {
        if graph == "missing" {
            return Err(
                LookupError::UnknownGraph { name: graph.to_owned(), known: vec!["v".to_owned()] }.into()
            );
        }
        let missing = if options.partial { vec![3, 7] } else { Vec::new() };
        let mut answer = answer(&query.operation)?;
        if let GraphAnswer::Ids(ids) | GraphAnswer::Common(CommonAnswer::Ids(ids)) = &mut answer {
            options.page.cut(ids);
        }
        Ok(QueryAnswer {
            answer,
            complete: missing.is_empty(),
            missing_partitions: missing,
            served: vec![ServedGraph { name: graph.to_owned(), state: ServedState::Version(1) }],
            profile: options.profile.then(profile),
        })
    }
}

/// Three edges with a column `since`, at most `limit` of them.
fn edges(query: &EdgesQuery) -> GraphAnswer {
    let limit = query.limit.map_or(3, |limit| limit.min(3) as usize);
    let numbers = [2015, 2019, 2020].map(ColumnNumber::U64);
    let position = EdgePosition { value: 0, id: 5 };
    let cursor = EdgeCursor { version: StoreVersion(1), question: 7, position };
    GraphAnswer::Edges(EdgesAnswer {
        ids: [2, 3, 5][..limit].to_vec(),
        columns: vec![EdgeColumn {
            name: "since".to_owned(),
            is_time: false,
            numbers: numbers[..limit].to_vec(),
        }],
        after: (limit < 3).then_some(cursor),
    })
}

/// Each object has its id as its name. Objects from `STRANGER` on do not exist.
fn objects(ids: &[u64], is_single: bool) -> GraphAnswer {
    let object = |id: &u64| {
        let data = format!("{{\"name\":\"{id}\",\"age\":{}}}", id % 90);
        (*id < STRANGER).then(|| ObjectAnswer {
            id: *id,
            kind: "person".to_owned(),
            version: 12,
            data,
            text_id: None,
        })
    };
    let mut objects = ids.iter().map(object);
    match is_single {
        true => GraphAnswer::Object(objects.next().flatten()),
        false => GraphAnswer::Objects(objects.collect()),
    }
}

/// A list of three associations, at most `limit` of them, which makes it a page.
fn associations(limit: Option<u32>, with_data: bool, with_versions: bool) -> GraphAnswer {
    let data = || with_data.then(|| r#"{"note":"a"}"#.to_owned());
    let version = |id2| with_versions.then_some(10 * id2);
    let out = [(7, u64::MAX), (2, 30), (5, 30)];
    let out = out.map(|(id2, time)| ListedAssociation { id2, time, data: data(), version: version(id2) });
    let limit = limit.map(|limit| limit.min(3));
    let out = out[..limit.unwrap_or(3) as usize].to_vec();
    GraphAnswer::Associations(AssociationsAnswer { out, more: limit.map(|limit| limit < 3) })
}

/// The answer to the example of this operation that has the same fields, or else to the first one.
fn example(operation: &Operation) -> GraphAnswer {
    let of_name = Operation::examples().into_iter().find(|(name, _)| *name == operation.name());
    let (_, mut examples) = of_name.expect("every operation has examples");
    // As JSON, operations are without their pages.
    let fields = |operation: &Operation| serde_json::to_value(operation).expect("fields are JSON");
    let same = examples.iter().position(|example| fields(&example.operation()) == fields(operation));
    examples.swap_remove(same.unwrap_or(0)).answer
}

fn answer(operation: &Operation) -> Result<GraphAnswer, QueryError> {
    Ok(match operation {
        Operation::Connections(ConnectionsQuery { id }) if STRANGER < *id => {
            return Err(OperationError::MemberNotFound { id: *id }.into());
        }
        Operation::Connections(_) => GraphAnswer::Ids(vec![2, 3, 5, 8]),
        Operation::Members(_) => GraphAnswer::Ids(vec![]),
        Operation::Degree(DegreeQuery { ids, .. }) => {
            GraphAnswer::Degrees(ids.iter().map(|id| (*id < STRANGER).then_some(*id % 7)).collect())
        }
        Operation::Edges(query) => edges(query),
        Operation::ObjectGet(ObjectGetQuery { ids, is_single }) => objects(ids, *is_single),
        Operation::AssocGet(query) => associations(None, query.with_data, query.with_versions),
        Operation::AssocRange(query) => {
            associations(Some(query.limit.unwrap_or(3)), query.with_data, query.with_versions)
        }
        Operation::AssocTimeRange(query) => {
            associations(Some(query.limit.unwrap_or(3)), query.with_data, query.with_versions)
        }
        Operation::Network(NetworkQuery { id, returns }) => {
            let union = BTreeSet::from([1, 2, *id, 7_000, 9_000]);
            let network = Network::new(*id, vec![1, 9], &Vec::from_iter(union));
            let sizes = network.sizes();
            let network = (*returns != NetworkReturn::Size).then(|| Arc::new(network));
            GraphAnswer::Network(NetworkAnswer { id: *id, sizes, network })
        }
        Operation::Distance(DistanceQuery { to, .. }) => {
            GraphAnswer::Distances(to.iter().map(|id| (*id < STRANGER).then_some((*id % 4) as u8)).collect())
        }
        Operation::Path(PathQuery { to, .. }) if *to == STRANGER => GraphAnswer::Path(PathAnswer::default()),
        Operation::Path(PathQuery { from, to, .. }) => {
            GraphAnswer::Path(PathAnswer { members: vec![*from, 4, *to] })
        }
        Operation::Common(CommonQuery { to, returns, .. }) => GraphAnswer::Common(match returns {
            Want::Ids => CommonAnswer::Ids(vec![4, 6, 9]),
            Want::Size => CommonAnswer::Size(3),
            Want::Exists => CommonAnswer::Exists(*to != STRANGER),
        }),
        other => example(other),
    })
}

/// A plan of two rounds. The second one has a failed request, its retry, and a request that a hedge overtook.
pub fn profile() -> v1::Profile {
    let overtaken = request((1, 0), 30, (500, 1_200), "overtaken");
    let hedge = v1::RequestProfile { cause: "hedge".to_owned(), ..request((4, 1), 30, (1_100, 600), "ok") };
    let retry = request((5, 1), 20, (1_000, 1_500), "ok");
    let retry = v1::RequestProfile { attempt: 2, cause: "retry".to_owned(), ..retry };
    let asked = vec![overtaken, request((2, 0), 20, (500, 400), "unavailable"), retry, hedge];
    v1::Profile {
        requests: 4,
        groups: 2,
        nodes: 3,
        total_us: 2_500,
        hedges: 1,
        metadata_age_ms: 0,
        cache: "miss".to_owned(),
        rounds: vec![
            round("first degree", "single-key", vec![request((1, 0), 1, (100, 300), "ok")]),
            v1::RoundProfile {
                controller: "static".to_owned(),
                selector: "network".to_owned(),
                groups_allowed: 2,
                groups_asked: 7,
                inputs: Some(inputs()),
                ..round("second degree", "sync-union", asked)
            },
        ],
    }
}

/// The profile of a first attempt, with its start and duration in microseconds.
fn request(
    (node, group): (u32, u32),
    keys: u64,
    (start_us, took_us): (u64, u64),
    outcome: &str,
) -> v1::RequestProfile {
    v1::RequestProfile {
        node,
        group,
        keys,
        start_us,
        took_us,
        service_us: took_us / 3,
        reply_bytes: keys * 1_000,
        outcome: outcome.to_owned(),
        attempt: 1,
        cause: "plan".to_owned(),
        won: outcome == "ok",
    }
}

fn round(name: &str, kind: &str, requests: Vec<v1::RequestProfile>) -> v1::RoundProfile {
    v1::RoundProfile {
        name: name.to_owned(),
        kind: kind.to_owned(),
        controller: "minimum".to_owned(),
        policy: "n-groups".to_owned(),
        groups_allowed: 1,
        selector: String::new(),
        groups_asked: 1,
        inputs: None,
        keys: requests.iter().map(|request| request.keys).sum(),
        start_us: requests[0].start_us,
        took_us: requests.iter().map(|request| request.took_us).max().unwrap_or_default(),
        merged_ids: 4_321,
        busiest_over_mean: 1.2,
        requests,
        ended_early: false,
    }
}

fn inputs() -> v1::ControllerInputs {
    v1::ControllerInputs {
        controller: "static(7)".to_owned(),
        operation: "network".to_owned(),
        workflow: "interactive".to_owned(),
        groups: 2,
        nodes_per_group: 3,
        kind_fan_outs_per_second: 4.5,
        kind_requests_per_second: 12.25,
        client_requests_per_second: 20.0,
        clients: 2,
        node_requests_per_second: 8.0,
        termination_share: Some(0.75),
    }
}

impl Fake {
    /// The value of each key is the key itself; `none` is absent and `lost` is unanswered.
    fn values(store: &str, keys: &BatchKeys) -> BatchAnswer {
        let BatchKeys::Bytes(keys) = keys else { panic!("texts") };
        let value = |key: &&[u8]| **key != *b"none" && **key != *b"lost";
        let values: Vec<u8> = keys.iter().filter(value).collect::<Vec<_>>().concat();
        let mut records = RecordsOver::new(keys.len(), values.into());
        for key in keys.iter() {
            match key {
                b"none" => records.absent(),
                b"lost" => records.unanswered(),
                key => assert!(records.found(key.len())),
            }
        }
        let records = records.finish().expect("all bytes are taken");
        let served = vec![(store.to_owned(), 1)];
        BatchAnswer { records, missing_partitions: vec![], served, profile: None, schema: None }
    }
}

/// Answers about any graph, and any store of texts.
impl Service for Fake {
    fn call(&self, request: Arc<Request>) -> BoxFuture<'_, Result<Reply, QueryError>> {
        let Request { question, options } = &*request;
        let reply = match question {
            Question::Graph { graph, query } => Fake::answer(graph, query, options).map(Reply::Graph),
            Question::Explain { .. } => {
                let notes = vec!["the second degree depends on the first".to_owned()];
                Ok(Reply::Plan(v1::ExplainReply { plan: Some(profile()), notes }))
            }
            Question::Values { store, keys } => Ok(Reply::Values(Fake::values(store, keys))),
            Question::Write { .. } => {
                let done = CompletedWrite { id: 5, version: 7, existed: true };
                Ok(Reply::Written(WriteOutcome { done, ticket: Ticket::new(9), profile: None }))
            }
            Question::Shape { .. } => {
                Ok(Reply::Shape(StoreShape { key: KeyType::String, value: ValueType::Text }))
            }
            Question::Compute { .. }
            | Question::Aggregate { .. }
            | Question::Gremlin { .. }
            | Question::Schema { .. } => {
                unreachable!("texts are no records")
            }
        };
        futures::future::ready(reply).boxed()
    }

    /// Streams the last key first. If `lost` is among the keys, the footer reports it to a caller who takes partial answers;
    /// others get an error in its place.
    fn stream(&self, request: Arc<Request>) -> BatchStream<'_> {
        driven(async move |outlet: Outlet| {
            let Question::Values { store, keys } = &request.question else {
                unreachable!("texts are no records")
            };
            let answer = Fake::values(store, keys);
            for position in (0..keys.len() as u32).rev() {
                let mut records = answer.records.clone();
                records.retain(|index| index == position as usize);
                let is_lost = 0 < records.counts().unanswered;
                if is_lost && !request.options.partial {
                    return Err(QueryError::DeadlineExceeded { deadline_ms: 7 });
                }
                let piece =
                    BatchPiece { positions: vec![position], records, version: 1, schema: None, result: None };
                outlet.put(StreamItem::Piece(piece)).await;
            }
            let counts = answer.counts();
            let failure = StreamFailure {
                partitions: vec![3],
                keys: counts.unanswered,
                code: ErrorCode::DeadlineExceeded,
                nodes: vec![1],
            };
            let footer = StreamFooter {
                status: StreamStatus::of(&counts),
                counts,
                failures: if counts.unanswered == 0 { vec![] } else { vec![failure] },
                version: 1,
                schema: None,
                crc32c: None,
                total: Duration::ZERO,
                service: Duration::ZERO,
                profile: None,
            };
            outlet.put(StreamItem::Footer(Box::new(footer))).await;
            Ok(())
        })
    }
}
