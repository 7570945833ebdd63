//! The table of the rights that each method and operation needs. Methods that are not in it are for the cluster's own
//! processes, so that a new method is closed until somebody decides who may call it.

use super::{
    need::{Need, Right},
    subject::CallingSubject,
};
use bytes::Bytes;
use kith_types::ErrorCode;
use kith_wire::{
    Message,
    frame::Op,
    v1::{
        self, rebalance_request::Command as Reshape, schema_command::Command as Schema,
        store_request::Command as Ask,
    },
};
use tonic::Status;

/// The need of a method.
pub(super) enum Rule {
    /// Nothing. Only health checks are open.
    Open,
    /// The same for every message.
    Always(Need),
    /// A need that depends on the request's one message.
    OfMessage(fn(&[u8]) -> Result<Need, Status>),
}

/// Returns what a gRPC method needs, by its path.
pub(super) fn rule(path: &str) -> Rule {
    match path {
        "/grpc.health.v1.Health/Check" | "/grpc.health.v1.Health/Watch" => Rule::Open,
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
        | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        | "/kith.v1.Cluster/GetTopology"
        | "/kith.v1.Cluster/WatchTopology"
        | "/kith.v1.Cluster/GetTypes"
        | "/kith.v1.Cluster/Status" => Rule::Always(Need::Known),
        "/kith.v1.Node/Ping" => Rule::OfMessage(ping),
        "/kith.v1.Graph/Query"
        | "/kith.v1.Graph/QueryStream"
        | "/kith.v1.Graph/Explain"
        | "/kith.v1.Store/MultiGet"
        | "/kith.v1.Store/MultiGetStream"
        | "/kith.v1.Store/Compute"
        | "/kith.v1.Store/ComputeStream"
        | "/kith.v1.Store/Aggregate"
        | "/kith.v1.Store/Schema"
        | "/kith.v1.Inspect/Schema"
        | "/kith.v1.Inspect/Place"
        | "/kith.v1.Inspect/Records"
        | "/kith.v1.Inspect/Verify"
        | "/kith.v1.Inspect/Scan" => Rule::OfMessage(|message| named(Right::Read, message)),
        "/kith.v1.Graph/Gremlin" => Rule::OfMessage(gremlin),
        "/kith.v1.Graph/Write" | "/kith.v1.Node/Write" => {
            Rule::OfMessage(|message| named(Right::Write, message))
        }
        "/kith.v1.Node/Evaluate" | "/kith.v1.Node/EvaluateStream" => Rule::OfMessage(evaluate),
        "/kith.v1.Cluster/PushStore" => Rule::OfMessage(|message| named(Right::Write, message)),
        "/kith.v1.Cluster/Store" => Rule::OfMessage(store),
        "/kith.v1.Cluster/Schema" => Rule::OfMessage(schema),
        "/kith.v1.Cluster/Rebalance" => Rule::OfMessage(rebalance),
        "/kith.v1.Cluster/FetchRates" => Rule::OfMessage(fetch_rates),
        _ => Rule::Always(Need::Cluster),
    }
}

/// Whether the messages of a gRPC method name the subject of their caller.
pub(super) fn names_subject(path: &str) -> bool {
    matches!(path, "/kith.v1.Graph/Write" | "/kith.v1.Node/Write")
}

/// Returns a message that names the subject of its caller with the name of the caller. Only a process of the cluster may name
/// somebody else, on whose behalf it writes.
pub(super) fn with_subject(message: &[u8], subject: Option<&CallingSubject>) -> Option<Bytes> {
    let subject = subject.filter(|subject| !subject.is_cluster)?;
    // Of a field that occurs twice in a message, the last value counts.
    let subject = v1::SubjectNamed { subject: subject.name.to_string() };
    Some([message, &subject.encode_to_vec()].concat().into())
}

/// Returns what a framed operation needs.
///
/// # Errors
/// `bad_request` if the body cannot be decoded.
pub(super) fn need_of_op(op: Op, body: &[u8]) -> Result<Need, Status> {
    match op {
        Op::Query | Op::MultiGet | Op::MultiGetStream | Op::Compute | Op::ComputeStream | Op::Aggregate => {
            named(Right::Read, body)
        }
        Op::Write => named(Right::Write, body),
        Op::Evaluate => evaluate(body),
        Op::Ping => ping(body),
        _ => Ok(Need::Cluster),
    }
}

fn decoded<M: Message + Default>(message: &[u8]) -> Result<M, Status> {
    M::decode(message).map_err(|error| {
        let message = format!("the request's body cannot be read: {error}");
        kith_wire::status(ErrorCode::BadRequest, message, "use a client of this release")
    })
}

/// The need of a message whose first field is the name of a store or graph; the other fields are skipped.
fn named(right: Right, message: &[u8]) -> Result<Need, Status> {
    let v1::StoreNamed { store } = decoded(message)?;
    Ok(Need::Store(right, store))
}

fn gremlin(message: &[u8]) -> Result<Need, Status> {
    let v1::GremlinRequest { graph, writes, .. } = decoded(message)?;
    Ok(Need::traversal(&graph, writes))
}

fn evaluate(message: &[u8]) -> Result<Need, Status> {
    let v1::GraphNamed { header, graph } = decoded(message)?;
    // Only a router may claim that it has admitted a read.
    let is_admitted = header.is_some_and(|header| header.admitted);
    Ok(if is_admitted { Need::Cluster } else { Need::Store(Right::Read, graph) })
}

fn ping(message: &[u8]) -> Result<Need, Status> {
    let v1::PingRequest { waits, .. } = decoded(message)?;
    // Reported waits slow down fetches, so only a router may report them.
    Ok(if waits.is_empty() { Need::Known } else { Need::Cluster })
}

fn store(message: &[u8]) -> Result<Need, Status> {
    let v1::StoreRequest { store, command, .. } = decoded(message)?;
    let right = match command {
        Some(Ask::List(_) | Ask::Describe(_)) => return Ok(Need::Known),
        Some(Ask::Swap(_) | Ask::Rollback(_) | Ask::Hold(_) | Ask::Cancel(_)) => Right::Write,
        // Whoever may read the graph can then read the store, so nobody may decide this who has rights for the graph alone.
        Some(Ask::Alter(v1::AlterStore { properties: Some(store), .. })) if !store.is_empty() => {
            return Ok(Need::Administrator);
        }
        // A command that this release does not know is refused where commands run. Until then it needs the highest right.
        Some(Ask::Create(_) | Ask::Drop(_) | Ask::Block(_) | Ask::Alter(_) | Ask::Freeze(_)) | None => {
            Right::Admin
        }
    };
    Ok(Need::Store(right, store))
}

fn schema(message: &[u8]) -> Result<Need, Status> {
    let v1::SchemaCommand { graph, command, .. } = decoded(message)?;
    Ok(match command {
        Some(Schema::Show(_)) => Need::Known,
        // A write may name a type that an open graph does not have yet.
        Some(Schema::AddTypes(_)) => Need::Store(Right::Write, graph),
        Some(Schema::Apply(_) | Schema::Drop(_)) | None => Need::Store(Right::Admin, graph),
    })
}

fn rebalance(message: &[u8]) -> Result<Need, Status> {
    let v1::RebalanceRequest { command, .. } = decoded(message)?;
    Ok(match command {
        Some(Reshape::Status(_) | Reshape::Plan(_)) => Need::Known,
        Some(Reshape::Apply(_) | Reshape::Abort(_) | Reshape::Resume(_)) | None => Need::Administrator,
    })
}

fn fetch_rates(message: &[u8]) -> Result<Need, Status> {
    let v1::FetchRatesRequest { rate, .. } = decoded(message)?;
    let changes = rate.is_some_and(|rate| rate.bytes_per_second.is_some());
    Ok(if changes { Need::Administrator } else { Need::Known })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(path: &str, message: &impl Message) -> String {
        match rule(path) {
            Rule::Open => "open".to_owned(),
            Rule::Always(need) => need.to_string(),
            Rule::OfMessage(need) => need(&message.encode_to_vec()).unwrap().to_string(),
        }
    }

    /// Every method in the protocol definition.
    fn methods() -> Vec<String> {
        let text = include_str!("../../../../../words/kith-wire/proto/kith.proto");
        let mut service = String::new();
        let mut found = Vec::new();
        for line in text.lines().map(str::trim) {
            if let Some(rest) = line.strip_prefix("service ") {
                service = rest.trim_end_matches([' ', '{']).to_owned();
            } else if let Some(rest) = line.strip_prefix("rpc ") {
                let method = rest.split('(').next().unwrap_or_default();
                found.push(format!("/kith.v1.{service}/{method}"));
            }
        }
        found
    }

    #[test]
    fn what_is_not_in_the_table_is_for_the_cluster() {
        for closed in ["/kith.v1.Node/Prepare", "/kith.v1.Node/ReadObject", "/kith.v1.New/Method", ""] {
            assert!(matches!(rule(closed), Rule::Always(Need::Cluster)), "{closed}");
        }
        for op in [Op::Deliver, Op::Database, Op::Cancel, Op::Credit, Op::Alive, Op::Identify] {
            assert_eq!(need_of_op(op, &[]).unwrap(), Need::Cluster);
        }
    }

    #[test]
    fn every_method_is_placed_by_a_person() {
        let cluster: Vec<String> =
            methods().into_iter().filter(|path| matches!(rule(path), Rule::Always(Need::Cluster))).collect();
        let expected = [
            "Node/Prepare",
            "Node/ReadObject",
            "Node/Copy",
            "Node/Release",
            "Node/FetchRate",
            "Node/Deliver",
        ];
        let expected = expected.iter().map(ToString::to_string);
        // The metadata service of a supervisor, which only its child processes use.
        let metadata =
            ["Read", "Commit", "Watch", "GrantLease", "KeepAlive"].map(|it| format!("Metadata/{it}"));
        let expected = expected.chain(metadata);
        let expected: Vec<String> = expected.map(|name| format!("/kith.v1.{name}")).collect();
        assert_eq!(cluster, expected);
    }

    #[test]
    fn messages_say_which_store_and_what_for() {
        let batch =
            v1::MultiGetRequest { store: "pages".to_owned(), ids: vec![1, 2, 3], ..Default::default() };
        assert_eq!(need("/kith.v1.Store/MultiGet", &batch), "read store \"pages\"");
        assert_eq!(
            need_of_op(Op::MultiGet, &batch.encode_to_vec()).unwrap().to_string(),
            "read store \"pages\""
        );
        assert_eq!(need("/kith.v1.Store/MultiGetStream", &batch), "read store \"pages\"");
        assert_eq!(
            need_of_op(Op::MultiGetStream, &batch.encode_to_vec()).unwrap().to_string(),
            "read store \"pages\""
        );
        for (writes, expected) in
            [(false, "read store \"social\""), (true, "read and write store \"social\"")]
        {
            let traversal = v1::GremlinRequest { graph: "social".to_owned(), writes, ..Default::default() };
            assert_eq!(need("/kith.v1.Graph/Gremlin", &traversal), expected);
        }
        let evaluate = v1::EvaluateRequest {
            header: Some(v1::RequestHeader { client: 7, ..Default::default() }),
            name: "village".to_owned(),
            keys: vec![5; 100],
            ..Default::default()
        };
        for method in ["/kith.v1.Node/Evaluate", "/kith.v1.Node/EvaluateStream"] {
            assert_eq!(need(method, &evaluate), "read store \"village\"");
            let header = v1::RequestHeader { admitted: true, ..Default::default() };
            let admitted = v1::EvaluateRequest { header: Some(header), ..evaluate.clone() };
            assert_eq!(need(method, &admitted), Need::Cluster.to_string(), "only routers let reads in");
        }
    }

    #[test]
    fn commands_say_what_right_they_need() {
        let ask = |command| v1::StoreRequest { store: "s".to_owned(), command, ..Default::default() };
        for (command, expected) in [
            (Some(Ask::List(v1::ListStores {})), "ask this"),
            (Some(Ask::Swap(v1::SwapStore::default())), "write store \"s\""),
            (Some(Ask::Alter(v1::AlterStore::default())), "admin store \"s\""),
            (
                Some(Ask::Alter(v1::AlterStore { properties: Some(String::new()), ..Default::default() })),
                "admin store \"s\"",
            ),
            (
                Some(Ask::Alter(v1::AlterStore { properties: Some("t".to_owned()), ..Default::default() })),
                "administer the cluster",
            ),
            (Some(Ask::Cancel(v1::CancelPush::default())), "write store \"s\""),
            (Some(Ask::Freeze(v1::FreezeStore::default())), "admin store \"s\""),
            (Some(Ask::Drop(v1::DropStore::default())), "admin store \"s\""),
            (None, "admin store \"s\""),
        ] {
            assert_eq!(need("/kith.v1.Cluster/Store", &ask(command)), expected);
        }
        let schema = |command| v1::SchemaCommand { graph: "g".to_owned(), command, ..Default::default() };
        for (command, expected) in [
            (Some(Schema::Show(v1::ShowSchema {})), "ask this"),
            (Some(Schema::AddTypes(v1::AddTypes::default())), "write store \"g\""),
            (Some(Schema::Apply(v1::ApplySchema::default())), "admin store \"g\""),
            (Some(Schema::Drop(v1::DropGraph::default())), "admin store \"g\""),
            (None, "admin store \"g\""),
        ] {
            assert_eq!(need("/kith.v1.Cluster/Schema", &schema(command)), expected);
        }
        let tells = v1::PingRequest { waits: vec![0, 7], ..Default::default() };
        for (ping, expected) in [(v1::PingRequest::default(), Need::Known), (tells, Need::Cluster)] {
            assert_eq!(need("/kith.v1.Node/Ping", &ping), expected.to_string());
            assert_eq!(need_of_op(Op::Ping, &ping.encode_to_vec()).unwrap(), expected);
        }
        let look = v1::RebalanceRequest {
            command: Some(Reshape::Status(v1::RebalanceLook {})),
            ..Default::default()
        };
        assert_eq!(need("/kith.v1.Cluster/Rebalance", &look), "ask this");
        let apply = v1::RebalanceRequest {
            command: Some(Reshape::Apply(v1::ShapeRequest::default())),
            ..Default::default()
        };
        assert_eq!(need("/kith.v1.Cluster/Rebalance", &apply), "administer the cluster");
        assert!(need_of_op(Op::MultiGet, &[0xff]).is_err());
    }

    #[test]
    fn a_write_names_its_caller_whatever_the_caller_says() {
        let subject = |name: &str, is_cluster| CallingSubject {
            name: name.into(),
            is_administrator: false,
            is_cluster,
        };
        let sent = v1::GraphWriteRequest {
            graph: "social".to_owned(),
            subject: "bob".to_owned(),
            write_id: "w-1".to_owned(),
            ..Default::default()
        };
        let message = sent.encode_to_vec();
        let named = with_subject(&message, Some(&subject("ada", false))).expect("a subject");
        let expected = v1::GraphWriteRequest { subject: "ada".to_owned(), ..sent };
        assert_eq!(v1::GraphWriteRequest::decode(named).unwrap(), expected);
        assert_eq!(with_subject(&message, Some(&subject("node", true))), None);
        assert_eq!(with_subject(&message, None), None);
        assert!(names_subject("/kith.v1.Graph/Write") && !names_subject("/kith.v1.Graph/Query"));
    }
}
