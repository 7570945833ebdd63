//! Says for each error what to do.

use super::{KEY_COUNT, QueryError};
use crate::OperationError;
use kith_schema::compute::ComputeError;
use kith_schema::live::{Refusal, WriteFault};
use kith_types::QuotaRefusal;

const SEE_FIELDS: &str =
    "see docs/queries.md for the fields of each operation, and docs/live-graph.md for those of writes";
const RECORDS_ONLY: &str = "only stores of records can be worked on: kith store create NAME --value record";
const UPDATE_OR_CLIENT: &str = "update the cluster; `\"at\":\"client\"` works it out here";
const REPORT_IT: &str = "this is a defect of Kith: please report it with the log";
const LIVE_ONLY: &str =
    "ask a live graph, which `kith schema apply` creates, or omit what only live graphs have";
const OTHER_TICKET: &str = "give the tickets of writes to the graph that is asked";
const SEND_AGAIN: &str =
    "send it again with the same write_id, which returns the first outcome; without one, read what is stored";
const LOOK_FIRST: &str =
    "its changes stay: look at what is stored, and repeat only what is missing (docs/gremlin.md)";
const STILL_FETCHED: &str = "nodes are still fetching it: try again, or look at `kith cluster status`";
const MORE_TIME: &str = "give the query more time (deadline_ms), or look at its plan with `kith explain`";
const ALLOW_PARTIAL: &str =
    "look at `kith cluster status`; partial answers are allowed with \"partial\":true";

impl QueryError {
    /// Advice on what to do about it.
    pub fn help(&self) -> String {
        match self {
            QueryError::Operation(error) => operation_help(error),
            QueryError::NotShown { .. } => not_shown_help(),
            QueryError::Lookup(error) => error.help(),
            QueryError::LoadedGraph { .. } => LIVE_ONLY.to_owned(),
            QueryError::WrongTicket { .. } | QueryError::MixedTickets => OTHER_TICKET.to_owned(),
            QueryError::UnknownGroup { known, .. } => groups_help(known),
            QueryError::OtherPosition { .. } => "ask again".to_owned(),
            QueryError::WrongKeys { .. } => {
                "ids are numbers, strings are text, bytes are base64 (docs/queries.md)".to_owned()
            }
            QueryError::BatchTooLarge { what: KEY_COUNT, max, .. }
                if *max == crate::BATCH_KEYS_MAX as u64 =>
            {
                "ask in several batches; routers take no more than their keys-max, 100000 by default".to_owned()
            }
            QueryError::BatchTooLarge { .. } | QueryError::TooLarge { .. } => {
                "ask in several batches".to_owned()
            }
            QueryError::Damaged { .. } => {
                "push the version again, or roll back; \"partial\":true answers the other keys".to_owned()
            }
            QueryError::Disagreement { .. } => {
                "kith store verify --deep says which replica is wrong; \"partial\":true answers the other keys".to_owned()
            }
            QueryError::SchemaUnavailable { .. } => {
                "read again: the version may have gone meanwhile; look at `kith cluster status`".to_owned()
            }
            QueryError::Compute(error) => compute_help(error),
            QueryError::NotRecords { .. } => RECORDS_ONLY.to_owned(),
            QueryError::Unsupported { .. } => UPDATE_OR_CLIENT.to_owned(),
            QueryError::UnknownPolicy { known, .. } => format!("policies: {}", known.join(", ")),
            QueryError::BadRequest { .. } => SEE_FIELDS.to_owned(),
            QueryError::DeadlineExceeded { .. } => MORE_TIME.to_owned(),
            QueryError::PartitionsUnavailable { .. } => ALLOW_PARTIAL.to_owned(),
            QueryError::VersionUnavailable { .. } => STILL_FETCHED.to_owned(),
            QueryError::Overloaded { .. } => "send less, or add a router or a replica group".to_owned(),
            QueryError::QuotaExceeded(QuotaRefusal { store, kind, retry_after_ms, .. }) => format!(
                "ask again in {retry_after_ms} ms; `kith store alter {store} --read-quota-{}` allows more",
                kind.name()
            ),
            QueryError::Unreachable { .. } => {
                "is the cluster running (`kith dev`)? name another router with --router".to_owned()
            }
            QueryError::NodeUnreachable { .. } => {
                "is it running, and can this machine reach it? look at `kith cluster status`".to_owned()
            }
            QueryError::Tls { help, .. } => (*help).to_owned(),
            QueryError::Write(fault) => write_help(fault),
            QueryError::Refused(refusal) => refusal_help(refusal).to_owned(),
            QueryError::WriteIdTaken { .. } => "give each write a write_id of its own".to_owned(),
            QueryError::NotLeader { .. } => "send the write again: leadership has moved".to_owned(),
            QueryError::OutcomeUnknown { .. } => SEND_AGAIN.to_owned(),
            QueryError::PartlyWritten { .. } => LOOK_FIRST.to_owned(),
            QueryError::Remote { help, .. } => help.clone(),
            QueryError::Internal { .. } => REPORT_IT.to_owned(),
        }
    }
}

fn not_shown_help() -> String {
    let seconds = kith_schema::live::STALE_MAX.as_secs();
    format!(
        "check the id: it must be the id of an object, or of an object from which associations lead; {}",
        shown_within(seconds)
    )
}

fn groups_help(known: &[u32]) -> String {
    let known: Vec<String> = known.iter().map(u32::to_string).collect();
    format!("groups: {}", known.join(", "))
}

fn write_help(fault: &WriteFault) -> String {
    match fault {
        WriteFault::Type(fault) => fault.help(),
        _ => "see docs/live-graph.md for what each write takes".to_owned(),
    }
}

fn refusal_help(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::ObjectExists { .. } => {
            "leave the id out to get a new one, or update the object; if the write had no id, use another write_id"
        }
        Refusal::UniqueTaken { .. } => {
            "use another value, or update or delete the object that has it; to send the write again, use another write_id"
        }
        _ => "read it again, and decide on its new state",
    }
}

fn compute_help(error: &ComputeError) -> String {
    match error {
        ComputeError::UnknownField { .. } | ComputeError::UnknownScore { .. } => {
            "`kith get STORE KEY -o json` shows the fields of a record".to_owned()
        }
        ComputeError::Dimensions { want, .. } => format!("give a query of {want} numbers"),
        _ => "see docs/queries.md for what works on which fields".to_owned(),
    }
}

/// The sentence that says when a read shows a write.
fn shown_within(seconds: u64) -> String {
    format!(
        "reads show a write within {seconds} seconds, and at once if they have its ticket (\"ticket\", --ticket) or are critical \
         (\"critical\":true, --critical)"
    )
}

fn operation_help(error: &OperationError) -> String {
    match error {
        OperationError::MemberNotFound { .. } => {
            "check the id; a loaded graph has the members of its edges and of the files given with --entities and \
             --members, a live graph has its objects and the ids that associations leave"
                .to_owned()
        }
        OperationError::EntityNotFound { .. } => "check the entity id and its kind".to_owned(),
        OperationError::UnknownEdgeType { known, .. } => format!("edge types: {}", known.join(", ")),
        OperationError::UnknownKind { known, .. } if known.is_empty() => {
            "the graph has no kinds of entities; live graphs never have any".to_owned()
        }
        OperationError::UnknownKind { known, .. } => format!("kinds: {}", known.join(", ")),
        OperationError::NoEdgeType => "load one: kith load graph EDGES --graph NAME".to_owned(),
        OperationError::DirectionNotKept { .. } => {
            "leave the direction out, or load it with --directed".to_owned()
        }
        OperationError::OneSided { .. } => {
            "use a type that is declared with `inverse` or `symmetric`: see docs/live-graph.md".to_owned()
        }
        OperationError::UnknownColumn { known, .. } if known.is_empty() => {
            "columns are kept that the load names: kith load graph EDGES --columns NAME".to_owned()
        }
        OperationError::UnknownColumn { known, .. } => format!("columns: {}", known.join(", ")),
        OperationError::RepeatedColumn { .. } => "name each column once".to_owned(),
        OperationError::BothDirections { .. } => "give the direction \"out\" or \"in\"".to_owned(),
        OperationError::NotOfKind { .. } => {
            "columns of kind time and u64 hold whole numbers from 0, i64 whole numbers, f64 any number"
                .to_owned()
        }
        OperationError::OtherCursor => {
            "repeat the query that the cursor came from; only its columns and limit may change".to_owned()
        }
        OperationError::CursorExpired { .. } => "begin again without \"after\"".to_owned(),
        OperationError::TooLarge { .. } => "ask for fewer at once".to_owned(),
        OperationError::OutOfRange { what: "number of targets", got, .. } => match got {
            0 => "name a target".to_owned(),
            _ => "ask in several queries".to_owned(),
        },
        OperationError::OutOfRange { what: "pos", .. } => {
            "go on from there with `after`: the time and the id2 of the last association".to_owned()
        }
        OperationError::OutOfRange { .. } => "see docs/queries.md for what each query takes".to_owned(),
        _ => "this is a defect of Kith: please report it with the log".to_owned(),
    }
}
