//! Writes to live graphs on the wire.

use super::live::{text_id_from_wire, text_id_to_wire};
use super::query::{options_from_wire, options_to_wire};
use crate::{QueryError, QueryOptions, Question, Request, WriteOutcome};
use kith_schema::live::{CompletedWrite, Conditions, Mutation, NotATicket, NotAWriteId, Write, WriteId};
use kith_wire::v1::{self, graph_write_request::Mutation as Wire};

/// Encodes a write.
pub fn write_to_wire(graph: &str, write: &Write, options: &QueryOptions) -> v1::GraphWriteRequest {
    v1::GraphWriteRequest {
        graph: graph.to_owned(),
        options: Some(options_to_wire(options)),
        mutation: Some(mutation_to_wire(&write.mutation)),
        if_version: write.conditions.if_version,
        if_exists: write.conditions.if_exists,
        write_id: write.write_id.as_ref().map_or_else(String::new, |id| id.as_str().to_owned()),
        subject: write.write_id.as_ref().map_or_else(String::new, |id| id.subject().to_owned()),
    }
}

fn mutation_to_wire(mutation: &Mutation) -> Wire {
    match mutation.clone() {
        Mutation::AddObject { kind, data, id, near, text_id } => {
            let text_id = text_id.as_ref().map(text_id_to_wire);
            Wire::AddObject(v1::AddObject { r#type: kind, data, id, near, text_id })
        }
        Mutation::UpdateObject { id, data } => Wire::UpdateObject(v1::UpdateObject { id, data }),
        Mutation::DeleteObject { id } => Wire::DeleteObject(v1::DeleteObject { id }),
        Mutation::AddAssociation { id1, kind, id2, time, data } => {
            Wire::AddAssociation(v1::AddAssociation { id1, r#type: kind, id2, time, data })
        }
        Mutation::DeleteAssociation { id1, kind, id2 } => {
            Wire::DeleteAssociation(v1::DeleteAssociation { id1, r#type: kind, id2 })
        }
        Mutation::ChangeType { id1, kind, id2, new_kind } => {
            Wire::ChangeAssociationType(v1::ChangeAssociationType {
                id1,
                r#type: kind,
                id2,
                new_type: new_kind,
            })
        }
    }
}

/// Decodes a write.
///
/// # Errors
/// [`QueryError::Unsupported`] if it has no mutation that this release knows; [`QueryError::BadRequest`] if a field is
/// invalid.
pub fn write_from_wire(wire: v1::GraphWriteRequest) -> Result<Request, QueryError> {
    let unknown = || "the write has no mutation that this release knows".to_owned();
    let mutation = wire.mutation.ok_or_else(|| QueryError::Unsupported { detail: unknown() })?;
    let write_id = Some(wire.write_id).filter(|id| !id.is_empty());
    let write_id = write_id.map(|id| Ok(id.parse::<WriteId>()?.of_subject(wire.subject))).transpose();
    let write = Write {
        mutation: mutation_from_wire(mutation).map_err(|detail| QueryError::BadRequest { detail })?,
        conditions: Conditions { if_version: wire.if_version, if_exists: wire.if_exists },
        write_id: write_id
            .map_err(|error: NotAWriteId| QueryError::BadRequest { detail: error.to_string() })?,
    };
    Ok(Request {
        question: Question::Write { graph: wire.graph, write },
        options: options_from_wire(wire.options.unwrap_or_default())?,
    })
}

fn mutation_from_wire(wire: Wire) -> Result<Mutation, String> {
    Ok(match wire {
        Wire::AddObject(it) => Mutation::AddObject {
            kind: it.r#type,
            data: it.data,
            id: it.id,
            near: it.near,
            text_id: it.text_id.as_ref().map(text_id_from_wire).transpose()?,
        },
        Wire::UpdateObject(it) => Mutation::UpdateObject { id: it.id, data: it.data },
        Wire::DeleteObject(it) => Mutation::DeleteObject { id: it.id },
        Wire::AddAssociation(it) => Mutation::AddAssociation {
            id1: it.id1,
            kind: it.r#type,
            id2: it.id2,
            time: it.time,
            data: it.data,
        },
        Wire::DeleteAssociation(it) => {
            Mutation::DeleteAssociation { id1: it.id1, kind: it.r#type, id2: it.id2 }
        }
        Wire::ChangeAssociationType(it) => {
            Mutation::ChangeType { id1: it.id1, kind: it.r#type, id2: it.id2, new_kind: it.new_type }
        }
    })
}

/// Encodes the outcome of a write.
pub fn written_to_wire(written: WriteOutcome) -> v1::GraphWriteReply {
    let CompletedWrite { id, version, existed } = written.done;
    v1::GraphWriteReply { id, version, existed, ticket: written.ticket.to_string(), profile: written.profile }
}

/// Decodes the outcome of a write.
///
/// # Errors
/// [`QueryError::OutcomeUnknown`] if the ticket is malformed. The write was carried out, but it is unknown where in the
/// log.
pub fn written_from_wire(reply: v1::GraphWriteReply) -> Result<WriteOutcome, QueryError> {
    let ticket = reply
        .ticket
        .parse()
        .map_err(|error: NotATicket| QueryError::OutcomeUnknown { detail: error.to_string() })?;
    let done = CompletedWrite { id: reply.id, version: reply.version, existed: reply.existed };
    Ok(WriteOutcome { done, ticket, profile: reply.profile })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_schema::live::{TextId, TextIdForm};
    use std::time::Duration;

    #[test]
    fn writes_come_back_as_they_went() {
        let (kind, data) = (|| "likes".to_owned(), || Some(r#"{"note":"ä"}"#.to_owned()));
        let mutations = [
            Mutation::AddObject { kind: kind(), data: data(), id: Some(u64::MAX), near: None, text_id: None },
            Mutation::AddObject { kind: kind(), data: None, id: None, near: Some(0), text_id: None },
            Mutation::AddObject {
                kind: kind(),
                data: None,
                id: None,
                near: None,
                text_id: TextId::new(TextIdForm::Uuid, "x").ok(),
            },
            Mutation::UpdateObject { id: 1, data: "{}".to_owned() },
            Mutation::DeleteObject { id: 1 },
            Mutation::AddAssociation { id1: 1, kind: kind(), id2: 2, time: Some(0), data: data() },
            Mutation::AddAssociation { id1: 1, kind: kind(), id2: 2, time: None, data: None },
            Mutation::DeleteAssociation { id1: 1, kind: kind(), id2: 2 },
            Mutation::ChangeType { id1: 1, kind: kind(), id2: 2, new_kind: "loves".to_owned() },
        ];
        let options = QueryOptions { deadline: Some(Duration::from_millis(70)), ..QueryOptions::default() };
        for (index, mutation) in mutations.into_iter().enumerate() {
            let conditions = Conditions { if_version: Some(0), if_exists: [None, Some(false)][index % 2] };
            let named = |text: &str| text.parse::<WriteId>().unwrap().of_subject("ada".to_owned());
            let write_id = (index % 2 == 0).then(|| named("w-1"));
            let write = Write { mutation, conditions, write_id };
            let wire = write_to_wire("social", &write, &options);
            let question = Question::Write { graph: "social".to_owned(), write };
            assert_eq!(write_from_wire(wire), Ok(Request { question, options: options.clone() }));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |wire: v1::GraphWriteRequest| write_from_wire(wire).unwrap_err().code().name();
        assert_eq!(refused(v1::GraphWriteRequest::default()), "unsupported_operation");
        let mutation = Some(Wire::DeleteObject(v1::DeleteObject { id: 1 }));
        let write_id = "two words".to_owned();
        assert_eq!(
            refused(v1::GraphWriteRequest { mutation, write_id, ..Default::default() }),
            "bad_request"
        );
    }
}
