//! Numbers, times and layouts of files: taken exactly, or refused by name.

#![allow(clippy::unwrap_used)]

use crate::support::containers::{arrow_file, parquet};
use crate::support::{named, options, read_inferred, record, shown, source};
use arrow_array::{
    ArrayRef, Decimal128Array, DurationSecondArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampSecondArray, UInt64Array,
};
use kith_build::rows::graph::{EdgeColumns, FileOptions, read_edges};
use kith_build::rows::{KeyType, RowOptions, ValueShape};
use parquet::basic::Compression;
use parquet::data_type::{Int64Type, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

fn by_id() -> RowOptions {
    RowOptions { key_field: Some("id".to_owned()), ..options(KeyType::Id, ValueShape::Json) }
}

/// The edges of a file with these bytes, or why it is refused.
fn edges(bytes: &[u8], columns: &EdgeColumns) -> Result<Vec<(u64, u64, Vec<u64>)>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edges");
    std::fs::write(&path, bytes).unwrap();
    let mut edges = Vec::new();
    let read = read_edges(&path, &FileOptions::default(), columns, &mut |_| {}, |src, dst, values| {
        edges.push((src, dst, values.to_vec()));
        Ok::<(), std::convert::Infallible>(())
    });
    read.map(|_| edges).map_err(|error| error.to_string())
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn ids() -> ArrayRef {
    Arc::new(UInt64Array::from(vec![1, 2]))
}

#[test]
fn floats_that_may_be_rounded_are_no_ids_and_no_whole_columns() {
    // What an `f64` makes of 2^53 + 1.
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![3.0, 9_007_199_254_740_992.0]));
    let small: ArrayRef = Arc::new(Float64Array::from(vec![3.0, 4.0]));
    let plain = EdgeColumns::default();
    for container in [arrow_file, |batch: &RecordBatch| parquet(batch, Compression::UNCOMPRESSED)] {
        let wrong = container(&batch(vec![("src", ids()), ("dst", Arc::clone(&floats))]));
        assert!(edges(&wrong, &plain).unwrap_err().contains("2^53"));
        let good = container(&batch(vec![("src", ids()), ("dst", Arc::clone(&small))]));
        assert_eq!(edges(&good, &plain).unwrap(), [(1, 3, vec![]), (2, 4, vec![])]);
        let column = container(&batch(vec![("src", ids()), ("dst", ids()), ("w", Arc::clone(&floats))]));
        for kind in ["u64", "i64", "time"] {
            let columns =
                EdgeColumns { columns: vec![format!("w:{kind}").parse().unwrap()], ..plain.clone() };
            assert!(edges(&column, &columns).is_err(), "{kind}");
        }
        let columns = EdgeColumns { columns: vec!["w:f64".parse().unwrap()], ..plain.clone() };
        assert!(edges(&column, &columns).is_ok());
    }
    let json = b"{\"src\":1,\"dst\":2,\"w\":18446744073709551617}\n";
    let columns = EdgeColumns { columns: vec!["w:f64".parse().unwrap()], ..plain };
    assert!(edges(json, &columns).is_err(), "an f64 would round it");
    let refused = records(&[("a.jsonl", b"{\"id\":1,\"n\":123456789012345678901234567890}\n")]).unwrap_err();
    assert!(refused.to_string().contains("would be rounded"), "{refused}");
}

#[test]
fn decimals_are_read_exactly() {
    let decimal = |values: Vec<i128>, digits, scale| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(digits, scale).unwrap())
    };
    let keys = decimal(vec![1, u64::MAX.into()], 20, 0);
    let file = parquet(
        &batch(vec![("id", Arc::clone(&keys)), ("price", decimal(vec![1_999, -200], 18, 2))]),
        Compression::UNCOMPRESSED,
    );
    let rows = read_inferred(&source("in", file), &by_id()).unwrap();
    assert_eq!(shown(&rows), [r#"1 {"price":19.99}"#, r#"18446744073709551615 {"price":-2.0}"#]);
    let long = batch(vec![("id", ids()), ("price", decimal(vec![1, 12_345_678_901_234_567], 18, 2))]);
    assert!(read_inferred(&source("in", arrow_file(&long)), &by_id()).is_err(), "an f64 would round it");
    let file = arrow_file(&batch(vec![("src", ids()), ("dst", keys)]));
    assert_eq!(edges(&file, &EdgeColumns::default()).unwrap()[1].1, u64::MAX);
}

#[test]
fn times_far_from_now_are_right_or_refused() {
    let schema = parse_message_type("message m { required int64 id; required int96 until; }").unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), properties).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[1, 2], None, None).unwrap();
    column.close().unwrap();
    let day = |day: u32| {
        let mut time = Int96::new();
        time.set_data(0, 0, day);
        time
    };
    let mut column = group.next_column().unwrap().unwrap();
    // 9999-12-31 and 1500-06-01 as days of the Julian calendar.
    column.typed::<Int96Type>().write_batch(&[day(5_373_484), day(2_269_075)], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let rows = read_inferred(&source("in", file.into_inner().unwrap()), &by_id()).unwrap();
    assert_eq!(shown(&rows), [r#"1 {"until":253402214400000}"#, r#"2 {"until":-14818723200000}"#]);

    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![0, i64::MAX / 1_000 + 1]));
    let file = arrow_file(&batch(vec![("id", ids()), ("until", seconds)]));
    let refused = read_inferred(&source("in", file), &by_id()).unwrap_err().to_string();
    assert!(refused.contains("a time out of range"), "{refused}");
}

#[test]
fn durations_are_refused_by_name() {
    let durations: ArrayRef = Arc::new(DurationSecondArray::from(vec![1, 2]));
    let batch =
        batch(vec![("id", ids()), ("took", durations), ("t", Arc::new(StringArray::from(vec!["a", "b"])))]);
    for file in [arrow_file(&batch), parquet(&batch, Compression::UNCOMPRESSED)] {
        let refused = read_inferred(&source("in", file), &by_id()).unwrap_err().to_string();
        assert!(refused.contains("took"), "{refused}");
    }
}

#[test]
fn layouts_of_other_programs_are_read() {
    let two = [(1, 2, vec![]), (2, 3, vec![])];
    for text in [
        "% sym positive\n% 2 3 3\n1 2 1 1212\n2 3 1 1213\n",
        "% sym\n1 2\t1 1212\n2 3\t1 1213\n",
        "%%MatrixMarket matrix coordinate pattern general\n% c\n5 5 2\n1 2\n2 3\n",
        "# a\n1\t2\n# b\n2\t3\n# end",
        "\n# a\n1\t2\n2\t3\n",
        "  1   2\n 2\t3 \n",
        "sep=;\nsrc;dst\n1;2\n2;3\n",
        "\u{feff}sep=;\r\nsrc;dst\r\n1;2\r\n2;3\r\n",
        "target,source\n2,1\n3,2\n",
        "creationDate|Person1Id|Person2Id\n9|1|2\n9|2|3\n",
        ",src,dst\n0,1,2\n1,2,3\n",
        "{\"weight\":5,\"source\":1,\"target\":2}\n{\"weight\":6,\"source\":2,\"target\":3}\n",
    ] {
        assert_eq!(edges(text.as_bytes(), &EdgeColumns::default()).unwrap(), two, "{text}");
    }
    for text in
        ["a,b,c\n1,2,3\n", "{\n  \"src\": 1,\n  \"dst\": 2\n}\n", "{}\n", "{\"src\":\n1}\n", "src,src\n1,2\n"]
    {
        assert!(edges(text.as_bytes(), &EdgeColumns::default()).is_err(), "{text}");
    }
}

#[test]
fn stores_read_semicolons_and_the_line_that_names_them() {
    for text in [
        "key;value\na;1\nb;2\n",
        "sep=;\nkey;value\na;1\nb;2\n",
        "\u{feff}sep=;\r\nkey;value\r\na;1\r\nb;2\r\n",
    ] {
        let rows =
            crate::support::read(&source("in", text), &options(KeyType::String, ValueShape::Text)).unwrap().0;
        assert_eq!(shown(&rows), ["a 1", "b 2"], "{text}");
    }
    let utf16 = b"\xff\xfek\0e\0y\0";
    let refused = crate::support::read(&source("in", utf16), &options(KeyType::String, ValueShape::Text));
    assert!(refused.unwrap_err().to_string().contains("UTF-16"));
}

/// The rows of files in memory, as records with an inferred schema.
fn records(files: &[(&str, &[u8])]) -> Result<Vec<String>, kith_build::rows::RowsError> {
    let sources: Vec<Box<dyn kith_build::rows::RowSource>> =
        files.iter().flat_map(|(name, bytes)| source(name, bytes)).collect();
    read_inferred(&sources, &named("id", ValueShape::Json)).map(|rows| shown(&rows))
}

#[test]
fn folders_of_hive_are_columns_in_every_format() {
    let null = "__HIVE_DEFAULT_PARTITION__";
    let csv = records(&[
        ("t/country=ch/part-0.csv", b"id,n\n1,5\n"),
        (&format!("t/country={null}/part-0.csv"), b"id,n\n2,6\n"),
        ("t/country=S%C3%A3o%20Tom%C3%A9/part-0.jsonl", b"{\"id\":3,\"n\":7}\n"),
    ]);
    assert_eq!(
        csv.unwrap(),
        [
            r#"1 {"n":5,"country":"ch"}"#,
            r#"2 {"n":6,"country":null}"#,
            "3 {\"n\":7,\"country\":\"S\u{e3}o Tom\u{e9}\"}"
        ]
    );
    let batch = crate::support::containers::batch();
    let parquet = parquet(&batch, Compression::UNCOMPRESSED);
    let sources = source("t/year=2020/p.parquet", &parquet);
    let schema = kith_build::rows::infer_schema(&sources, &named("id", ValueShape::Json), None).unwrap();
    assert!(schema.index_of("year").is_some());
    // A schema may give the column another type, and all rows have it.
    let typed = named("id", record(r#"{"name":"n","type":"i64"},{"name":"year","type":"i32"}"#));
    let sources = source("t/year=2020/p.csv", "id,n\n1,5\n");
    assert_eq!(shown(&crate::support::read(&sources, &typed).unwrap().0), [r#"1 {"n":5,"year":2020}"#]);
}

#[test]
fn folders_that_cannot_be_columns_are_refused_by_name() {
    let refused = |name: &str, text: &str, options: &kith_build::rows::RowOptions| {
        crate::support::read(&source(name, text), options).unwrap_err().to_string()
    };
    let record = named("id", record(r#"{"name":"n","type":"i64"}"#));
    for (name, text, options, said) in [
        ("t/country=ch/a.csv", "key,value\n1,x\n", &crate::support::ids(), "country"),
        ("t/country=ch/a.csv", "id,n\n1,5\n", &record, "\"country\" that is not in the schema"),
        ("t/id=7/a.csv", "id,n\n1,5\n", &record, "but the key has the same name"),
        ("t/n=x/a.csv", "id\n1\n", &record, "n=x"),
        ("t/n=5/a.csv", "id,n\n1,5\n", &record, "\"n\""),
    ] {
        let error = refused(name, text, options);
        assert!(error.contains(said), "{name}: {error}");
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused_by_name_in_every_format() {
    for word in ["NaN", "nan", "inf", "-inf", "Infinity", "+Infinity"] {
        let error = records(&[("a.csv", format!("id,score\n1,0.5\n2,{word}\n3,1\n").as_bytes())]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("score") && error.contains("not a finite number"), "{word}: {error}");
    }
    assert!(records(&[("a.jsonl", b"{\"id\":1,\"score\":NaN}\n")]).is_err());
    for word in ["NULL", "null", "None", "NA", "<NA>"] {
        let error = records(&[("a.csv", format!("id,score\n1,5\n2,{word}\n").as_bytes())]).unwrap_err();
        assert!(error.to_string().contains("score"), "{word}: {error}");
        let words = records(&[("a.csv", format!("id,name\n1,Ada\n2,{word}\n").as_bytes())]).unwrap();
        assert_eq!(words[1], format!("2 {{\"name\":\"{word}\"}}"));
    }
    // These are also words.
    let words = records(&[("a.csv", b"id,name\n1,Nan\n2,inf\n3,Ada\n")]).unwrap();
    assert_eq!(words[0], r#"1 {"name":"Nan"}"#);
    assert_eq!(records(&[("a.csv", b"id,name\n1,Nan\n")]).unwrap(), [r#"1 {"name":"Nan"}"#]);
}

/// Rows of one timestamp, list or map of them, read with these units; with what is said about unlikely times.
fn timed(file: impl AsRef<[u8]>, times: &[&str]) -> Result<(Vec<String>, Option<String>), String> {
    let fields = r#"{"name":"at","type":"timestamp","nullable":true},
        {"name":"all","type":"list<timestamp>","nullable":true},
        {"name":"by","type":"map<text,timestamp>","nullable":true}"#;
    let times = times.iter().map(|text| text.parse().unwrap()).collect();
    let options = RowOptions { times, fill_missing: true, ..named("id", record(fields)) };
    let read = crate::support::read(&source("in", file), &options).map_err(|error| error.to_string())?;
    Ok((shown(&read.0), read.1.unlikely_time))
}

#[test]
fn timestamps_of_records_are_numbers_in_a_unit_or_dates() {
    let csv =
        "id,at\n1,1766000000000\n2,2025-12-17T19:33:20Z\n3,2025-12-17 20:33:20+01\n4,2025-12-17\n5,\n6,-1\n";
    let json = "{\"id\":1,\"at\":1766000000000}\n{\"id\":2,\"at\":\"2025-12-17T19:33:20Z\"}\n\
        {\"id\":3,\"at\":\"2025-12-17 20:33:20+0100\"}\n{\"id\":4,\"at\":\"2025-12-17\"}\n{\"id\":5,\"at\":null}\n\
        {\"id\":6,\"at\":-1}\n";
    let expected = ["1766000000000", "1766000000000", "1766000000000", "1765929600000", "null", "-1"];
    for text in [csv, json] {
        let (rows, doubt) = timed(text, &[]).unwrap();
        let times = rows.iter().map(|row| row.split([':', ',']).nth(1).unwrap());
        assert_eq!((times.collect::<Vec<_>>(), doubt), (expected.to_vec(), None), "{text}");
    }
    for (unit, number, kind) in [
        ("seconds", "1766000000", "time-s"),
        ("microseconds", "1766000000000000", "time-us"),
        ("nanoseconds", "1766000000000000000", "time-ns"),
    ] {
        let typed = Int64Array::from(vec![number.parse::<i64>().unwrap()]);
        let typed = batch(vec![("id", Arc::new(UInt64Array::from(vec![1]))), ("at", Arc::new(typed))]);
        let texts = [
            format!("id,at\n1,{number}\n").into_bytes(),
            format!("{{\"id\":1,\"at\":{number}}}\n").into_bytes(),
            parquet(&typed, Compression::UNCOMPRESSED),
        ];
        for text in texts {
            let doubt = timed(&text, &[]).unwrap().1.unwrap();
            assert!(doubt.contains(unit) && doubt.contains(&format!("--times at:{kind}")), "{doubt}");
            let (rows, doubt) = timed(&text, &[&format!("at:{kind}")]).unwrap();
            assert_eq!(rows, [r#"1 {"at":1766000000000,"all":null,"by":null}"#]);
            assert_eq!(doubt, None);
        }
        let many = format!("{{\"id\":1,\"all\":[{number},\"2025-12-17\"],\"by\":{{\"k\":{number}}}}}\n");
        assert!(timed(&many, &[]).unwrap().1.is_some_and(|doubt| doubt.starts_with("all ")));
        let (rows, _) = timed(&many, &[&format!("all:{kind}"), &format!("by:{kind}")]).unwrap();
        let expected = r#"1 {"at":null,"all":[1766000000000,1765929600000],"by":{"k":1766000000000}}"#;
        assert_eq!(rows, [expected]);
    }
    for (wrong, times) in [
        ("id,at\n1,yesterday\n", &[][..]),
        ("id,at\n1,2025-12-17T19:33:20\n", &[]),
        ("id,at\n1,9223372036854775808\n", &[]),
        ("id,at\n1,9223372036854775807\n", &["at:time-s"]),
        ("id,at\n1,1.5\n", &[]),
        ("{\"id\":1,\"at\":true}\n", &[]),
    ] {
        let error = timed(wrong, times).unwrap_err();
        assert!(error.contains("timestamp (") || error.contains("does not fit"), "{wrong}: {error}");
    }
    let options = RowOptions {
        times: vec!["n:time-s".parse().unwrap()],
        ..named("id", record(r#"{"name":"n","type":"i64"}"#))
    };
    assert!(options.check_times().unwrap_err().to_string().contains("\"n\", which is i64"));
    assert!("at:seconds".parse::<kith_build::rows::FieldTimes>().is_err());
}

#[test]
fn every_unit_of_times_is_exact_or_refused_at_its_extremes() {
    use arrow_array::{Date32Array, Date64Array, TimestampMicrosecondArray, TimestampMillisecondArray};
    use arrow_array::{Time32SecondArray, Time64MicrosecondArray, TimestampNanosecondArray};
    const MAX: i64 = i64::MAX;
    type Case = (&'static str, ArrayRef, [Option<i64>; 2]);
    let cases: Vec<Case> = vec![
        (
            "s",
            Arc::new(TimestampSecondArray::from(vec![MAX / 1_000, -MAX / 1_000])),
            [Some(MAX / 1_000 * 1_000), Some(-(MAX / 1_000) * 1_000)],
        ),
        ("s", Arc::new(TimestampSecondArray::from(vec![MAX, i64::MIN])), [None, None]),
        ("ms", Arc::new(TimestampMillisecondArray::from(vec![MAX, i64::MIN])), [Some(MAX), Some(i64::MIN)]),
        ("us", Arc::new(TimestampMicrosecondArray::from(vec![MAX, -1])), [Some(MAX / 1_000), Some(-1)]),
        ("ns", Arc::new(TimestampNanosecondArray::from(vec![MAX, -1])), [Some(MAX / 1_000_000), Some(-1)]),
        (
            "date32",
            Arc::new(Date32Array::from(vec![i32::MAX, i32::MIN])),
            [Some(i64::from(i32::MAX) * 86_400_000), Some(i64::from(i32::MIN) * 86_400_000)],
        ),
        ("date64", Arc::new(Date64Array::from(vec![MAX, 0])), [Some(MAX), Some(0)]),
        ("time32", Arc::new(Time32SecondArray::from(vec![1, 2])), [None, None]),
        ("time64", Arc::new(Time64MicrosecondArray::from(vec![1, 2])), [None, None]),
    ];
    for (unit, array, expected) in cases {
        for (row, expected) in expected.into_iter().enumerate() {
            let one = batch(vec![("id", Arc::new(UInt64Array::from(vec![7]))), ("at", array.slice(row, 1))]);
            let edge = batch(vec![
                ("src", Arc::new(UInt64Array::from(vec![1]))),
                ("dst", Arc::new(UInt64Array::from(vec![2]))),
                ("at", array.slice(row, 1)),
            ]);
            let columns = EdgeColumns { columns: vec!["at:time".parse().unwrap()], ..EdgeColumns::default() };
            let mut files = vec![(arrow_file(&one), arrow_file(&edge))];
            let parquet = |batch| parquet(batch, Compression::UNCOMPRESSED);
            files.push((parquet(&one), parquet(&edge)));
            for (store, graph) in files {
                let read = timed(&store, &[]).ok().map(|(rows, _)| rows[0].clone());
                let shown = expected.map(|at| format!("7 {{\"at\":{at},\"all\":null,\"by\":null}}"));
                assert_eq!(read, shown, "{unit} row {row}");
                let inferred = read_inferred(&source("in", &store), &by_id()).ok();
                let shown = expected.map(|at| format!("7 {{\"at\":{at}}}"));
                assert_eq!(
                    inferred.map(|rows| crate::support::shown(&rows)[0].clone()),
                    shown,
                    "inferred, {unit}"
                );
                let stored = expected.and_then(|at| u64::try_from(at).ok());
                let read = edges(&graph, &columns).ok().map(|edges| edges[0].2[0]);
                assert_eq!(read, stored, "edges, {unit} row {row}");
            }
        }
    }
}

#[test]
fn numbers_in_text_are_exact_or_refused_in_every_unit_of_the_flags() {
    const MAX: i64 = i64::MAX;
    for (kind, number, expected) in [
        ("time", u64::MAX, None),
        ("time", MAX as u64, Some(MAX as u64)),
        ("time-s", MAX as u64 / 1_000, Some(MAX as u64 / 1_000 * 1_000)),
        ("time-s", MAX as u64, None),
        ("time-us", MAX as u64, Some(MAX as u64 / 1_000)),
        ("time-ns", u64::MAX, Some(u64::MAX / 1_000_000)),
    ] {
        let columns =
            EdgeColumns { columns: vec![format!("at:{kind}").parse().unwrap()], ..EdgeColumns::default() };
        let edge = format!("src,dst,at\n1,2,{number}\n");
        let read = edges(edge.as_bytes(), &columns).ok().map(|edges| edges[0].2[0]);
        // Times of edges are 0 to 2^64 - 1, those of records are signed.
        let of_edge = expected.or(Some(number).filter(|_| kind == "time"));
        assert_eq!(read, of_edge, "edges, {kind} {number}");
        let row = format!("id,at\n1,{number}\n");
        let read = timed(&row, &[&format!("at:{kind}")]).ok().map(|(rows, _)| rows[0].clone());
        let shown = expected.map(|at| format!("1 {{\"at\":{at},\"all\":null,\"by\":null}}"));
        assert_eq!(read, shown, "{kind} {number}");
    }
}
