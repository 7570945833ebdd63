//! Reads of live graphs: the tickets that every query of a graph may carry, and the commands `kith object` and
//! `kith assoc`.

use crate::{
    AssocCountQuery, AssocGetQuery, AssocRangeQuery, AssocTimeRangeQuery, ObjectFindQuery, ObjectGetQuery,
    Operation,
    line::{Operations, error::LineError},
};
use clap::Subcommand;
use kith_schema::live::Ticket;
use kith_types::ErrorCode;
use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// The operations of `kith object`.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum ObjectOperation {
    /// Print objects by their ids
    Get(ObjectGetQuery),
    /// Print the ids of objects that have a value in a field with an index
    Find(ObjectFindQuery),
}

/// The operations of `kith assoc`.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum AssocOperation {
    /// Print the associations of an object that lead to certain objects
    Get(AssocGetQuery),
    /// Print how many associations of a type leave an object
    Count(AssocCountQuery),
    /// Print the associations of an object from a place in their list on, newest first
    Range(AssocRangeQuery),
    /// Print the associations of an object whose time lies in a range, newest first
    TimeRange(AssocTimeRangeQuery),
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
            ObjectOperation::Get(ObjectGetQuery { ids, .. }) => {
                let is_single = ids.len() == 1;
                Operation::ObjectGet(ObjectGetQuery { ids, is_single })
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
    use kith_schema::live::Ticket;
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
