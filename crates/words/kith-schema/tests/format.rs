//! Golden bytes of a schema and of records under it; `testdata/formats/README.md` lists them. More examples are drawn in
//! `docs/formats/record.md` and `docs/formats/schema.md`, which tests read too.

// The lint exempts functions that are marked as tests, but not the helpers that they call.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use kith_schema::{RecordView, RecordWriter, Schema};
use kith_sim::golden;

/// A field of each kind of type.
const SCHEMA: &str = r#"{"fields":[
    {"name":"yes","type":"bool"},
    {"name":"small","type":"i32","nullable":true},
    {"name":"whole","type":"i64","default":7},
    {"name":"large","type":"u64"},
    {"name":"single","type":"f32"},
    {"name":"double","type":"f64"},
    {"name":"at","type":"timestamp"},
    {"name":"text","type":"text","nullable":true},
    {"name":"bytes","type":"bytes"},
    {"name":"v32","type":"vector<f32,2>"},
    {"name":"v16","type":"vector<f16,2>"},
    {"name":"v8","type":"vector<i8,3>"},
    {"name":"numbers","type":"list<i32>"},
    {"name":"tags","type":"list<text>","default":[]},
    {"name":"counts","type":"map<text,i64>"},
    {"name":"names","type":"map<text,text>"}]}"#;

const FULL: &str = r#"{"yes":true,"small":-5,"whole":9223372036854775807,"large":18446744073709551615,"single":0.5,"double":-1e300,"at":-1,"text":"für alle","bytes":"AP8=","v32":[1.0,-2.0],"v16":[0.5,65504.0],"v8":[-128,0,127],"numbers":[1,-1],"tags":["a","","bc"],"counts":{"a":-1,"bb":2},"names":{"":"x","k":""}}"#;
const EMPTY: &str = r#"{"yes":false,"small":null,"whole":7,"large":0,"single":0.0,"double":0.0,"at":0,"text":null,"bytes":"","v32":[0.0,0.0],"v16":[0.0,0.0],"v8":[0,0,0],"numbers":[],"tags":[],"counts":{},"names":{}}"#;

#[test]
fn a_schema_and_records_by_it() {
    let schema: Schema = SCHEMA.parse().unwrap();
    let text = golden::file("schema.json", schema.canonical().as_bytes());
    let read: Schema = std::str::from_utf8(&text).unwrap().parse().unwrap();
    assert_eq!((&read, read.id()), (&schema, schema.id()));

    let written = |json: &str| {
        let mut out = Vec::new();
        RecordWriter::new(&schema).write_json(json, &mut out).unwrap();
        out
    };
    let made = [("full", FULL), ("empty", EMPTY)].map(|(what, json)| (what.to_owned(), written(json)));
    let comment = format!(
        "Records by schema.json, whose id is\n{}: docs/formats/record.md. The test is\n\
         crates/words/kith-schema/tests/format.rs.",
        schema.id()
    );
    let golden = golden::hex("records.txt", &comment, &made);
    for ((_, bytes), json) in golden.iter().zip([FULL, EMPTY]) {
        let view = RecordView::new(&schema, bytes).unwrap();
        view.verify().unwrap();
        assert_eq!(view.to_json().unwrap(), json);
    }
}

#[test]
fn another_version_of_the_language_is_refused_by_both_numbers() {
    for got in [0, 2] {
        let text =
            format!(r#"{{"kith_schema":{got},"what_is_new":[],"fields":[{{"name":"a","type":"i64"}}]}}"#);
        let error = text.parse::<Schema>().unwrap_err().to_string();
        assert!(error.contains(&format!("version {got}")) && error.contains("version 1"), "{error}");
    }
}
