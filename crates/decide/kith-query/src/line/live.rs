//! Reads of live graphs: their fields, the tickets that every query of a graph may carry, and the commands `kith object` and
//! `kith assoc`.

use crate::{
    Operand,
    line::{Operation, Operations, error::LineError},
};
use clap::{Args, Subcommand};
use kith_live::{AssociationRead, Select, Start, Ticket};
use kith_types::ErrorCode;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::Value;

/// The operations of `kith object`.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum ObjectOperation {
    /// Print objects by their ids
    Get(ObjectGet),
    /// Print the ids of objects that have a value in a field with an index
    Find(ObjectFind),
}

/// The operations of `kith assoc`.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum AssocOperation {
    /// Print the associations of an object that lead to certain objects
    Get(AssocGet),
    /// Print how many associations of a type leave an object
    Count(AssocCount),
    /// Print the associations of an object from a place in their list on, newest first
    Range(AssocRange),
    /// Print the associations of an object whose time lies in a range, newest first
    TimeRange(AssocTimeRange),
}

#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectGet {
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// The objects
    #[arg(required = true, value_name = "ID")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ids: Option<Vec<u64>>,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectFind {
    /// The object type
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(rename = "type")]
    kind: String,
    /// A field that has an index
    #[arg(long, value_name = "FIELD")]
    field: String,
    /// The value as JSON; a text that is not JSON needs no quotes
    #[arg(long, value_name = "VALUE", value_parser = json_or_text, required = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<Vec<Value>>,
}

/// Fields of a read of one list of associations: which list it is, and the fields of the read itself.
macro_rules! of_list {
    (pub struct $name:ident { $($fields:tt)* }) => {
        #[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The object that the associations leave
            #[arg(long, value_name = "ID")]
            id1: u64,
            /// The association type
            #[arg(long = "type", value_name = "TYPE")]
            #[serde(rename = "type")]
            kind: String,
            $($fields)*
        }
    };
}

/// The same for a read that returns entries: also what is returned of each.
macro_rules! of_entries {
    (pub struct $name:ident { $($fields:tt)* }) => {
        of_list! {
            pub struct $name {
                $($fields)*
                /// Print their fields too
                #[arg(long)]
                #[serde(default, skip_serializing_if = "std::ops::Not::not")]
                with_data: bool,
                /// Print their versions too, for `--if-version` of writes
                #[arg(long)]
                #[serde(default, skip_serializing_if = "std::ops::Not::not")]
                with_versions: bool,
            }
        }
    };
}

of_entries! {
    pub struct AssocGet {
        /// The objects that they lead to, separated by commas
        #[arg(long, required = true, value_name = "ID,ID", value_delimiter = ',')]
        ids: Vec<u64>,
        /// Only those whose time is not above this one
        #[arg(long, value_name = "TIME")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        high: Option<u64>,
        /// Only those whose time is not below this one
        #[arg(long, value_name = "TIME")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        low: Option<u64>,
    }
}

of_list! {
    pub struct AssocCount {}
}

of_entries! {
    pub struct AssocRange {
        /// How many of the newest associations to skip [default: 0]
        #[arg(long, value_name = "N")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pos: Option<u64>,
    }
}

of_entries! {
    pub struct AssocTimeRange {
        /// Only those whose time is not above this one
        #[arg(long, value_name = "TIME")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        high: Option<u64>,
        /// Only those whose time is not below this one
        #[arg(long, value_name = "TIME")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        low: Option<u64>,
    }
}

impl Operations for ObjectOperation {
    const FOLLOWS_EDGES: bool = false;
}

impl Operations for AssocOperation {
    const FOLLOWS_EDGES: bool = false;
}

impl From<ObjectOperation> for Operation {
    fn from(operation: ObjectOperation) -> Self {
        match operation {
            ObjectOperation::Get(ObjectGet { ids, .. }) => {
                let ids = ids.unwrap_or_default();
                let is_single = ids.len() == 1;
                Operation::ObjectGet(ObjectGet::of(ids, is_single))
            }
            ObjectOperation::Find(find) => Operation::ObjectFind(find),
        }
    }
}

impl From<AssocOperation> for Operation {
    fn from(operation: AssocOperation) -> Self {
        match operation {
            AssocOperation::Get(get) => Operation::AssocGet(get),
            AssocOperation::Count(count) => Operation::AssocCount(count),
            AssocOperation::Range(range) => Operation::AssocRange(range),
            AssocOperation::TimeRange(range) => Operation::AssocTimeRange(range),
        }
    }
}

/// Returns the operation that reads associations like this. The page is among the options, not in the operation.
pub(crate) fn operation(id1: u64, read: AssociationRead) -> Operation {
    let AssociationRead { kind, select, with_data, with_versions } = read;
    match select {
        Select::Ids { ids, high, low } => {
            Operation::AssocGet(AssocGet { id1, kind, ids, high, low, with_data, with_versions })
        }
        Select::Count => Operation::AssocCount(AssocCount { id1, kind }),
        Select::Range { start, .. } => {
            let pos = match start {
                Start::Index(0) | Start::After(_) => None,
                Start::Index(index) => Some(index),
            };
            Operation::AssocRange(AssocRange { id1, kind, pos, with_data, with_versions })
        }
        Select::Times { high, low, .. } => {
            Operation::AssocTimeRange(AssocTimeRange { id1, kind, high, low, with_data, with_versions })
        }
    }
}

impl ObjectGet {
    pub(crate) fn of(ids: Vec<u64>, is_single: bool) -> Self {
        match (is_single, ids.as_slice()) {
            (true, &[id]) => Self { id: Some(id), ids: None },
            _ => Self { id: None, ids: Some(ids) },
        }
    }

    /// Refuses a read that names no object, or names them in two ways.
    pub(crate) fn check(&self) -> Result<(), LineError> {
        match (&self.id, &self.ids) {
            (None, None) => Err(LineError::bad_request("missing field `id` or `ids`")),
            (Some(_), Some(_)) => Err(LineError::bad_request("give `id` or `ids`, not both")),
            _ => Ok(()),
        }
    }

    pub(crate) fn operand(self) -> Operand {
        match self.id {
            Some(id) => Operand::Objects { ids: vec![id], is_single: true },
            None => Operand::Objects { ids: self.ids.unwrap_or_default(), is_single: false },
        }
    }
}

impl ObjectFind {
    pub(crate) fn of(find: kith_live::ObjectFind) -> Self {
        let kith_live::ObjectFind { kind, field, values, .. } = find;
        // Requests of programs may have values that are not JSON, which nodes refuse.
        let value = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()));
        let mut values: Vec<Value> = values.iter().map(value).collect();
        match values.len() {
            1 => Self { kind, field, value: values.pop(), values: None },
            _ => Self { kind, field, value: None, values: Some(values) },
        }
    }

    /// Refuses a read that has no value, or has values in two ways.
    pub(crate) fn check(&self) -> Result<(), LineError> {
        match (&self.value, &self.values) {
            (None, None) => {
                Err(LineError::bad_request("missing field `value` or `values`, and null cannot be looked up"))
            }
            (Some(_), Some(_)) => Err(LineError::bad_request("give `value` or `values`, not both")),
            _ => Ok(()),
        }
    }

    pub(crate) fn operand(self) -> Operand {
        let Self { kind, field, value, values } = self;
        let values = value.into_iter().chain(values.into_iter().flatten());
        let values = values.map(|value| value.to_string()).collect();
        Operand::Find(kith_live::ObjectFind { kind, field, values, after: None, limit: None })
    }
}

/// Reads a value of the command line.
fn json_or_text(text: &str) -> Result<Value, std::convert::Infallible> {
    Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
}

impl AssocGet {
    pub(crate) fn operand(self) -> Operand {
        let Self { id1, kind, ids, high, low, with_data, with_versions } = self;
        let select = Select::Ids { ids, high, low };
        Operand::Associations { id1, read: AssociationRead { kind, select, with_data, with_versions } }
    }
}

impl AssocCount {
    pub(crate) fn operand(self) -> Operand {
        let Self { id1, kind } = self;
        let read = AssociationRead { kind, select: Select::Count, with_data: false, with_versions: false };
        Operand::Associations { id1, read }
    }
}

impl AssocRange {
    /// Whether the read specifies the index to begin with.
    pub(crate) fn has_pos(&self) -> bool {
        self.pos.is_some()
    }

    pub(crate) fn operand(self) -> Operand {
        let Self { id1, kind, pos, with_data, with_versions } = self;
        let select = Select::Range { start: Start::Index(pos.unwrap_or(0)), limit: None };
        Operand::Associations { id1, read: AssociationRead { kind, select, with_data, with_versions } }
    }
}

impl AssocTimeRange {
    pub(crate) fn operand(self) -> Operand {
        let Self { id1, kind, high, low, with_data, with_versions } = self;
        let select = Select::Times { high, low, limit: None };
        Operand::Associations { id1, read: AssociationRead { kind, select, with_data, with_versions } }
    }
}

/// Refuses tickets of more than one graph.
pub(crate) fn check_tickets(tickets: &[Ticket]) -> Result<(), LineError> {
    match tickets.windows(2).all(|pair| pair[0].graph == pair[1].graph) {
        true => Ok(()),
        false => Err(LineError::new(
            ErrorCode::WrongTicket,
            "the tickets belong to different graphs",
            "give the tickets of writes to the graph that is asked",
        )),
    }
}

/// Returns the ticket that requires everything that these tickets require. All of them belong to one graph: see
/// [`check_tickets`].
pub(crate) fn merged(tickets: &[Ticket]) -> Option<Ticket> {
    let (first, rest) = tickets.split_first()?;
    let mut merged = first.clone();
    rest.iter().filter(|ticket| ticket.graph == first.graph).for_each(|ticket| merged.merge(ticket));
    Some(merged)
}

/// Reads one ticket or a list of tickets.
pub(crate) fn read_tickets<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Ticket>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a ticket or a list of tickets")]
    enum Given {
        One(String),
        Many(Vec<String>),
    }
    let texts = match Given::deserialize(input)? {
        Given::One(text) => vec![text],
        Given::Many(texts) => texts,
    };
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

/// Writes tickets in the form that [`read_tickets`] reads.
pub(crate) fn write_tickets<S: Serializer>(tickets: &Vec<Ticket>, output: S) -> Result<S::Ok, S::Error> {
    match tickets.as_slice() {
        [ticket] => output.collect_str(ticket),
        tickets => output.collect_seq(tickets.iter().map(Ticket::to_string)),
    }
}

#[cfg(test)]
mod tests {
    use crate::line::{Line, parse, request_json};
    use crate::{Question, Request};
    use kith_live::Ticket;
    use kith_types::{ErrorCode, LogPoint, PartitionId};
    use serde_json::{Value, json};

    /// Returns the recorded line of a request that was parsed from a line.
    fn recorded(line: &Value) -> Value {
        let Ok(Line::Graph(read)) = parse(&line.to_string()) else { panic!("{line}") };
        let question = Question::Graph { graph: read.options.graph.clone(), query: read.query() };
        request_json(&Request { question, options: read.query_options() }).unwrap()
    }

    fn ticket(graph: u64) -> String {
        let mut ticket = Ticket::new(graph);
        ticket.require(PartitionId(3), LogPoint::new(1, 9));
        ticket.to_string()
    }

    #[test]
    fn reads_of_live_graphs_are_recorded_as_the_lines_that_they_came_from() {
        let last = u64::MAX;
        for line in [
            json!({"op": "object_get", "graph": "g", "id": 5}),
            json!({"op": "object_get", "graph": "g", "ids": [5], "critical": true, "group": 0}),
            json!({"op": "object_get", "graph": "g", "ids": [], "ticket": ticket(7)}),
            json!({"op": "object_find", "graph": "g", "type": "person", "field": "name", "value": "Ada", "limit": 3}),
            json!({"op": "object_find", "graph": "g", "type": "person", "field": "born", "value": last, "after": 9}),
            json!({"op": "object_find", "graph": "g", "type": "person", "field": "rate", "values": [0.5, true, "1"]}),
            json!({"op": "assoc_get", "graph": "g", "id1": 5, "type": "likes", "ids": [last], "high": last, "low": 0}),
            json!({"op": "assoc_count", "graph": "g", "id1": 5, "type": "likes"}),
            json!({"op": "assoc_range", "graph": "g", "id1": 5, "type": "likes", "pos": 3, "limit": 2}),
            json!({"op": "assoc_range", "graph": "g", "id1": 5, "type": "likes", "after": [last, 9], "with_data": true}),
            json!({"op": "assoc_time_range", "graph": "g", "id1": 5, "type": "likes", "low": 4, "with_versions": true}),
            json!({"op": "connections", "graph": "g", "id": 5, "ticket": ticket(7), "group": 1}),
        ] {
            assert_eq!(recorded(&line), line);
        }
    }

    #[test]
    fn several_tickets_are_one() {
        let line = json!({"op": "object_get", "graph": "g", "id": 5, "ticket": [ticket(7), ticket(7)]});
        assert_eq!(recorded(&line)["ticket"], json!(ticket(7)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |fields: Value| {
            let mut line = json!({"graph": "g"});
            for (name, value) in fields.as_object().unwrap() {
                line[name] = value.clone();
            }
            let error = parse(&line.to_string()).unwrap_err();
            (error.code, error.message + " / " + &error.help)
        };
        let range = |name: &str, value: Value| {
            let mut line = json!({"op": "assoc_range", "id1": 1, "type": "likes", "pos": 1});
            line[name] = value;
            line
        };
        for (fields, code, said) in [
            (json!({"op": "object_get"}), ErrorCode::BadRequest, "missing field `id` or `ids`"),
            (json!({"op": "object_get", "id": 1, "ids": [1]}), ErrorCode::BadRequest, "not both"),
            (
                json!({"op": "object_find", "type": "a", "field": "b"}),
                ErrorCode::BadRequest,
                "`value` or `values`",
            ),
            (json!({"op": "object_find", "type": "a", "value": 1}), ErrorCode::BadRequest, "`field`"),
            (json!({"op": "object_get", "id": 1, "limit": 1}), ErrorCode::BadRequest, "`limit`"),
            (json!({"op": "object_gett", "id": 1}), ErrorCode::UnsupportedOperation, "object_get"),
            (range("tpye", json!("likes")), ErrorCode::BadRequest, "did you mean `type`?"),
            (range("after", json!([1, 2])), ErrorCode::BadRequest, "`pos` or `after`, not both"),
            (range("after", json!(7)), ErrorCode::BadRequest, "[time, id2]"),
            (range("edge_type", json!("likes")), ErrorCode::BadRequest, "`edge_type`"),
            (range("ticket", json!("AAAA")), ErrorCode::BadRequest, "not one that a write returned"),
            (range("ticket", json!([ticket(7), ticket(8)])), ErrorCode::WrongTicket, "different graphs"),
            (json!({"op": "connections", "id": 1, "after": [1, 2]}), ErrorCode::BadRequest, "`after`"),
        ] {
            let (got, message) = refused(fields.clone());
            assert!(got == code && message.contains(said), "{fields}: {got} {message}");
        }
    }
}
