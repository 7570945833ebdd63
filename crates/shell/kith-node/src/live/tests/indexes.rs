//! Look-ups in indexes: which of them read the database, and what they show.

use super::{
    replaced::{P, graph_with},
    shared::GatedDatabase,
};
use crate::live::graph::LiveGraph;
use kith_database::Database;
use kith_live::{
    Batch, BatchPart, Change, Effect, GraphTypes, LoggedChange, Object, ObjectFind, RowWrite, Ticket, TypeId,
};
use kith_operators::{Operator, Value};
use kith_query::convert::operator_to_wire;
use kith_types::LogPoint;
use kith_wire::v1;
use std::sync::{Arc, atomic::Ordering::SeqCst};

const ACCOUNT: TypeId = TypeId(1);

/// A node with a fresh cache, and the database that it reads. Writes go to the database alone, as if another node led.
struct Scene {
    database: Arc<GatedDatabase>,
    graph: LiveGraph,
    types: Arc<GraphTypes>,
    _folder: tempfile::TempDir,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = GatedDatabase::create(folder.path()).await;
        let declared = "[object.account]\nfields = { email = { type = 'text', index = true } }";
        let types = Arc::new(GraphTypes::new(7, &declared.parse().unwrap()).unwrap());
        let graph = graph_with(&types, Arc::clone(&database) as _);
        // The first call takes the cache to the end of the log, which drops proofs that were begun before.
        graph.freshener.freshen(vec![P]).await.unwrap();
        graph.freshener.freshen(vec![P]).await.unwrap();
        Self { database, graph, types, _folder: folder }
    }

    /// Stores an account, which had another e-mail address before, or none.
    async fn write(&self, id: u64, email: &str, was: Option<&str>) -> LogPoint {
        let expected = self.database.points(vec![P]).await.unwrap()[0];
        let stamp = LogPoint { position: expected.position.next(), ..expected };
        let data =
            |email: &str| self.types.encode(ACCOUNT, Some(&format!("{{\"email\":\"{email}\"}}"))).unwrap();
        let entries = |email: &str| self.types.entries(ACCOUNT, id, &data(email)).unwrap();
        let object = Object { id, kind: ACCOUNT, stamp, data: data(email) };
        let mut rows = vec![RowWrite::PutObject(object.clone())];
        rows.extend(was.into_iter().flat_map(entries).map(RowWrite::DeleteEntry));
        rows.extend(entries(email).into_iter().map(RowWrite::PutEntry));
        let changes = vec![LoggedChange { change: Change { effects: vec![Effect::Object(object)] }, rows }];
        let parts = vec![BatchPart { partition: P, expected, changes }];
        self.database.commit(Batch { parts, ..Default::default() }).await.unwrap();
        stamp
    }

    /// Looks an address up. Returns the ids, and how many times the database was read.
    async fn find(&self, email: &str, ticket: Option<LogPoint>, critical: bool) -> (Vec<u64>, usize) {
        let before = self.database.reads.load(SeqCst);
        let find = ObjectFind {
            kind: "account".to_owned(),
            field: "email".to_owned(),
            values: vec![format!("\"{email}\"")],
            after: None,
            limit: None,
        };
        let ticket = ticket.map(|point| {
            let mut ticket = Ticket::new(7);
            ticket.require(P, point);
            ticket.to_bytes().into()
        });
        let header = v1::RequestHeader { ticket: ticket.unwrap_or_default(), ..Default::default() };
        let request = v1::EvaluateRequest {
            header: Some(header),
            name: "social".to_owned(),
            partitions: vec![P.0],
            plan: Some(operator_to_wire(&Operator::Find(Box::new(find)))),
            critical,
            ..Default::default()
        };
        let shown = self.graph.evaluate(&request).await.unwrap_or_else(|error| panic!("{error}"));
        let Value::Set(ids) = shown.value else { panic!("a look-up returns ids") };
        (ids, self.database.reads.load(SeqCst) - before)
    }
}

#[tokio::test]
async fn a_look_up_is_repeated_from_memory_which_follows_the_log() {
    let scene = Scene::new().await;
    assert_eq!(scene.find("a", None, false).await, (vec![], 1));
    assert_eq!(scene.find("a", None, false).await, (vec![], 0), "that there is none is known");
    for id in [5, 6] {
        let point = scene.write(id, "a", None).await;
        scene.graph.logs.catch_up(P, point).await.unwrap();
    }
    assert_eq!(scene.find("a", None, false).await, (vec![5, 6], 0));
    let point = scene.write(5, "b", Some("a")).await;
    scene.graph.logs.catch_up(P, point).await.unwrap();
    assert_eq!(scene.find("a", None, false).await, (vec![6], 0));
    assert_eq!(scene.find("a", Some(point), false).await, (vec![6], 0), "memory has the write of the ticket");
    assert_eq!(scene.find("b", None, false).await, (vec![5], 1));
    assert_eq!(scene.find("b", None, false).await, (vec![5], 0));
}

#[tokio::test]
async fn a_ticket_and_a_critical_look_up_show_what_memory_lacks() {
    let scene = Scene::new().await;
    assert_eq!(scene.find("a", None, false).await, (vec![], 1));
    let first = scene.write(5, "a", None).await;
    assert_eq!(scene.find("a", None, false).await, (vec![], 0), "the cache is fresh for some time");
    assert_eq!(scene.find("a", Some(first), false).await, (vec![5], 1));
    assert_eq!(scene.find("a", None, false).await, (vec![5], 0), "what was read was kept");
    scene.write(5, "b", Some("a")).await;
    assert_eq!(scene.find("a", None, false).await, (vec![5], 0));
    assert_eq!(scene.find("a", None, true).await, (vec![], 1));
    assert_eq!(scene.find("a", None, true).await, (vec![], 1), "a critical look-up always reads");
}
