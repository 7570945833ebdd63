//! CSV and JSON lines: good files, and every way in which they are bad.

#![allow(clippy::unwrap_used)]

mod support;

use kith_rows::{
    HeaderMode, KeyType, ROW_ERRORS_SHOWN, RowOptions, RowsError, ValueShape, find_files, infer_schema,
};
use support::{gzip, options, read, read_inferred, refusal, shown, source};

fn record(fields: &str) -> ValueShape {
    ValueShape::Record(format!("{{\"fields\":[{fields}]}}").parse().unwrap())
}

fn ids() -> RowOptions {
    options(KeyType::Id, ValueShape::Text)
}

fn named(key: &str, value: ValueShape) -> RowOptions {
    RowOptions { key_field: Some(key.to_owned()), ..options(KeyType::Id, value) }
}

fn rows(bytes: impl AsRef<[u8]>, options: &RowOptions) -> Vec<String> {
    shown(&read(&source("in", bytes), options).unwrap().0)
}

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
        // Several members, or frames, are one file.
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
fn types_that_do_not_go_together_name_file_and_lines() {
    let sources: Vec<_> = source("a", "{\"id\":1,\"x\":1}\n")
        .into_iter()
        .chain(source("b", "\n{\"id\":2,\"x\":\"y\"}\n"))
        .collect();
    let error = infer_schema(&sources, &named("id", ValueShape::Json), None).unwrap_err();
    assert_eq!(error.to_string(), "field \"x\" is i64 in a line 1 and text in b line 2");
}

#[test]
fn wrong_rows_are_told_with_their_place() {
    let told = |text: &str| refusal(text, &ids());
    let first = |what: &str| format!("1 row(s) are wrong, 0 allowed; the first: in line 3: {what}");
    assert_eq!(told("key,value\n1,a\n2,b,c\n"), first("expected 2 columns, got 3"));
    assert_eq!(told("key,value\n1,a\n-2,b\n"), first("key \"-2\" is no id: ids are not negative"));
    assert_eq!(told("key,value\n1,a\n,b\n"), first("it has no key: \"key\" is missing, null or empty"));
    assert_eq!(told("key,value\n1,a\n2,\"b\n3,c\n"), first("a quoted field is not closed"));
    assert_eq!(told("key,value\n1,a\n2,\"b"), first("a quoted field is not closed"));
    let not_text =
        String::from("1 row(s) are wrong, 0 allowed; the first: in line 2: value is not UTF-8 text");
    assert_eq!(refusal(b"key,value\n1,\xff\n", &ids()), not_text);
    let line = |row: &str| told(&format!("{{\"key\":1,\"value\":\"\"}}\n\n{row}\n"));
    assert_eq!(line("{\"key\":1.5,\"value\":\"\"}"), first("key \"1.5\" is no id: ids are whole numbers"));
    assert_eq!(
        line("{\"key\":null,\"value\":\"\"}"),
        first("it has no key: \"key\" is missing, null or empty")
    );
    assert_eq!(line("{\"key\":1,\"value\":7}"), first("value is a number, values of this store are text"));
    assert_eq!(line("{\"key\":1}"), first("it has no value: \"value\" is missing or null"));
    assert_eq!(line("{\"key\":1,\"key\":2,\"value\":\"\"}"), first("member \"key\" is there twice"));
    assert!(line("{\"key\":1,\"vlaue\":\"\"}").contains("did you mean \"value\"?"));
    assert!(line("{\"key\":1,\"value\":\"\"").contains("EOF while parsing"));
    assert!(line("7").contains("expected an object"));
}

#[test]
fn lines_are_counted_as_an_editor_does() {
    let unix = "key,value\n1,\"a\nb\"\n\n2,\"c\n\nd\"\nx,last";
    for text in [
        unix.to_owned(),
        format!("{unix}\n"),
        unix.replace('\n', "\r\n"),
        unix.replace('\n', "\r\n") + "\r\n",
    ] {
        assert!(
            refusal(&text, &ids()).contains("the first: in line 8: key \"x\""),
            "{}",
            refusal(&text, &ids())
        );
    }
}

#[test]
fn records_that_do_not_fit_say_why() {
    let shape = record(r#"{"name":"v","type":"vector<f32,2>"},{"name":"b","type":"bytes","nullable":true}"#);
    let told = |text: &str| refusal(text, &named("id", shape.clone()));
    assert!(told("{\"id\":1,\"v\":[1]}").ends_with("field \"v\": expected a vector of 2 dimensions, got 1"));
    assert!(told("{\"id\":1,\"v\":[1,2],\"w\":0}").contains("field \"w\" is not in the schema"));
    assert!(told("id,v,b\n1,\"[1,2]\",?\n").ends_with("field \"b\": it is not base64 text"));
    assert!(told("id,vv\n1,x\n").contains("column \"vv\" that is not in the schema; did you mean \"v\"?"));
    let number = record(r#"{"name":"x","type":"f32"}"#);
    for wrong in ["NaN", "inf"] {
        assert!(
            refusal(format!("id,x\n1,{wrong}\n"), &named("id", number.clone()))
                .ends_with("it is not a finite number")
        );
    }
}

#[test]
fn headers_are_checked_before_any_row() {
    assert!(refusal("key,value,key\n", &ids()).contains("more than one column \"key\""));
    assert!(refusal("id,value\n", &ids()).contains("no column \"key\" (its columns: id, value)"));
    assert!(refusal("key,val\n", &ids()).contains("no column \"value\""));
    assert!(refusal("key,value,more\n", &ids()).contains("columns besides key and value"));
    let strings = options(KeyType::String, ValueShape::Text);
    assert!(refusal("a,b\n", &strings).contains("may be a header or a row"));
    let absent = RowOptions { header: HeaderMode::Absent, ..strings };
    assert_eq!(rows("a,b\n", &absent), ["a b"]);
    let picked = RowOptions { value_field: Some("more".to_owned()), ..ids() };
    assert_eq!(rows("key,value,more\n1,a,b\n", &picked), ["1 b"]);
    assert_eq!(rows("", &ids()), [""; 0]);
}

#[test]
fn only_as_many_wrong_rows_as_allowed() {
    let text: String =
        (0..40).map(|row| if row % 2 == 0 { format!("{row},x\n") } else { "x,x\n".to_owned() }).collect();
    let allowed = RowOptions { errors_max: 20, ..ids() };
    let (good, report) = read(&source("in", &text), &allowed).unwrap();
    assert_eq!((good.len(), report.rows, report.errors.total()), (20, 20, 20));
    let refused = read(&source("in", &text), &ids()).unwrap_err();
    assert!(refused.to_string().starts_with("at least 10 row(s) are wrong, 0 allowed; "), "{refused}");
    let RowsError::BadRows { errors, .. } = refused else { panic!() };
    assert_eq!(
        (errors.first.len(), errors.total()),
        (ROW_ERRORS_SHOWN, 10),
        "reading ends when ten can be shown"
    );
    assert_eq!(errors.first[9].place.to_string(), "in line 20");
}

#[test]
fn json_may_be_nested_so_deeply_and_no_deeper() {
    let nested = |depth: usize| format!("{}\"[\"{}", "[".repeat(depth), "]".repeat(depth));
    let json = RowOptions { value: ValueShape::Json, ..ids() };
    for (depth, reason) in
        [(98, None), (100, None), (101, Some("nested too deeply")), (1_000_000, Some("nested too deeply"))]
    {
        // Of JSON lines, the object around the value counts too.
        let line = format!("{{\"key\":7,\"value\":{}}}\n{{\"key\":8,\"value\":1}}\n", nested(depth - 1));
        let quoted = format!("key,value\n7,\"{}\"\n8,1\n", nested(depth).replace('"', "\"\""));
        for text in [line, quoted] {
            let lenient = RowOptions { errors_max: 1, ..json.clone() };
            let (_, report) = read(&source("in", &text), &lenient).unwrap();
            assert_eq!(report.errors.by_reason.keys().next().copied(), reason, "{depth}");
        }
    }
}

#[test]
fn rows_that_are_all_wrong_are_refused_however_many_are_allowed() {
    let lenient = RowOptions { errors_max: 1_000, ..ids() };
    let refused = read(&source("in", "key,value\nx,a\ny,b\nz,c\n"), &lenient).unwrap_err();
    let RowsError::NoGoodRows { errors } = refused else { panic!("{refused}") };
    assert_eq!(errors.total(), 3);
    assert_eq!(
        read(&source("in", "key,value\nx,a\n7,b\n"), &lenient).unwrap().0.len(),
        1,
        "one good row is enough"
    );
    assert_eq!(
        read(&source("in", ""), &lenient).unwrap().0.len(),
        0,
        "a file without rows has no wrong ones"
    );
}

#[test]
fn damaged_compression_is_never_the_end_of_the_rows() {
    let text: String = (0..5_000).map(|row| format!("{row},value {}\n", row * 7919 % 1_013)).collect();
    for packed in [gzip(text.as_bytes()), zstd::encode_all(text.as_bytes(), 1).unwrap()] {
        for cut in [packed.len() - 1, packed.len() / 2, 30] {
            let error = read(&source("in", &packed[..cut]), &ids()).unwrap_err();
            assert!(matches!(error, RowsError::Truncated { .. }), "{cut}: {error:?}");
        }
        let mut flipped = packed.clone();
        flipped[packed.len() / 2] ^= 0x55;
        assert!(read(&source("in", flipped), &ids()).is_err());
    }
}

#[test]
fn other_formats_are_named() {
    for (bytes, what) in [
        (&b"PK\x03\x04"[..], "ZIP"),
        (b"Obj\x01", "Avro"),
        (b" [{}]", "JSON list"),
        (b"BZh9", "bzip2"),
        (&[0, 0, 0x80, 0x3f], "--format f32le"),
    ] {
        assert!(refusal(bytes, &ids()).contains(what), "{what}");
    }
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
    let sources: Vec<Box<dyn kith_rows::RowSource>> = vec![Box::new(file[0].clone())];
    assert_eq!(shown(&read(&sources, &ids()).unwrap().0), ["1 a"]);
}
