//! CSV and JSON lines: every kind of bad file, with its message.

#![allow(clippy::unwrap_used)]

use crate::support::{gzip, ids, named, options, read, record, refusal, rows, source};
use kith_build::rows::graph::{
    FileOptions, TimeUnit, read_associations, read_edges, read_entities, read_members, read_objects,
};
use kith_build::rows::{
    HeaderMode, KeyType, ROW_ERRORS_SHOWN, RowOptions, RowsError, ValueShape, infer_schema,
};
use kith_schema::Schema;
use std::convert::Infallible;
use std::path::Path;

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
fn wrong_rows_are_reported_with_their_place() {
    let message_for = |text: &str| refusal(text, &ids());
    let first = |what: &str| format!("1 row(s) are wrong, 0 allowed; the first: in line 3: {what}");
    assert_eq!(message_for("key,value\n1,a\n2,b,c\n"), first("expected 2 columns, got 3"));
    assert_eq!(message_for("key,value\n1,a\n-2,b\n"), first("key \"-2\" is no id: ids are not negative"));
    assert_eq!(
        message_for("key,value\n1,a\n,b\n"),
        first("it has no key: \"key\" is missing, null or empty")
    );
    assert_eq!(message_for("key,value\n1,a\n2,\"b\n3,c\n"), first("a quoted field is not closed"));
    assert_eq!(message_for("key,value\n1,a\n2,\"b"), first("a quoted field is not closed"));
    let not_text =
        String::from("1 row(s) are wrong, 0 allowed; the first: in line 2: value is not UTF-8 text");
    assert_eq!(refusal(b"key,value\n1,\xff\n", &ids()), not_text);
    let line = |row: &str| message_for(&format!("{{\"key\":1,\"value\":\"\"}}\n\n{row}\n"));
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
    let message_for = |text: &str| refusal(text, &named("id", shape.clone()));
    assert!(
        message_for("{\"id\":1,\"v\":[1]}")
            .ends_with("field \"v\": expected a vector of 2 dimensions, got 1")
    );
    assert!(message_for("{\"id\":1,\"v\":[1,2],\"w\":0}").contains("field \"w\" is not in the schema"));
    assert!(message_for("id,v,b\n1,\"[1,2]\",?\n").ends_with("field \"b\": it is not base64 text"));
    assert!(
        message_for("id,vv\n1,x\n").contains("column \"vv\" that is not in the schema; did you mean \"v\"?")
    );
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
    assert_eq!(errors.first[9].location.to_string(), "in line 20");
}

#[test]
fn json_may_be_nested_so_deeply_and_no_deeper() {
    let nested = |depth: usize| format!("{}\"[\"{}", "[".repeat(depth), "]".repeat(depth));
    let json = RowOptions { value: ValueShape::Json, ..ids() };
    for (depth, reason) in
        [(98, None), (100, None), (101, Some("nested too deeply")), (1_000_000, Some("nested too deeply"))]
    {
        // In JSON lines, the object around the value counts as a level too.
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
fn rows_that_lack_fields_of_the_schema_are_refused_unless_the_fields_may_be_filled() {
    let schema: Schema =
        r#"{"fields":[{"name":"name","type":"text"},{"name":"age","type":"i64","nullable":true},{"name":"likes","type":"i64","default":0}]}"#
            .parse()
            .unwrap();
    let strict = options(KeyType::Id, ValueShape::Record(schema));
    let filling = RowOptions { fill_missing: true, ..strict.clone() };
    let whole = RowOptions { key_field: Some("id".to_owned()), ..strict.clone() };
    let cases = [
        (&strict, "key,name\n1,Ada\n", "lacks fields \"age\", \"likes\" of the schema"),
        (&strict, "name,key,likes\nAda,1,3\n", "lacks field \"age\" of the schema"),
        (
            &strict,
            "key,name,agee\n1,Ada,3\n",
            "did you mean \"age\"?; it lacks fields \"age\", \"likes\" of the schema",
        ),
        (
            &strict,
            "{\"key\":1,\"value\":{\"name\":\"Ada\",\"age\":3}}\n",
            "every row lacks field \"likes\" of the schema",
        ),
        (
            &whole,
            "{\"id\":1,\"name\":\"Ada\"}\n{\"id\":2,\"name\":\"B\"}\n",
            "every row lacks fields \"age\", \"likes\"",
        ),
    ];
    for (options, rows, expected) in cases {
        let refused = read(&source("rows", rows), options).unwrap_err().to_string();
        assert!(refused.contains(expected), "{rows}: {refused}");
    }
    for (rows, missing) in [
        ("key,name\n1,Ada\n", vec!["age", "likes"]),
        ("{\"key\":1,\"value\":{\"name\":\"Ada\",\"age\":null}}\n", vec!["likes"]),
    ] {
        let (read, report) = read(&source("rows", rows), &filling).unwrap();
        assert_eq!(read[0].1, r#"{"name":"Ada","age":null,"likes":0}"#);
        assert_eq!(report.missing, missing, "{rows}");
    }
    // A field that one row has may be absent in others, also in other files; a null is there.
    let one = source("a", "{\"key\":1,\"value\":{\"name\":\"Ada\",\"age\":null}}\n");
    let both = one.into_iter().chain(source("b", "{\"key\":2,\"value\":{\"name\":\"B\",\"likes\":1}}\n"));
    assert_eq!(read(&both.collect::<Vec<_>>(), &strict).unwrap().1.missing, Vec::<String>::new());
    // Another file in another format must have all fields itself.
    let lines = source("a", "{\"key\":1,\"value\":{\"name\":\"Ada\",\"age\":1,\"likes\":1}}\n");
    let mixed = lines.into_iter().chain(source("b.csv", "key,name,age\n2,B,3\n"));
    let refused = read(&mixed.collect::<Vec<_>>(), &strict).unwrap_err().to_string();
    assert_eq!(refused, "b.csv lacks field \"likes\" of the schema");
    // A file without rows lacks nothing.
    assert_eq!(read(&source("empty", ""), &strict).unwrap().1.rows, 0);
}

/// A file, with the number of its good rows or a part of the refusal.
type Odd = (&'static str, Vec<u8>, Result<usize, &'static str>);

/// Files that programs and mistakes make. `rows` is a table of the wanted columns, with a header and two rows.
fn odd_files(rows: &str) -> Vec<Odd> {
    let (header, data) = rows.split_once('\n').unwrap();
    let first = data.split_inclusive('\n').next().unwrap();
    let text = rows.as_bytes();
    let zstd = |text: &[u8]| zstd::encode_all(text, 1).unwrap();
    let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    // One block as it is, in a frame whose window has two gigabytes.
    let far =
        [&b"\x28\xb5\x2f\xfd\0\xa8"[..], &[(8 * text.len() + 1) as u8, (text.len() >> 5) as u8, 0], text]
            .concat();
    let half = |packed: Vec<u8>| packed[..packed.len() / 2].to_vec();
    let utf16: Vec<u8> = rows.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut tar = vec![0; 512];
    tar[..5].copy_from_slice(b"a.csv");
    tar[257..262].copy_from_slice(b"ustar");
    tar.extend_from_slice(text);
    vec![
        ("plain", text.to_vec(), Ok(2)),
        ("no newline at the end", text.trim_ascii_end().to_vec(), Ok(2)),
        ("windows", rows.replace('\n', "\r\n").into_bytes(), Ok(2)),
        ("mark", format!("\u{feff}{rows}").into_bytes(), Ok(2)),
        (
            "gzip members",
            [crate::support::gzip(format!("{header}\n").as_bytes()), crate::support::gzip(data.as_bytes())]
                .concat(),
            Ok(2),
        ),
        ("gzip padded", [crate::support::gzip(text), vec![0; 512]].concat(), Ok(2)),
        ("gzip and rubbish", [crate::support::gzip(text), b"rubbish".to_vec()].concat(), Err("")),
        ("gzip cut", half(crate::support::gzip(text)), Err("cut off")),
        (
            "zstd frames",
            [zstd(format!("{header}\n").as_bytes()), skippable.clone(), zstd(data.as_bytes())].concat(),
            Ok(2),
        ),
        ("zstd ends in a skippable frame", [zstd(text), skippable.clone()].concat(), Ok(2)),
        ("zstd and rubbish", [zstd(text), b"rubbish".to_vec()].concat(), Err("")),
        ("zstd cut", half(zstd(text)), Err("cut off")),
        ("zstd cut in the second frame", [zstd(text), half(zstd(first.as_bytes()))].concat(), Err("cut off")),
        ("zstd with the longest window", far, Err("zstd -d --long=31")),
        ("gzip of bzip2", crate::support::gzip(b"BZh91AY&SY"), Err("bzip2")),
        ("gzip of tar", crate::support::gzip(&tar), Err("tar archive")),
        ("tar", tar, Err("tar archive")),
        ("lz4", b"\x04\x22\x4d\x18d@\xa7".to_vec(), Err("lz4")),
        ("snappy", b"\xff\x06\x00\x00sNaPpY".to_vec(), Err("snappy")),
        ("xz", b"\xfd7zXZ\x00\x00".to_vec(), Err("xz")),
        ("7z", b"7z\xbc\xaf\x27\x1c".to_vec(), Err("7z")),
        ("utf-16", [b"\xff\xfe".to_vec(), utf16.clone()].concat(), Err("UTF-16")),
        ("utf-16 without a mark", utf16, Err("UTF-16")),
        ("json list", b"[\n{\"a\":1}\n]\n".to_vec(), Err("JSON list")),
        ("json over lines", b"{\n \"a\": 1\n}\n".to_vec(), Err("")),
        ("nul", rows.replacen("\n1", "\n\0", 1).into_bytes(), Err("")),
        ("latin-1", [text, b"\xe9,\xe9,\xe9\n"].concat(), Err("")),
        ("unclosed quote", format!("{rows}\"1").into_bytes(), Err("")),
        ("one column too many", format!("{rows}{},7\n", first.trim_end()).into_bytes(), Err("")),
    ]
}

fn outcome(door: &str, odd: &Odd, got: Result<usize, String>) {
    let (name, _, expected) = odd;
    match (&got, expected) {
        (Ok(rows), Ok(expected)) => assert_eq!(rows, expected, "{door}: {name}"),
        (Err(error), Err(part)) => assert!(error.contains(part), "{door}: {name}: {error}"),
        _ => panic!("{door}: {name}: {got:?}, expected {expected:?}"),
    }
}

/// A way in which rows are read: its name, two good rows, and the number of rows of the file.
type Door<'d> = (&'d str, &'d str, Box<dyn Fn() -> Result<usize, String> + 'd>);

/// Everything that reads rows, from the file at `path`.
fn doors<'d>(path: &'d Path, options: &'d FileOptions) -> Vec<Door<'d>> {
    let [loaded, live] = [of_loaded_graphs(path, options), of_live_graphs(path, options)];
    loaded.into_iter().chain(live).chain(of_stores(path)).collect()
}

fn of_loaded_graphs<'d>(path: &'d Path, options: &'d FileOptions) -> Vec<Door<'d>> {
    vec![
        (
            "edges",
            "src,dst\n1,2\n3,4\n",
            Box::new(move || {
                let mut rows = 0;
                let each = |_, _, _: &[u64]| {
                    rows += 1;
                    Ok::<(), Infallible>(())
                };
                let read = read_edges(path, options, &Default::default(), &mut |_| {}, each);
                read.map(|_| rows).map_err(|error| error.to_string())
            }),
        ),
        (
            "entities",
            "member,kind,entity\n1,school,2\n3,school,4\n",
            Box::new(move || {
                let mut rows = 0;
                let each = |_, _: &str, _, _: &[u64]| {
                    rows += 1;
                    Ok::<(), Infallible>(())
                };
                let read = read_entities(path, options, &[], &mut |_| {}, each);
                read.map(|_| rows).map_err(|error| error.to_string())
            }),
        ),
        (
            "members",
            "id,name\n1,a\n3,b\n",
            Box::new(move || {
                let mut rows = 0;
                let each = |_| {
                    rows += 1;
                    Ok::<(), Infallible>(())
                };
                let read = read_members(path, options, None, &mut |_| {}, each);
                read.map(|_| rows).map_err(|error| error.to_string())
            }),
        ),
    ]
}

fn of_live_graphs<'d>(path: &'d Path, options: &'d FileOptions) -> Vec<Door<'d>> {
    vec![
        (
            "objects",
            "id,data\n1,\n3,\n",
            Box::new(move || {
                let mut rows = 0;
                let each = |_| {
                    rows += 1;
                    Ok::<_, Infallible>(Ok(()))
                };
                let read = read_objects(path, options, &[], &mut |_| {}, each);
                read.map(|_| rows).map_err(|error| error.to_string())
            }),
        ),
        (
            "associations",
            "id1,id2,time\n1,2,3\n3,4,5\n",
            Box::new(move || {
                let mut rows = 0;
                let each = |_| {
                    rows += 1;
                    Ok::<_, Infallible>(Ok(()))
                };
                let read = read_associations(path, options, &[], TimeUnit::Millis, &mut |_| {}, each);
                read.map(|_| rows).map_err(|error| error.to_string())
            }),
        ),
    ]
}

fn of_stores(path: &Path) -> Vec<Door<'_>> {
    vec![
        (
            "store",
            "key,value\n1,a\n3,b\n",
            Box::new(move || {
                let bytes = std::fs::read(path).unwrap();
                read(&source("odd", bytes), &ids())
                    .map(|(rows, _)| rows.len())
                    .map_err(|error| error.to_string())
            }),
        ),
        (
            "inferred",
            "id,value\n1,a\n3,b\n",
            Box::new(move || {
                let bytes = std::fs::read(path).unwrap();
                let read =
                    crate::support::read_inferred(&source("odd", bytes), &named("id", ValueShape::Json));
                read.map(|rows| rows.len()).map_err(|error| error.to_string())
            }),
        ),
    ]
}

#[test]
fn odd_files_are_read_or_refused_wherever_rows_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd");
    let options = FileOptions { line_bytes_max: 1 << 20, ..FileOptions::default() };
    let (path, options) = (path.as_path(), &options);
    let doors = doors(path, options);
    for (door, rows, run) in &doors {
        for odd in &odd_files(rows) {
            std::fs::write(path, &odd.1).unwrap();
            outcome(door, odd, run());
        }
        // Stores read old line ends, and graphs name them.
        std::fs::write(path, rows.replace('\n', "\r")).unwrap();
        match run() {
            Ok(read) => assert!(read == 2 && matches!(*door, "store" | "inferred"), "{door}"),
            Err(error) => assert!(error.contains("carriage returns"), "{door}: {error}"),
        }
        for (name, text) in
            [("nothing", String::new()), ("header only", format!("{}\n", rows.lines().next().unwrap()))]
        {
            std::fs::write(path, text).unwrap();
            let read = run();
            assert!(read == Ok(0) || *door == "inferred" && read.is_err(), "{door}: {name}: {read:?}");
        }
        std::fs::write(path, "1".repeat(3 << 20)).unwrap();
        assert!(run().is_err(), "{door}: a long line");
    }
    // An empty file that is named as a format with a header was cut off.
    for name in ["a.csv.gz", "a.zst", "a.parquet", "a.arrow"] {
        let path = folder.path().join(name);
        std::fs::write(&path, "").unwrap();
        let edges =
            read_edges(&path, options, &Default::default(), &mut |_| {}, |_, _, _| Ok::<(), Infallible>(()));
        assert!(edges.unwrap_err().to_string().contains("is empty"), "{name}");
        let refused = read(&source(name, ""), &ids()).unwrap_err().to_string();
        assert!(refused.contains("it is empty"), "{name}: {refused}");
    }
}
