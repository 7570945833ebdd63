//! Every method and operation there is, and what each needs: what is not placed here fails the walk.

use bytes::Bytes;
use kith_wire::{
    Message,
    frame::Op,
    v1::{
        self, rebalance_request::Command as Reshape, schema_command::Command as Schema,
        store_request::Command as Ask,
    },
};
use std::collections::BTreeSet;

/// The right that a call needs, as `docs/operating/securing.md` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// To be known.
    Known,
    /// The right to read the store that it names.
    Read,
    /// To write it.
    Write,
    /// To read it and to write it.
    ReadAndWrite,
    /// To administer it.
    Admin,
    /// To administer everything.
    AdminOfAll,
    /// To be a node or router.
    Cluster,
}

/// A gRPC call about a store.
pub struct Call {
    pub path: String,
    /// The variant, of messages that have several.
    pub variant: &'static str,
    pub message: Bytes,
    pub needs: Needs,
}

const PROTO: &str = include_str!("../../../../../words/kith-wire/proto/kith.proto");

/// Every gRPC method of the contract.
pub fn methods() -> BTreeSet<String> {
    let mut service = "";
    let mut found = BTreeSet::new();
    for line in PROTO.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("service ") {
            service = rest.trim_end_matches([' ', '{']);
        } else if let Some(rest) = line.strip_prefix("rpc ") {
            let (method, _) = rest.split_once('(').expect("a method has an argument");
            found.insert(format!("/kith.v1.{service}/{method}"));
        }
    }
    found
}

/// The names of the variants of a message's `command`.
pub fn commands(message: &str) -> BTreeSet<&'static str> {
    let start = format!("message {message} {{");
    let body = PROTO.split(start.as_str()).nth(1).expect("the message is in the contract");
    let variants = body.split("oneof command {").nth(1).expect("it has commands").split('}').next();
    let lines = variants.expect("it ends").lines().map(str::trim);
    let fields = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    fields.map(|line| line.split_whitespace().nth(1).expect("type and name")).collect()
}

/// Every call, about `store`.
pub fn calls(store: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    for path in methods() {
        let (_, method) = path.split_at("/kith.v1.".len());
        match method {
            "Node/Evaluate" | "Node/EvaluateStream" => {
                calls.push(call(&path, "", evaluate(store, false), Needs::Read));
                calls.push(call(&path, "admitted", evaluate(store, true), Needs::Cluster));
            }
            "Graph/Gremlin" => {
                calls.push(call(&path, "reading", traversal(store, false), Needs::Read));
                calls.push(call(&path, "writing", traversal(store, true), Needs::ReadAndWrite));
            }
            "Cluster/GetTypes" => calls.push(call(&path, "", named(store), Needs::Known)),
            "Cluster/GetTopology" | "Cluster/WatchTopology" | "Cluster/Status" | "Node/Ping" => {
                calls.push(call(&path, "", Bytes::new(), Needs::Known));
            }
            "Cluster/Store" => calls.extend(of_store(&path, store)),
            "Cluster/Schema" => calls.extend(of_schema(&path, store)),
            "Cluster/Rebalance" => calls.extend(of_shape(&path)),
            "Cluster/FetchRates" => calls.extend(of_fetch_rates(&path)),
            _ => calls.push(call(&path, "", named(store), needs(method))),
        }
    }
    calls.push(call("/grpc.health.v1.Health/Check", "", Bytes::new(), Needs::Nothing));
    for version in ["v1", "v1alpha"] {
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        calls.push(call(&path, "", Bytes::new(), Needs::Known));
    }
    calls.push(call("/kith.v1.Store/NoSuchMethod", "", named(store), Needs::Cluster));
    calls
}

/// The right that a method needs whose messages name a store first.
fn needs(method: &str) -> Needs {
    match method {
        "Graph/Query" | "Graph/QueryStream" | "Graph/Explain" => Needs::Read,
        "Store/MultiGet" | "Store/MultiGetStream" | "Store/Schema" => Needs::Read,
        "Store/Compute" | "Store/ComputeStream" | "Store/Aggregate" => Needs::Read,
        "Inspect/Schema" | "Inspect/Place" | "Inspect/Records" => Needs::Read,
        "Inspect/Verify" | "Inspect/Scan" => Needs::Read,
        "Cluster/PushStore" | "Graph/Write" | "Node/Write" => Needs::Write,
        "Node/Prepare" | "Node/ReadObject" | "Node/Copy" | "Node/Release" | "Node/FetchRate" => {
            Needs::Cluster
        }
        "Node/Deliver" => Needs::Cluster,
        "Metadata/Read" | "Metadata/Commit" | "Metadata/Watch" => Needs::Cluster,
        "Metadata/GrantLease" | "Metadata/KeepAlive" => Needs::Cluster,
        _ => panic!("{method} is new: say here and in docs/operating/threats.md who may call it"),
    }
}

/// Everybody who is known may look at fetch rates.
fn of_fetch_rates(path: &str) -> [Call; 2] {
    let look = v1::FetchRatesRequest::default();
    let rate = v1::FetchRateRequest { bytes_per_second: Some(1) };
    let change = v1::FetchRatesRequest { rate: Some(rate), node: None };
    [
        call(path, "look", look.encode_to_vec().into(), Needs::Known),
        call(path, "change", change.encode_to_vec().into(), Needs::AdminOfAll),
    ]
}

fn call(path: &str, variant: &'static str, message: Bytes, needs: Needs) -> Call {
    Call { path: path.to_owned(), variant, message, needs }
}

/// A message that names a store first, as nearly all do.
fn named(store: &str) -> Bytes {
    v1::StoreNamed { store: store.to_owned() }.encode_to_vec().into()
}

fn traversal(graph: &str, writes: bool) -> Bytes {
    v1::GremlinRequest { graph: graph.to_owned(), writes, ..Default::default() }.encode_to_vec().into()
}

fn evaluate(store: &str, admitted: bool) -> Bytes {
    let header = v1::RequestHeader { admitted, ..Default::default() };
    let request = v1::EvaluateRequest { header: Some(header), name: store.to_owned(), ..Default::default() };
    request.encode_to_vec().into()
}

/// Each command of `Cluster.Store`. Those that somebody in the walk may give change nothing: there is no version 1.
fn of_store(path: &str, store: &str) -> Vec<Call> {
    let all = [
        ("create", Some(Ask::Create(v1::CreateStore::default())), Needs::Admin),
        ("list", Some(Ask::List(v1::ListStores {})), Needs::Known),
        ("describe", Some(Ask::Describe(v1::DescribeStore {})), Needs::Known),
        ("drop", Some(Ask::Drop(v1::DropStore::default())), Needs::Admin),
        ("swap", Some(Ask::Swap(v1::SwapStore { to: 1, force: false })), Needs::Write),
        ("rollback", Some(Ask::Rollback(v1::RollbackStore { to: Some(1), force: false })), Needs::Write),
        ("hold", Some(Ask::Hold(v1::HoldStore { version: 1, release: false })), Needs::Write),
        ("block", Some(Ask::Block(v1::BlockStore { version: 1, unblock: false })), Needs::Admin),
        ("alter", Some(Ask::Alter(v1::AlterStore::default())), Needs::Admin),
        ("cancel", Some(Ask::Cancel(v1::CancelPush::default())), Needs::Write),
        ("freeze", Some(Ask::Freeze(v1::FreezeStore { thaw: true })), Needs::Admin),
        ("", None, Needs::Admin),
    ];
    assert_placed("StoreRequest", all.iter().map(|(name, ..)| *name));
    let message = |command| v1::StoreRequest { store: store.to_owned(), command, ..Default::default() };
    let each = all.into_iter();
    each.map(|(name, command, needs)| call(path, name, message(command).encode_to_vec().into(), needs))
        .collect()
}

fn of_schema(path: &str, graph: &str) -> Vec<Call> {
    let apply = v1::ApplySchema { dry_run: true, ..Default::default() };
    let all = [
        ("apply", Some(Schema::Apply(apply)), Needs::Admin),
        ("show", Some(Schema::Show(v1::ShowSchema {})), Needs::Known),
        ("drop", Some(Schema::Drop(v1::DropGraph::default())), Needs::Admin),
        ("add_types", Some(Schema::AddTypes(v1::AddTypes::default())), Needs::Write),
        ("", None, Needs::Admin),
    ];
    assert_placed("SchemaCommand", all.iter().map(|(name, ..)| *name));
    let message = |command| v1::SchemaCommand { graph: graph.to_owned(), command, ..Default::default() };
    let each = all.into_iter();
    each.map(|(name, command, needs)| call(path, name, message(command).encode_to_vec().into(), needs))
        .collect()
}

fn of_shape(path: &str) -> Vec<Call> {
    let look = || v1::RebalanceLook {};
    let all = [
        ("plan", Some(Reshape::Plan(v1::ShapeRequest::default())), Needs::Known),
        ("apply", Some(Reshape::Apply(v1::ShapeRequest::default())), Needs::AdminOfAll),
        ("status", Some(Reshape::Status(look())), Needs::Known),
        ("abort", Some(Reshape::Abort(look())), Needs::AdminOfAll),
        ("resume", Some(Reshape::Resume(look())), Needs::AdminOfAll),
        ("", None, Needs::AdminOfAll),
    ];
    assert_placed("RebalanceRequest", all.iter().map(|(name, ..)| *name));
    let message = |command| v1::RebalanceRequest { command, ..Default::default() };
    let each = all.into_iter();
    each.map(|(name, command, needs)| call(path, name, message(command).encode_to_vec().into(), needs))
        .collect()
}

fn assert_placed(message: &str, placed: impl Iterator<Item = &'static str>) {
    let placed: BTreeSet<&str> = placed.filter(|name| !name.is_empty()).collect();
    assert_eq!(commands(message), placed, "say of each command of {message} who may give it");
}

/// The right that a framed operation about a store needs, and its body; `None`: it is the connection's own, and asks for nothing.
pub fn framed(op: Op, store: &str) -> Option<(Bytes, Needs)> {
    match op {
        Op::Query | Op::MultiGet | Op::MultiGetStream | Op::Compute | Op::ComputeStream | Op::Aggregate => {
            Some((named(store), Needs::Read))
        }
        Op::Write => Some((named(store), Needs::Write)),
        Op::Deliver | Op::Database => Some((named(store), Needs::Cluster)),
        Op::Evaluate => Some((evaluate(store, false), Needs::Read)),
        Op::Ping => Some((Bytes::new(), Needs::Known)),
        Op::Cancel | Op::Credit | Op::Alive | Op::Identify | Op::Share | Op::GiveBack => None,
    }
}
