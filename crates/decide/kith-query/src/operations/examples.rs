//! Tests of what holds for all operations, with their examples: requests and answers come back whole from their messages and
//! lines, and no message lacks an operation.

use super::{Example, GraphAnswer, Operation};
use kith_wire::{
    Message,
    v1::{QueryReply, QueryRequest},
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The greatest number of a field that is looked for in messages.
const FIELD_MAX: u32 = 1_000;
/// The wire type of messages within messages.
const MESSAGE: u32 = 2;

/// A message whose only field has this number and is an empty message.
fn only_field(number: u32) -> [u8; 3] {
    let key = number << 3 | MESSAGE;
    [(key & 0x7f) as u8 | 0x80, (key >> 7) as u8, 0]
}

/// The number of the first field of a message.
fn first_field(message: &[u8]) -> u32 {
    let key = match message {
        [low, high, ..] if 0x80 <= *low => u32::from(low & 0x7f) | u32::from(*high) << 7,
        [key, ..] => u32::from(*key),
        [] => panic!("a message without a field"),
    };
    key >> 3
}

fn operand_of(request: &[u8]) -> bool {
    QueryRequest::decode(request).is_ok_and(|request| request.operand.is_some())
}

fn answer_of(reply: &[u8]) -> bool {
    QueryReply::decode(reply).is_ok_and(|reply| reply.answer.is_some())
}

/// A message that is in the contract and that no operation has could be sent, but not answered.
#[test]
fn every_message_of_the_contract_is_that_of_an_example() {
    let (mut operands, mut answers) = (BTreeSet::new(), BTreeSet::new());
    for example in Operation::examples().iter().flat_map(|(_, examples)| examples) {
        let operand = Some(example.operation().to_message());
        operands.insert(first_field(&QueryRequest { operand, ..Default::default() }.encode_to_vec()));
        let answer = Some(example.answer.to_message());
        answers.insert(first_field(&QueryReply { answer, ..Default::default() }.encode_to_vec()));
    }
    let among = |holds: fn(&[u8]) -> bool| -> BTreeSet<u32> {
        (1..FIELD_MAX).filter(|number| holds(&only_field(*number))).collect()
    };
    assert_eq!(operands, among(operand_of), "the numbers in QueryRequest.operand");
    assert_eq!(answers, among(answer_of), "the numbers in QueryReply.answer");
}

#[test]
fn answers_come_back_from_their_messages_and_are_printed() {
    for (name, examples) in Operation::examples() {
        for Example { line, answer, json } in &examples {
            let operation = Example::new(line, answer.clone(), json).operation();
            assert_eq!(operation.name(), name, "{line}");
            let decoded = GraphAnswer::from_message(answer.to_message(), operation.wants_ids());
            assert_eq!(decoded.as_ref(), Ok(answer), "{line}");
            let view = operation.view(answer.clone()).expect(line);
            assert_eq!(serde_json::to_string(&view).expect(line), *json, "{line}");
            assert!(!view.text().is_empty(), "{line} is printed as nothing");
        }
    }
}

#[cfg(feature = "flags")]
mod lines {
    use super::*;
    use crate::{
        Question, Request,
        convert::{query_from_wire, query_to_wire},
        line::{GraphLine, Line, parse, request_json},
    };

    fn read(line: &str) -> GraphLine {
        match parse(line) {
            Ok(Line::Graph(read)) => read,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn requests_come_back_from_their_lines_and_messages() {
        for example in Operation::examples().iter().flat_map(|(_, examples)| examples) {
            let (line, read) = (example.line, read(example.line));
            let (query, options) = (read.query(), read.query_options());
            let message = query_to_wire(&read.options.graph, &query, &options);
            let message = QueryRequest::decode(message.encode_to_vec().as_slice()).expect(line);
            let request = query_from_wire(message).expect(line);
            let Question::Graph { query: decoded, .. } = &request.question else { panic!("{line}") };
            assert_eq!(*decoded, query, "{line}");
            assert_eq!(request_json(&request), Some(Value::Object(example.fields())), "{line}");
            let sent = Request { question: request.question.clone(), options };
            assert_eq!(request_json(&sent), Some(Value::Object(example.fields())), "{line}");
        }
    }

    /// Otherwise a field that is lost on the way would not be missed.
    #[test]
    fn examples_have_every_field_and_page() {
        for (signature, (name, examples)) in Operation::signatures().iter().zip(Operation::examples()) {
            assert_eq!(signature.operation, name);
            let given: Vec<Map<String, Value>> = examples.iter().map(Example::fields).collect();
            for parameter in &signature.parameters {
                let is_given = given.iter().any(|fields| fields.contains_key(parameter.name));
                assert!(is_given, "no example of {} has `{}`", name.name(), parameter.name);
            }
        }
    }

    #[test]
    fn ids_may_be_texts() {
        for (name, examples) in Operation::examples() {
            for example in examples {
                let (mut fields, ids) = (example.fields(), example.operation().ids());
                let id_fields = Operation::id_fields(name.name());
                for (field, value) in &mut fields {
                    let is_id = value.as_u64().is_some_and(|number| ids.contains(&number));
                    assert!(!is_id || id_fields.contains(&field.as_str()), "{}: `{field}`", example.line);
                    if id_fields.contains(&field.as_str()) {
                        to_texts(value);
                    }
                }
                let texts = Value::Object(fields).to_string();
                assert_eq!(read(&texts), read(example.line), "{texts}");
            }
        }
    }

    fn to_texts(value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(to_texts),
            number => *number = Value::from(number.to_string()),
        }
    }
}
