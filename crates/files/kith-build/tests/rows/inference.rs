//! The schemas that are inferred from tables.

use kith_build::rows::{InferError, Inference};
use kith_schema::{FieldType, RecordWriter, ScalarType, Schema};

fn inferred(rows: &[&str]) -> Result<Schema, InferError<String>> {
    let mut inference = Inference::new();
    for (index, row) in rows.iter().enumerate() {
        inference.observe_json(&format!("row {}", index + 1), row, Some("key"))?;
    }
    inference.finish()
}

fn types(schema: &Schema) -> Vec<String> {
    let fields = schema.fields().iter();
    fields
        .map(|f| format!("{}:{}{}", f.name(), f.field_type(), if f.is_nullable() { "?" } else { "" }))
        .collect()
}

fn error(rows: &[&str]) -> String {
    inferred(rows).unwrap_err().to_string()
}

#[test]
fn types_widen_and_gaps_become_nullable() {
    let schema = inferred(&[
        r#"{"key":1,"n":1,"x":2,"t":"a","l":[],"m":{"a":1},"big":1,"b":true}"#,
        r#"{"key":2,"n":-5,"x":0.5,"t":null,"l":[1],"m":{},"big":18446744073709551615,"b":false,"late":"z"}"#,
    ])
    .unwrap();
    assert_eq!(
        types(&schema),
        ["n:i64", "x:f64", "t:text?", "l:list<i64>", "m:map<text,i64>", "big:u64", "b:bool", "late:text?"]
    );
}

#[test]
fn types_that_do_not_go_together_name_both_rows() {
    let got = error(&[r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":"x"}"#]);
    assert_eq!(got, "field \"a\" is i64 in row 1 and text in row 3");
    let got = error(&[r#"{"a":-1}"#, r#"{"a":18446744073709551615}"#]);
    assert_eq!(got, "field \"a\" is i64 below 0 in row 1 and u64 in row 2");
    let got = error(&[r#"{"a":9007199254740993}"#, r#"{"a":0.5}"#]);
    assert_eq!(got, "field \"a\" is i64 beyond 2^53 in row 1 and f64 in row 2");
    assert!(error(&[r#"{"a":[1]}"#, r#"{"a":1}"#]).contains("list<i64> in row 1 and i64 in row 2"));
    assert!(
        error(&[r#"{"a":[1,"x"]}"#]).contains("row 1: a list or map inside a record holds both i64 and text")
    );
    assert!(error(&[r#"{"a":[[1]]}"#]).contains("plain values"));
    assert!(error(&[r#"{"a":1,"a":1}"#]).contains("twice"));
}

#[test]
fn nothing_is_guessed_from_nothing() {
    assert!(error(&[]).contains("no rows"));
    assert!(error(&[r#"{"key":1}"#]).contains("none of the 1 rows"));
    assert!(error(&[r#"{"a":null}"#]).contains("field \"a\" is null or empty in every row"));
    assert!(error(&[r#"{"a":[]}"#]).contains("null or empty"));
    assert!(error(&["[1]"]).starts_with("row 1: "));
}

#[test]
fn cells_are_what_all_of_their_column_spell() {
    let mut inference = Inference::new();
    let rows = [
        ["1", "1", "007", "true", "", "x", "12345678901234567890123", "1.5", ""],
        ["-2", "0.5", "1", "false", "3", "", "1", "1e3", ""],
    ];
    let names = ["i", "f", "zip", "b", "gap", "t", "long", "e", "void"];
    for (row, cells) in rows.iter().enumerate() {
        inference.observe_cells(&row, names.iter().copied().zip(cells.iter().copied())).unwrap();
    }
    let schema = inference.finish().unwrap();
    assert_eq!(
        types(&schema),
        ["i:i64", "f:f64", "zip:text", "b:bool", "gap:i64?", "t:text", "long:text", "e:f64", "void:text"]
    );
}

#[test]
fn declared_columns_join() {
    let mut inference = Inference::new();
    let of = |scalar| Some(FieldType::Scalar(scalar));
    inference
        .observe_columns(
            &"a",
            5,
            [("n", of(ScalarType::I32), false), ("x", of(ScalarType::F32), false), ("v", None, true)],
        )
        .unwrap();
    inference
        .observe_columns(
            &"b",
            5,
            [
                ("n", of(ScalarType::I64), true),
                ("x", of(ScalarType::F64), false),
                ("v", of(ScalarType::Text), true),
            ],
        )
        .unwrap();
    assert_eq!(types(&inference.finish().unwrap()), ["n:i64?", "x:f64", "v:text?"]);
    let mut inference = Inference::new();
    inference.observe_columns(&"a", 1, [("n", of(ScalarType::U64), false)]).unwrap();
    let error = inference.observe_columns(&"b", 1, [("n", of(ScalarType::I64), false)]).unwrap_err();
    assert_eq!(error.to_string(), "field \"n\" is u64 in a and i64 in b");
}

proptest::proptest! {
    /// Every row fits the schema that was inferred from it, and the same rows give the same schema.
    #[test]
    fn rows_fit_the_schema_they_gave(rows in proptest::collection::vec(row(), 1..12)) {
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        if let Ok(schema) = inferred(&rows) {
            let again = inferred(&rows).unwrap();
            proptest::prop_assert_eq!(&again, &schema);
            let mut writer = RecordWriter::new(&schema);
            for row in &rows {
                let written = writer.write_json_but(row, Some("key"), &mut Vec::new());
                proptest::prop_assert!(written.is_ok(), "{} under {}: {:?}", row, schema, written);
            }
        }
    }
}

fn row() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let number = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        (-9i64..9).prop_map(|n| n.to_string()),
        Just("0.5".to_owned()),
        Just("1e3".to_owned()),
    ];
    let one = prop_oneof![4 => number, 1 => Just("true".to_owned()), 1 => Just("\"x\"".to_owned())];
    let lists =
        proptest::collection::vec(one.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(",")));
    let maps = one.clone().prop_map(|value| format!("{{\"k\":{value}}}"));
    let value = prop_oneof![6 => one, 1 => Just("null".to_owned()), 1 => lists, 1 => maps];
    proptest::collection::btree_map("[a-c]", value, 0..3).prop_map(|fields| {
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    })
}
