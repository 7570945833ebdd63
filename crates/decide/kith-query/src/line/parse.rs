//! Reads one request line. Operations and fields that this release does not have are refused, and the error names them.

use crate::line::{
    AggregateFields, BatchFields, ComputeFields, GraphLine, ReadOptions, StoreLine, WriteLine,
    WriteOperation, WriteOptions,
    compute::{AGGREGATE, COMPUTE},
    error::{LineError, near_miss},
    gremlin::{GREMLIN, GremlinFields, GremlinLine},
    json::Distinct,
    options::GraphOptions,
    store::{MGET, StoreKeys},
};
use crate::{
    Operation,
    names::{fields_of_variant, names_of},
};
use kith_types::ErrorCode;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The request of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A query of a graph.
    Graph(GraphLine),
    /// A read of keys of a store.
    Batch(StoreLine<BatchFields>),
    /// A computation on records.
    Compute(StoreLine<ComputeFields>),
    /// Counts over records.
    Aggregate(StoreLine<AggregateFields>),
    /// A traversal in Gremlin.
    Gremlin(GremlinLine),
    /// A write to a live graph.
    Write(WriteLine),
}

/// Parses a line of JSON.
///
/// # Errors
/// `unsupported_operation` if this release has no such operation, else `bad_request`.
pub fn parse(line: &str) -> Result<Line, LineError> {
    if line.trim().is_empty() {
        return Err(LineError::bad_request("the line is empty"));
    }
    let mut fields = match serde_json::from_str(line) {
        Ok(Distinct(Value::Object(fields))) => fields,
        Err(error) if error.is_data() => return Err(LineError::bad_request(error.to_string())),
        Ok(_) => return Err(LineError::bad_request("the line is not a JSON object")),
        Err(error) => return Err(LineError::bad_request(format!("the line is not JSON: {error}"))),
    };
    let op = operation_name(fields.remove("op"))?;
    match op.as_str() {
        MGET => Ok(Line::Batch(store_line(&op, fields)?)),
        COMPUTE => Ok(Line::Compute(store_line(&op, fields)?)),
        AGGREGATE => Ok(Line::Aggregate(store_line(&op, fields)?)),
        GREMLIN => Ok(Line::Gremlin(gremlin_line(&op, fields)?)),
        write if names_of::<WriteOperation>().contains(&write) => Ok(Line::Write(write_line(&op, fields)?)),
        _ => Ok(Line::Graph(graph_line(&op, fields)?)),
    }
}

/// Replaces texts of decimal digits in these fields, which hold ids or versions, by the numbers.
fn numbers_of_texts(fields: &mut Map<String, Value>, names: &[&str]) {
    for name in names {
        if let Some(value) = fields.get_mut(*name) {
            number_of_text(value);
        }
    }
}

/// Replaces a text of decimal digits, also in a list, by the number. Leaves everything else to the parser of the field.
fn number_of_text(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(number_of_text),
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            if let Ok(number) = text.parse::<u64>() {
                *value = number.into();
            }
        }
        _ => {}
    }
}

fn write_line(op: &str, mut fields: Map<String, Value>) -> Result<WriteLine, LineError> {
    numbers_of_texts(&mut fields, WriteOperation::ID_FIELDS);
    numbers_of_texts(&mut fields, WriteOptions::ID_FIELDS);
    let names = [fields_of_variant::<WriteOperation>(op), names_of::<WriteOptions>()];
    let [own, options] = split(op, fields, names)?;
    let line = WriteLine {
        operation: read(Value::Object(Map::from_iter([(op.to_owned(), own)])), op)?,
        options: read(options, "")?,
    };
    line.write()?;
    Ok(line)
}

fn gremlin_line(op: &str, fields: Map<String, Value>) -> Result<GremlinLine, LineError> {
    let [own, options] = split(op, fields, [names_of::<GremlinFields>(), names_of::<ReadOptions>()])?;
    Ok(GremlinLine { fields: read(own, "")?, options: read(options, "")? })
}

fn store_line<F: DeserializeOwned>(op: &str, fields: Map<String, Value>) -> Result<StoreLine<F>, LineError> {
    let names = [names_of::<StoreKeys>(), names_of::<F>(), names_of::<ReadOptions>()];
    let [keys, own, options] = split(op, fields, names)?;
    Ok(StoreLine { keys: read(keys, "")?, fields: read(own, "")?, options: read(options, "")? })
}

fn graph_line(op: &str, mut fields: Map<String, Value>) -> Result<GraphLine, LineError> {
    numbers_of_texts(&mut fields, Operation::id_fields(op));
    numbers_of_texts(&mut fields, GraphOptions::ID_FIELDS);
    let own = fields_of_variant::<Operation>(op);
    let names = [own, names_of::<GraphOptions>(), names_of::<ReadOptions>()];
    let [own, options, shared] = split(op, fields, names)?;
    let question = GraphLine {
        operation: read(Value::Object(Map::from_iter([(op.to_owned(), own)])), op)?,
        options: read(options, "")?,
        read: read(shared, "")?,
    };
    question.check()?;
    Ok(question)
}

/// Divides the fields of a line among its parts, by the names of the fields that each part has. Refuses fields that no part
/// has.
fn split<const N: usize>(
    op: &str,
    mut fields: Map<String, Value>,
    names: [&[&str]; N],
) -> Result<[Value; N], LineError> {
    let parts = names.map(|names| names.iter().filter_map(|name| fields.remove_entry(*name)).collect());
    match fields.keys().next() {
        Some(field) => Err(unknown_field(op, field, &names.concat())),
        None => Ok(parts.map(Value::Object)),
    }
}

fn operation_name(op: Option<Value>) -> Result<String, LineError> {
    let graphs = names_of::<Operation>().iter().chain(names_of::<WriteOperation>());
    let known: Vec<&str> = graphs.chain(&[MGET, COMPUTE, AGGREGATE, GREMLIN]).copied().collect();
    match op {
        Some(Value::String(op)) if known.contains(&op.as_str()) => Ok(op),
        Some(Value::String(op)) => {
            let message = format!("there is no operation {op:?}");
            let help = match near_miss(&op, &known) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("operations: {}", known.join(", ")),
            };
            Err(LineError::new(ErrorCode::UnsupportedOperation, message, help))
        }
        Some(_) => Err(LineError::bad_request("field `op`: the name of an operation is a string")),
        None => Err(LineError::bad_request("missing field `op`")),
    }
}

fn unknown_field(op: &str, field: &str, known: &[&str]) -> LineError {
    let help = match near_miss(field, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("fields: {}", known.join(", ")),
    };
    LineError { help, ..LineError::bad_request(format!("operation {op:?} has no field `{field}`")) }
}

/// Reads a request. `within` is the variant around the fields; it is removed from the names of fields in errors.
fn read<T: DeserializeOwned>(value: Value, within: &str) -> Result<T, LineError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let field = path.strip_prefix(within).unwrap_or(&path).trim_start_matches('.').to_owned();
        let cause = in_words_of_json(&error.into_inner().to_string());
        match field.as_str() {
            "" => LineError::bad_request(cause),
            field => LineError::bad_request(format!("field `{field}`: {cause}")),
        }
    })
}

/// Translates an error of serde, which names Rust's types, into terms of JSON, which people who write requests know.
fn in_words_of_json(message: &str) -> String {
    let words = [
        ("expected u64", "expected a whole number from 0 to 18446744073709551615"),
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected a nonzero u32", "expected a whole number from 1 to 4294967295"),
        ("expected a sequence", "expected a list"),
        ("unknown variant", "unknown value"),
    ];
    words.iter().fold(message.to_owned(), |message, (rust, json)| message.replace(rust, json))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests of the operations of graphs do the same with the fields of each.
    #[test]
    fn ids_may_be_texts_in_writes_and_pages() {
        let lines = [
            r#"{"op":"connections","graph":"g","id":#,"after":#}"#,
            r#"{"op":"assoc_range","graph":"g","id1":#,"type":"t","after":[5,#]}"#,
            r#"{"op":"object_add","graph":"g","type":"t","id":#}"#,
            r#"{"op":"object_add","graph":"g","type":"t","near":#}"#,
            r#"{"op":"object_update","graph":"g","id":#,"data":{},"if_version":#}"#,
            r#"{"op":"object_delete","graph":"g","id":#}"#,
            r#"{"op":"assoc_add","graph":"g","id1":#,"type":"t","id2":#}"#,
            r#"{"op":"assoc_delete","graph":"g","id1":#,"type":"t","id2":#}"#,
            r#"{"op":"assoc_change_type","graph":"g","id1":#,"type":"t","id2":#,"new_type":"u"}"#,
        ];
        for line in lines {
            let text = parse(&line.replace('#', "\"9007199254740993\"")).expect(line);
            assert_eq!(text, parse(&line.replace('#', "9007199254740993")).expect(line), "{line}");
        }
        for wrong in [
            "\"\"",
            "\"-1\"",
            "\"+1\"",
            "\" 1\"",
            "\"1.0\"",
            "\"18446744073709551616\"",
            "9007199254740993.5",
        ] {
            parse(&format!(r#"{{"op":"network","graph":"g","id":{wrong}}}"#)).expect_err(wrong);
        }
    }
}
