//! CSV and JSON lines: good files, and their schemas.

#![allow(clippy::unwrap_used)]

use crate::support::{gzip, ids, named, options, read, read_inferred, record, refusal, rows, shown, source};
use kith_build::rows::{KeyType, RowOptions, RowsError, ValueShape, find_files, infer_schema};

#[test]
fn the_same_rows_come_out_of_every_spelling() {
    let want = ["1 a", "18446744073709551615 b,\"c\"", "3 "];
    let csv = "key,value\n1,a\n18446744073709551615,\"b,\"\"c\"\"\"\n3,\n";
    let json = "{\"key\":1,\"value\":\"a\"}\n\n{\"value\":\"b,\\\"c\\\"\",\"key\":\"18446744073709551615\"}\n{\"key\":3,\"value\":\"\"}";
    let tsv = "value\tkey\na\t1\n\"b,\"\"c\"\"\"\t18446744073709551615\n\t3";
    for text in [csv, json, tsv, &csv.replace('\n', "\r\n"), &csv[10..], csv.trim_end()] {
        assert_eq!(rows(text, &ids()), want, "{text}");
        assert_eq!(rows(format!("\u{feff}{text}"), &ids()), want, "{text}");
        assert_eq!(rows(gzip(text.as_bytes()), &ids()), want);
        assert_eq!(rows(zstd::encode_all(text.as_bytes(), 1).unwrap(), &ids()), want);
        // Several members or frames form one file.
        let (head, tail) = text.split_at(12);
        assert_eq!(rows([gzip(head.as_bytes()), gzip(tail.as_bytes())].concat(), &ids()), want);
    }
}

#[test]
fn records_come_from_columns_members_and_whole_objects() {
    let shape = record(
        r#"{"name":"name","type":"text"},{"name":"age","type":"i32","nullable":true},{"name":"v","type":"vector<f32,2>"}"#,
    );
    let want =
        [r#"7 {"name":"Ada\u0000","age":36,"v":[1.0,0.5]}"#, r#"9 {"name":"","age":null,"v":[0.0,-1.0]}"#];
    let csv = "v,name,id,age\n\"[1,0.5]\",Ada\0,7,36\n\"[0,-1]\",,9,\n";
    assert_eq!(rows(csv, &named("id", shape.clone())), want);
    let no_header = "7,Ada\0,36,\"[1,0.5]\"\n9,,,\"[0,-1]\"\n";
    assert_eq!(rows(no_header, &options(KeyType::Id, shape.clone())), want);
    let whole = r#"{"id":7,"name":"Ada\u0000","age":36,"v":[1,0.5]}
        {"id":9,"v":[0,-1],"name":""}"#;
    assert_eq!(rows(whole, &named("id", shape.clone())), want);
    let member = r#"{"key":7,"value":{"name":"Ada\u0000","age":36,"v":[1,0.5]}}
        {"key":9,"value":{"v":[0,-1],"name":""}}"#;
    assert_eq!(rows(member, &options(KeyType::Id, shape)), want);
}

#[test]
fn json_values_keep_their_digits() {
    let json = options(KeyType::String, ValueShape::Json);
    let text = "{\"key\":\"a\",\"value\": {\"id\": 18446744073709551617, \"x\": 1.50} }";
    assert_eq!(rows(text, &json), ["a {\"id\":18446744073709551617,\"x\":1.50}"]);
    let whole = RowOptions { key_field: Some("id".to_owned()), ..options(KeyType::Id, ValueShape::Json) };
    assert_eq!(rows("{ \"id\": 5, \"b\": [ ] }", &whole), ["5 {\"id\":5,\"b\":[]}"]);
    assert!(refusal("key,value\nk,{\"a\":}\n", &json).contains("in line 2: expected value"));
}

#[test]
fn bytes_are_base64_in_text() {
    let bytes = options(KeyType::Bytes, ValueShape::Bytes);
    assert_eq!(rows("{\"key\":\"a2V5\",\"value\":\"dmFsdWU=\"}", &bytes), ["key value"]);
    assert_eq!(rows("{\"key\":\"a2V5\",\"value_base64\":\"dmFsdWU=\"}", &bytes), ["key value"]);
    assert!(refusal("key,value\na2V5,?\n", &bytes).contains("value is not base64"));
}

#[test]
fn a_schema_is_inferred_over_all_files() {
    let sources: Vec<_> = source("a.csv", "id,n,t\n1,2,x\n")
        .into_iter()
        .chain(source("empty.csv", ""))
        .chain(source("b.csv", "t,id,late\n007,2,0.5\n"))
        .collect();
    let options = named("id", ValueShape::Json);
    let got = read_inferred(&sources, &options).unwrap();
    assert_eq!(shown(&got), [r#"1 {"n":2,"t":"x","late":null}"#, r#"2 {"n":null,"t":"007","late":0.5}"#]);
    let schema = infer_schema(&sources, &options, Some(1)).unwrap();
    assert_eq!(schema.fields().len(), 2, "only the first row was looked at");
    let strict = RowOptions { value: ValueShape::Record(schema), ..options };
    let error = read(&sources, &strict).unwrap_err().to_string();
    assert!(error.contains("b.csv has a column \"late\" that is not in the schema"), "{error}");
}

#[test]
fn values_may_be_64_mib_and_no_more() {
    let text = |bytes: usize| format!("{{\"key\":1,\"value\":\"{}\"}}", "x".repeat(bytes));
    let got = read(&source("in", text(64 << 20)), &ids()).unwrap().0;
    assert_eq!(got[0].1.len(), 64 << 20);
    assert!(refusal(text((64 << 20) + 1), &ids()).contains("value has 67108865 bytes"));
    let endless = format!("key,value\n1,\"{}", "x\n".repeat(66 << 20));
    let error = read(&source("in", endless), &ids()).unwrap_err();
    assert!(matches!(error, RowsError::RowTooLong { .. }), "{error}");
}

#[test]
fn folders_and_patterns_are_read_in_order_without_marks() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("b")).unwrap();
    put("b/part-0.csv", "2,b\n");
    put("a.csv", "1,a\n");
    put("c.txt", "3,c\n");
    put("_SUCCESS", "");
    put(".a.csv.crc", "x");
    let path = folder.path().to_str().unwrap();
    let names = |inputs: &[String]| {
        let files = find_files(inputs).unwrap();
        files
            .iter()
            .map(|file| file.path().strip_prefix(path).unwrap().display().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&[path.to_owned()]), ["a.csv", "b/part-0.csv", "c.txt"]);
    assert_eq!(
        names(&[format!("{path}/*"), format!("{path}/**/*.csv")]),
        ["a.csv", "c.txt", "a.csv", "b/part-0.csv"]
    );
    assert!(find_files(&[format!("{path}/*.none")]).unwrap_err().to_string().contains("names no file"));
    assert!(find_files(&[format!("{path}/none")]).unwrap_err().to_string().contains("cannot be read"));
    let file = find_files(&[format!("{path}/a.csv")]).unwrap();
    let sources: Vec<Box<dyn kith_build::rows::RowSource>> = vec![Box::new(file[0].clone())];
    assert_eq!(shown(&read(&sources, &ids()).unwrap().0), ["1 a"]);
}

#[test]
fn cells_of_databases_are_null_and_quotes_of_other_programs_are_refused() {
    let text = "id\tname\tage\n1\tAda\t36\n2\t\\N\t\\N\n";
    let inferred = read_inferred(&source("in", text), &named("id", ValueShape::Json)).unwrap();
    assert_eq!(shown(&inferred), [r#"1 {"name":"Ada","age":36}"#, r#"2 {"name":"","age":null}"#]);
    let wrong = "text follows a closing quote";
    for (text, line) in [
        ("id,name\n1,a\n2,\"say \\\"hi\\\", ok\"\n3,\"c\"\n", 3),
        ("id,name\n1,\"a\"b\n2,\"b, \"\"c\"\"\"\n3,\"d\ne\"\n", 2),
        ("sep=,\nid,name\n1,a\n\"2\" ,\"b\"\"\n\"c\n3,c\n", 4),
    ] {
        let strict = named("id", ValueShape::Json);
        let refused = read_inferred(&source("in", text), &strict).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("1 row(s) are wrong, 0 allowed; the first: in line {line}: {wrong}")),
            "{refused}"
        );
        let read = read_inferred(&source("in", text), &RowOptions { errors_max: 1, ..strict }).unwrap();
        assert_eq!(shown(&read).len(), 2, "{text}");
    }
    let refused = read_inferred(&source("in", "id,\"na\"me\n1,a\n"), &named("id", ValueShape::Json));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.starts_with("in line 1 has text after a closing quote"), "{refused}");
}
