//! The allowed changes of a schema, and reading records of one schema under another.

#![allow(clippy::unwrap_used)]

use kith_schema::{Change, Projection, RecordView, RecordWriter, Schema, compatible};

fn schema(fields: &[&str]) -> Schema {
    let fields: Vec<String> = fields
        .iter()
        .map(|field| {
            let (name, rest) = field.split_once(':').unwrap();
            let (field_type, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let more = match rest.split_once('=') {
                _ if rest == "?" => ",\"nullable\":true".to_owned(),
                Some((nullable, default)) => {
                    let nullable = if nullable == "?" { ",\"nullable\":true" } else { "" };
                    format!("{nullable},\"default\":{default}")
                }
                None => String::new(),
            };
            format!("{{\"name\":\"{name}\",\"type\":\"{field_type}\"{more}}}")
        })
        .collect();
    format!("{{\"fields\":[{}]}}", fields.join(",")).parse().unwrap()
}

fn refusal(old: &[&str], new: &[&str]) -> String {
    compatible(&schema(old), &schema(new)).unwrap_err().to_string()
}

#[test]
fn allowed_changes_are_reported() {
    let old = schema(&["a:i32", "b:text", "c:f32", "d:bool"]);
    let new = schema(&["c:f64", "a:i64", "d:bool ?", "e:text ?", "f:i32 =4"]);
    let changes: Vec<String> = compatible(&old, &new).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        changes,
        [
            "field \"c\" was f32 and is now f64",
            "field \"a\" was i32 and is now i64",
            "field \"d\" may now be null",
            "field \"e\" (text) is new",
            "field \"f\" (i32) is new",
            "the fields are in another order",
            "field \"b\" is gone: queries that name it will be refused",
        ]
    );
    assert_eq!(compatible(&old, &old), Ok(vec![]));
    let other_default = compatible(&schema(&["a:i32 =1"]), &schema(&["a:i32 =2"]));
    assert_eq!(other_default, Ok(vec![Change::Default { field: "a".to_owned() }]));
}

#[test]
fn other_changes_are_refused() {
    assert!(refusal(&["a:i64"], &["a:i32"]).starts_with("field \"a\" was i64 and is now i32"));
    for (old, new) in [
        ("a:i32", "a:f64"),
        ("a:i64", "a:text"),
        ("a:u64", "a:i64"),
        ("a:vector<f32,2>", "a:vector<f32,3>"),
        ("a:list<i32>", "a:list<i64>"),
    ] {
        assert!(refusal(&[old], &[new]).contains("is now"), "{old} to {new}");
    }
    assert!(refusal(&["a:i64"], &["a:i64", "b:i64"]).contains("\"b\" is new: make it nullable"));
    assert!(refusal(&["a:i64 ?"], &["a:i64"]).contains("could be null before"));
    assert!(compatible(&schema(&["a:i64 ?"]), &schema(&["a:i64 =0"])).is_ok());
}

#[test]
fn records_are_read_by_name_whatever_the_order() {
    let writer = schema(&["n:i32", "x:f32", "gone:text", "s:text ?"]);
    let reader = schema(&["s:text =\"none\"", "x:f64", "new:list<i32> =[1]", "n:i64", "maybe:bool ?"]);
    let projection = Projection::resolve(&writer, &reader).unwrap();
    let mut record = Vec::new();
    RecordWriter::new(&writer).write_json(r#"{"n":-5,"x":0.5,"gone":"g"}"#, &mut record).unwrap();
    let view = projection.view(&record).unwrap();
    assert_eq!(view.field("n").unwrap().unwrap().as_i64(), Some(-5));
    assert_eq!(view.field("x").unwrap().unwrap().as_f64(), Some(0.5));
    assert_eq!(view.field("s").unwrap().unwrap().as_text(), Some("none"));
    assert_eq!(view.field("new").unwrap().unwrap().as_list().unwrap().len(), 1);
    assert_eq!(view.field("maybe").unwrap(), None);
    assert!(view.field("gone").is_err(), "the reader does not know it");
    let mut out = Vec::new();
    projection.write(&record, &mut out).unwrap();
    let json = RecordView::new(&reader, &out).unwrap().to_json().unwrap();
    assert_eq!(json, r#"{"s":"none","x":0.5,"new":[1],"n":-5,"maybe":null}"#);
}

#[test]
fn a_null_stays_null_even_where_a_default_stands() {
    let both = schema(&["a:i32 ?=7", "b:i32 ?=8"]);
    let projection = Projection::resolve(&both, &both.select(&[1, 0]).unwrap()).unwrap();
    let (mut record, mut out) = (Vec::new(), Vec::new());
    RecordWriter::new(&both).write_json(r#"{"a":null}"#, &mut record).unwrap();
    assert_eq!(projection.view(&record).unwrap().field("a").unwrap(), None);
    projection.write(&record, &mut out).unwrap();
    assert_eq!(RecordView::new(projection.reader(), &out).unwrap().to_json().unwrap(), r#"{"b":8,"a":null}"#);
}

#[test]
fn what_cannot_be_read_is_refused_before_any_record() {
    let error = |writer: &[&str], reader: &[&str]| {
        Projection::resolve(&schema(writer), &schema(reader)).unwrap_err().to_string()
    };
    assert!(error(&["a:i64"], &["b:i64"]).contains("is not in the records"));
    assert!(error(&["a:i64"], &["a:i32"]).contains("was i64"));
    assert!(error(&["a:i64 ?"], &["a:i64"]).contains("could be null"));
}

#[test]
fn equal_schemas_have_equal_ids_whatever_their_text() {
    let a: Schema = r#"{"fields":[{"name":"a","type":"vector<f32,4>"},{"name":"b","type":"f32","default":1}]}"#.parse().unwrap();
    let b: Schema = r#"{"kith_schema":1, "fields":[{"type":"vector< f32, 4 >","nullable":false,"name":"a"},
        {"default":1.0,"name":"b","type":"f32"}]}"#
        .parse()
        .unwrap();
    assert_eq!((&a, a.id()), (&b, b.id()));
    assert_eq!(a.canonical().parse::<Schema>().unwrap().id(), a.id());
    assert_eq!(a.id().to_string().parse(), Ok(a.id()));
    assert!("abc".parse::<kith_schema::SchemaId>().is_err());
    assert_ne!(schema(&["a:i32", "b:i32"]).id(), schema(&["b:i32", "a:i32"]).id());
    // The language is a format: this text and this id were published with it.
    let text = include_str!("../../../../docs/formats/schema.md");
    assert!(
        text.contains(a.canonical()) && text.contains(&a.id().to_string()),
        "{} {}",
        a.canonical(),
        a.id()
    );
}

#[test]
fn another_spelling_of_a_default_is_no_change() {
    let old = schema(&["v:vector<f16,2> =[0.1,0.25]", "f:f32 =1"]);
    let new: Schema = old.canonical().parse().unwrap();
    assert_eq!(old.id(), new.id());
    assert_eq!(compatible(&old, &new), Ok(vec![]));
}
