//! Texts of schemas, and schemas that are inferred from rows.

use super::Seed;
use kith_build::rows::Inference;
use kith_schema::{Field, FieldType, Projection, Schema, SchemaId, compatible};

/// Input: the text of a schema.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let _ = text.parse::<FieldType>().map(|field_type| {
        assert_eq!(field_type.to_string().parse(), Ok(field_type));
    });
    let _ = text.parse::<SchemaId>().map(|id| assert_eq!(id.to_string().parse(), Ok(id)));
    match text.parse::<Schema>() {
        Ok(schema) => same(&schema),
        Err(fault) => assert!(fault.to_string().len() < 16 * text.len() + 1_024, "{fault}"),
    }
}

/// The canonical text of a schema is the same schema, which may follow the original.
fn same(schema: &Schema) {
    let again: Schema = schema.canonical().parse().expect("a canonical text is a schema");
    assert_eq!(again.canonical(), schema.canonical());
    assert_eq!(again.id(), schema.id());
    for (index, field) in schema.fields().iter().enumerate() {
        assert_eq!(schema.index_of(field.name()), Some(index));
    }
    assert_eq!(compatible(schema, &again), Ok(Vec::new()), "{schema}");
    Projection::resolve(schema, &again).expect("records of a schema are records of it");
}

/// Input: rows as lines of JSON.
pub fn infer(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut inference = Inference::new();
    for (number, line) in text.lines().enumerate() {
        if inference.observe_json(&number, line, Some("key")).is_err() {
            return;
        }
    }
    let rows = inference.rows();
    assert!(rows <= text.lines().count() as u64);
    if let Ok(schema) = inference.finish() {
        same(&schema);
        for line in text.lines() {
            super::records::round_trip(&without_key(&schema), line);
        }
    }
}

/// The schema with the field `key`, which inference skips.
fn without_key(schema: &Schema) -> Schema {
    let key = schema.index_of("key").is_none().then(|| Field::new("key", text()).nullable());
    Schema::new(schema.fields().iter().cloned().chain(key).collect()).unwrap_or_else(|_| schema.clone())
}

fn text() -> FieldType {
    "text".parse().expect("a type of ours")
}

pub fn seeds() -> Vec<Seed> {
    let of = |text: &str| text.as_bytes().to_vec();
    vec![
        ("plain", of(PLAIN)),
        ("defaults", of(DEFAULTS)),
        ("canonical", of(DEFAULTS.parse::<Schema>().expect("a schema").canonical())),
        ("type", of(" vector< f16 , 64 > ")),
        ("misspelt", of(r#"{"fields":[{"name":"a","type":"text","nulable":true}]}"#)),
        ("twice", of(r#"{"fields":[{"name":"a","type":"i64"},{"name":"a","type":"i64"}]}"#)),
        ("no-default-of-its-type", of(r#"{"fields":[{"name":"a","type":"i32","default":3000000000}]}"#)),
        ("nested-too-deep", of(&format!("{{\"fields\":{}", "[{\"fields\":".repeat(200)))),
    ]
}

/// A schema with a field of every type.
pub const PLAIN: &str = r#"{"fields":[{"name":"is","type":"bool"},{"name":"i","type":"i32","nullable":true},{"name":"l","type":"i64"},{"name":"u","type":"u64"},{"name":"f","type":"f32"},{"name":"d","type":"f64","nullable":true},{"name":"t","type":"text"},{"name":"b","type":"bytes","nullable":true},{"name":"at","type":"timestamp"},{"name":"v","type":"vector<f16,3>"},{"name":"n","type":"list<i64>"},{"name":"w","type":"list<text>","nullable":true},{"name":"m","type":"map<text,f64>"},{"name":"s","type":"map<text,text>"}]}"#;

/// A schema with defaults that can be spelled in several ways.
const DEFAULTS: &str = r#"{"kith_schema":1,"fields":[{"name":"f","type":"f32","default":-0.0},{"name":"v","type":"vector<f16,2>","default":[0.1,65504.0]},{"name":"i8","type":"vector<i8,1>","default":[-128]},{"name":"m","type":"map<text,bytes>","default":{"b":"AQ==","a":""}},{"name":"l","type":"list<text>","nullable":true,"default":["\u0000","ü"]},{"name":"at","type":"timestamp","default":-1},{"name":"u","type":"u64","default":18446744073709551615}]}"#;

pub fn infer_seeds() -> Vec<Seed> {
    let rows = |text: &str| text.as_bytes().to_vec();
    vec![
        (
            "rows",
            rows(
                "{\"key\":1,\"a\":1,\"b\":[1,2.5],\"c\":{\"x\":\"y\"}}\n{\"key\":2,\"a\":null,\"d\":true}\n",
            ),
        ),
        ("numbers", rows("{\"a\":1}\n{\"a\":18446744073709551615}\n")),
        ("wider", rows("{\"a\":1}\n{\"a\":1.5}\n{\"a\":-0.0}\n")),
        ("conflict", rows("{\"a\":1}\n{\"a\":\"one\"}\n")),
        ("twice", rows("{\"a\":1,\"a\":2}\n")),
        ("nested-too-deep", rows(&format!("{{\"a\":{}", "[".repeat(300)))),
    ]
}
