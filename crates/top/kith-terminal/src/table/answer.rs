//! Answers as text for people.

use super::{Side, count, filled, plan, plural, screen_width, table, time, wrapped};
use crate::reply::GraphReply;
use kith_live::GraphTypes;
use kith_query::{Block, Cell, Column};
use kith_schema::{Field, FieldType, ScalarType, Schema, text_of_time};
use serde_json::value::RawValue;
use std::collections::HashMap;

/// The number of ids of one set that are printed on a terminal; the remaining ones are only counted there. A pipe gets all.
const IDS_SHOWN: usize = 200;

/// Whether the answer has fields of objects or associations, so that the types of the graph say which of them are times.
pub fn has_fields(answer: &GraphReply) -> bool {
    let is_fields = |cell: &Cell| matches!(cell, Cell::Fields { .. });
    let has_fields =
        |block: &Block| matches!(block, Block::Table { rows, .. } if rows.iter().flatten().any(is_fields));
    answer.reply.text().iter().any(has_fields)
}

/// Returns the answer, followed by the missing partitions and the profile. With the types of the graph, times in fields are
/// dates.
pub fn render(answer: &GraphReply, types: Option<&GraphTypes>) -> String {
    render_for(answer, types, screen_width())
}

/// As [`render`], for a terminal of this width; for a pipe without a width.
pub fn render_for(answer: &GraphReply, types: Option<&GraphTypes>, screen: Option<usize>) -> String {
    let mut text: String = answer.reply.text().iter().map(|part| block(part, types, screen)).collect();
    if !answer.is_complete() {
        let missing: Vec<String> = answer.missing_partitions.iter().map(ToString::to_string).collect();
        text += &format!(
            "incomplete: {} did not answer: {}\n",
            plural(missing.len() as u64, "partition"),
            missing.join(", ")
        );
    }
    if let Some(profile) = &answer.profile {
        text += "\n";
        text += &plan::render_for(profile, screen);
    }
    text
}

fn block(block: &Block, types: Option<&GraphTypes>, screen: Option<usize>) -> String {
    match block {
        Block::Line(line) => format!("{line}\n"),
        Block::Count(number) => format!("{}\n", count(*number)),
        Block::Ids { title, ids } => id_set(title, ids, screen),
        Block::Table { columns, rows } => {
            let side = |column: &Column| if column.is_right { Side::Right } else { Side::Left };
            let columns: Vec<(&str, Side)> =
                columns.iter().map(|column| (column.name.as_str(), side(column))).collect();
            table(&columns, rows.iter().map(|row| row.iter().map(|it| cell(it, types)).collect()))
        }
    }
}

fn cell(cell: &Cell, types: Option<&GraphTypes>) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Count(number) => count(*number),
        Cell::Time(ms) => time(*ms),
        Cell::Fields { is_object, kind, json } => {
            let dated = types.and_then(|types| dated(schema(types, *is_object, kind)?, json));
            dated.unwrap_or_else(|| json.clone())
        }
    }
}

fn schema<'a>(types: &'a GraphTypes, is_object: bool, name: &str) -> Option<&'a Schema> {
    let schemas = match is_object {
        true => &types.object(name)?.1.schemas,
        false => &types.association(name)?.1.schemas,
    };
    schemas.last()
}

/// Writes the times among the fields as dates. Returns `None` if there are none, or if the fields are not those of the schema,
/// which may have changed since.
fn dated(schema: &Schema, json: &str) -> Option<String> {
    let is_time = |field: &Field| field.field_type() == FieldType::Scalar(ScalarType::Timestamp);
    if !schema.fields().iter().any(is_time) {
        return None;
    }
    let values: HashMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    let mut fields = Vec::with_capacity(values.len());
    for field in schema.fields() {
        let Some(value) = values.get(field.name()) else { continue };
        let millis = is_time(field).then(|| value.get().parse().ok()).flatten();
        let value = match millis.and_then(text_of_time) {
            Some(date) => format!("\"{date}\""),
            None => value.get().to_owned(),
        };
        fields.push(format!("{}:{value}", serde_json::Value::from(field.name())));
    }
    (fields.len() == values.len()).then(|| format!("{{{}}}", fields.join(",")))
}

fn id_set(what: &str, ids: &[u64], screen: Option<usize>) -> String {
    let shown = if screen.is_some() { IDS_SHOWN.min(ids.len()) } else { ids.len() };
    let mut text = format!("{what}: {}\n", count(ids.len() as u64));
    text += &filled(ids[..shown].iter().map(ToString::to_string), screen);
    if shown < ids.len() {
        let rest = count((ids.len() - shown) as u64);
        let note =
            format!("... and {rest} more: a pipe or -o json gets all, --limit and --after print pages");
        text += &wrapped(&note, screen);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_among_fields_are_dates_and_all_else_stays() {
        let field = |name, scalar| Field::new(name, FieldType::Scalar(scalar)).nullable();
        let fields = vec![
            field("name", ScalarType::Text),
            field("joined", ScalarType::Timestamp),
            field("n", ScalarType::I64),
        ];
        let schema = Schema::new(fields).expect("the schema is valid");
        let dates = |json| dated(&schema, json);
        let all = r#"{"name":"A","joined":1700000000250,"n":1700000000250}"#;
        let text = r#"{"name":"A","joined":"2023-11-14T22:13:20.250Z","n":1700000000250}"#;
        assert_eq!(dates(all).as_deref(), Some(text));
        assert_eq!(dates(r#"{"joined":null,"n":1}"#).as_deref(), Some(r#"{"joined":null,"n":1}"#));
        assert_eq!(
            dates(r#"{"joined":9223372036854775807}"#).as_deref(),
            Some(r#"{"joined":9223372036854775807}"#)
        );
        assert_eq!(dates(r#"{"joined":1,"later":2}"#), None, "a field that the schema does not have");
    }

    #[test]
    fn a_terminal_gets_some_ids_and_a_pipe_gets_all() {
        let ids: Vec<u64> = (1_000..1_500).collect();
        let numbers = |text: &str| -> Vec<u64> {
            text.lines().skip(1).flat_map(|line| line.split(' ')).filter_map(|it| it.parse().ok()).collect()
        };
        let piped = id_set("ids", &ids, None);
        assert_eq!(numbers(&piped), ids);
        let shown = id_set("ids", &ids, Some(60));
        assert_eq!(numbers(&shown)[..IDS_SHOWN], ids[..IDS_SHOWN]);
        assert!(shown.contains("and 300 more") && shown.lines().all(|line| line.len() <= 60), "{shown}");
    }
}
