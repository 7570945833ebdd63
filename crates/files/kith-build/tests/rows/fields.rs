//! Reads files as tables of fields.

#![allow(clippy::unwrap_used)]

use crate::support::containers::{arrow_file, arrow_stream, batch, parquet};
use crate::support::source;
use kith_build::rows::{Field, FieldTable};
use parquet::basic::Compression;

/// The rows of a file as fields, with the fields of each row joined by commas.
fn fields(file: impl AsRef<[u8]>, columns: &[&str]) -> Vec<String> {
    let sources = source("in", file);
    let table = FieldTable::open(sources[0].as_ref(), 64 << 20).unwrap().expect("a file of rows");
    let places: Vec<usize> = columns
        .iter()
        .map(|name| table.columns().iter().position(|known| known == name).expect("the column is there"))
        .collect();
    let mut rows = Vec::new();
    let read = table.rows(&places, &mut |number, fields| {
        let fields = fields.map(|fields| {
            let text = |field: &Field<'_>| match field {
                Field::Null => "null".to_owned(),
                Field::Unsigned(value) | Field::Time(value) => value.to_string(),
                Field::Float(value) => format!("{value:?}"),
                Field::Text(text) => format!("{text:?}"),
            };
            fields.iter().map(text).collect::<Vec<_>>().join(",")
        });
        rows.push(format!("{number}: {}", fields.unwrap_or_else(|fault| fault.to_string())));
        rows.len() < 4
    });
    read.unwrap();
    rows
}

#[test]
fn tables_are_read_as_fields() {
    let batch = batch();
    for file in [parquet(&batch, Compression::SNAPPY), arrow_file(&batch), arrow_stream(&batch)] {
        let rows = fields(file, &["at", "id", "text", "small", "flag", "v"]);
        let want = [
            r#"1: 1,0,"a",1,"true","a list""#,
            r#"2: "-1",7,null,"-2","false","a list""#,
            r#"3: 0,18446744073709551615,"é",3,"true","a list""#,
        ];
        assert_eq!(rows, want);
    }
}

#[test]
fn lines_of_json_are_read_as_fields() {
    let lines =
        "{\"a\":1,\"b\":\"x\"}\n\n{\"b\":-2,\"a\":null,\"c\":[1]}\n[]\n{\"a\":1,\"a\":2}\n{\"a\":9}\n";
    let want = [r#"1: "x",1,null"#, r#"3: "-2",null,"[1]""#];
    let rows = fields(lines, &["b", "a", "c"]);
    assert_eq!(rows[..2], want);
    assert!(
        rows[2].starts_with("4: ") && rows[3].starts_with("5: ") && rows[3].contains("there twice"),
        "{rows:?}"
    );
    let text = source("in", "a,b\n1,2\n");
    assert!(FieldTable::open(text[0].as_ref(), 1 << 20).unwrap().is_none(), "delimited text is no such file");
    let cut = source("in", b"PAR1 and not much more");
    assert!(FieldTable::open(cut[0].as_ref(), 1 << 20).is_err());
}
