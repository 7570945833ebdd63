//! Parquet, Arrow and raw vectors: good files, and damaged ones.

#![allow(clippy::unwrap_used)]

use crate::support::containers::{arrow_file, arrow_stream, batch, parquet};
use crate::support::{gzip, options, read, read_inferred, refusal, shown, source, with_format};
use arrow_array::builder::{FixedSizeListBuilder, Float32Builder, ListBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, StructArray, UInt64Array,
};
use kith_build::rows::{Format, KeyType, RowOptions, RowsError, ValueShape, infer_schema};
use parquet::basic::Compression;
use proptest::prelude::*;
use std::sync::Arc;

fn by_id(value: ValueShape) -> RowOptions {
    RowOptions { key_field: Some("id".to_owned()), ..options(KeyType::Id, value) }
}

const WANT: [&str; 3] = [
    r#"0 {"text":"a","bytes":"","flag":true,"small":1,"at":1,"kind":"x","v":[0.0,-0.5],"tags":[],"counts":{"k":0}}"#,
    r#"7 {"text":null,"bytes":"AP8=","flag":false,"small":-2,"at":-1,"kind":"y","v":[1.0,-0.5],"tags":["t0"],"counts":{"k":1}}"#,
    r#"18446744073709551615 {"text":"é","bytes":"eg==","flag":true,"small":3,"at":0,"kind":"x","v":[2.0,-0.5],"tags":["t0","t1"],"counts":{"k":2}}"#,
];

#[test]
fn the_same_rows_come_out_of_every_container() {
    let batch = batch();
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::LZ4_RAW,
        Compression::GZIP(Default::default()),
    ];
    let mut files: Vec<Vec<u8>> = codecs.into_iter().map(|codec| parquet(&batch, codec)).collect();
    files.extend([arrow_file(&batch), arrow_stream(&batch)]);
    files.push(gzip(&files[0]));
    for file in files {
        let sources = source("in", file);
        assert_eq!(shown(&read_inferred(&sources, &by_id(ValueShape::Json)).unwrap()), WANT);
        let schema = infer_schema(&sources, &by_id(ValueShape::Json), None).unwrap().canonical().to_owned();
        assert!(
            schema.contains(r#""name":"v","type":"vector<f32,2>""#),
            "lists of a fixed length are vectors: {schema}"
        );
        // The same column can be declared as a vector of other elements.
        let declared = schema.replace("vector<f32,2>", "vector<f16,2>").parse().unwrap();
        let rows = read(&sources, &by_id(ValueShape::Record(declared))).unwrap().0;
        assert_eq!(shown(&rows), WANT);
    }
}

#[test]
fn lists_that_only_happen_to_have_one_length_stay_lists() {
    let mut lists = ListBuilder::new(Float32Builder::new());
    let mut doubles = FixedSizeListBuilder::new(arrow_array::builder::Float64Builder::new(), 1);
    for row in 0..2 {
        lists.values().append_slice(&[row as f32, 0.5]);
        lists.append(true);
        doubles.values().append_value(0.1);
        doubles.append(true);
    }
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(UInt64Array::from(vec![0, 7]))),
        ("v", Arc::new(lists.finish())),
        ("d", Arc::new(doubles.finish())),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for file in [parquet(&batch, Compression::UNCOMPRESSED), arrow_file(&batch)] {
        let schema = infer_schema(&source("in", file), &by_id(ValueShape::Json), None).unwrap();
        assert!(schema.canonical().contains(r#""name":"v","type":"list<f32>""#), "{schema}");
        assert!(
            schema.canonical().contains(r#""name":"d","type":"list<f64>""#),
            "vectors have no f64: {schema}"
        );
    }
}

#[test]
fn files_of_other_writers_are_read_or_named() {
    let made = source("in", include_bytes!("../../testdata/pyarrow.parquet"));
    let want = [
        r#"0 {"name":"a","x":0.5,"when":1704067200000,"emb":[0.0,0.5],"cat":"a","m":{"k":1},"u":18446744073709551615}"#,
        r#"7 {"name":null,"x":0.33333334,"when":1704067200000,"emb":[1.0,0.5],"cat":"b","m":{},"u":0}"#,
    ];
    assert_eq!(shown(&read_inferred(&made, &by_id(ValueShape::Json)).unwrap()), want);
    let brotli = source("in", include_bytes!("../../testdata/pyarrow-brotli.parquet"));
    let error = read_inferred(&brotli, &by_id(ValueShape::Json)).unwrap_err();
    assert!(matches!(error, RowsError::Unsupported { .. }), "{error}");
}

#[test]
fn columns_and_rows_that_do_not_fit_are_reported() {
    let of = |name: &str, column: ArrayRef| {
        let id: ArrayRef = Arc::new(Int64Array::from(vec![1; column.len()]));
        parquet(&RecordBatch::try_from_iter([("id", id), (name, column)]).unwrap(), Compression::SNAPPY)
    };
    let shape = |field_type: &str| {
        let text = format!(r#"{{"fields":[{{"name":"x","type":"{field_type}"}}]}}"#);
        by_id(ValueShape::Record(text.parse().unwrap()))
    };
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN]));
    assert!(
        refusal(of("x", numbers.clone()), &shape("f64"))
            .ends_with("in row 2: field \"x\": it is not a finite number")
    );
    assert!(refusal(of("x", numbers.clone()), &shape("text")).contains("expected text, got number 1.0"));
    assert!(refusal(of("y", numbers), &shape("f64")).contains("column \"y\" that is not in the schema"));
    let mut ragged = ListBuilder::new(Float32Builder::new());
    ragged.append_value([Some(1.0), Some(2.0)]);
    ragged.append_value([Some(1.0)]);
    let ragged: ArrayRef = Arc::new(ragged.finish());
    assert!(
        refusal(of("x", ragged), &shape("vector<f32,2>"))
            .ends_with("expected a vector of 2 dimensions, got 1")
    );
    let mut gaps = ListBuilder::new(Float32Builder::new());
    gaps.append_value([Some(1.0), None]);
    let gaps: ArrayRef = Arc::new(gaps.finish());
    assert!(
        refusal(of("x", gaps), &shape("list<f32>")).contains("item 2: a list, vector or map holds no nulls")
    );
    let whole: ArrayRef = Arc::new(Float64Array::from(vec![3.0]));
    assert_eq!(shown(&read(&source("in", of("x", whole)), &shape("i64")).unwrap().0), [r#"1 {"x":3}"#]);
    let nested: ArrayRef = Arc::new(StructArray::from(batch()));
    let error = infer_schema(&source("in", of("x", nested)), &by_id(ValueShape::Json), None).unwrap_err();
    assert!(matches!(error, RowsError::ColumnType { .. }), "{error}");
}

#[test]
fn keys_of_a_typed_column_are_ids_only_if_whole_and_not_negative() {
    let keyed = |key: ArrayRef| {
        let value: ArrayRef = Arc::new(StringArray::from(vec!["v"; key.len()]));
        parquet(
            &RecordBatch::try_from_iter_with_nullable([("key", key, true), ("value", value, true)]).unwrap(),
            Compression::SNAPPY,
        )
    };
    let ids = options(KeyType::Id, ValueShape::Text);
    let message_for = |key: ArrayRef| refusal(keyed(key), &ids);
    assert!(
        message_for(Arc::new(Int64Array::from(vec![1, -1])))
            .contains("row 2: key -1 is no id: ids are not negative")
    );
    assert!(message_for(Arc::new(Int64Array::from(vec![Some(1), None]))).contains("row 2: it has no key"));
    assert!(message_for(Arc::new(Float64Array::from(vec![1.5]))).contains("floating"));
    assert!(message_for(Arc::new(BooleanArray::from(vec![true]))).contains("false or true"));
    assert_eq!(
        shown(&read(&source("in", keyed(Arc::new(StringArray::from(vec!["12"])))), &ids).unwrap().0),
        ["12 v"]
    );
    let text = options(KeyType::String, ValueShape::Text);
    assert!(
        refusal(keyed(Arc::new(Int64Array::from(vec![1]))), &text)
            .contains("key is a number, keys of this store are text")
    );
}

#[test]
fn raw_vectors_are_numbered_through_all_files() {
    let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let raw = RowOptions {
        dimensions: Some(2),
        ..with_format(options(KeyType::Id, ValueShape::Json), Format::F32le)
    };
    let sources: Vec<_> = source("a", bytes(&[1.0, 2.0, 3.0, 4.0]))
        .into_iter()
        .chain(source("b", gzip(&bytes(&[5.0, 6.0]))))
        .collect();
    let got = read_inferred(&sources, &raw).unwrap();
    assert_eq!(
        shown(&got),
        [r#"0 {"vector":[1.0,2.0]}"#, r#"1 {"vector":[3.0,4.0]}"#, r#"2 {"vector":[5.0,6.0]}"#]
    );
    let error = read_inferred(&source("c", bytes(&[1.0, 2.0, 3.0])), &raw).unwrap_err().to_string();
    assert_eq!(error, "c is 12 bytes long, not a multiple of the 8 of a row of 2 dimensions");
    let error = read_inferred(&source("c", bytes(&[1.0, 2.0, 3.0, f32::NAN])), &raw).unwrap_err().to_string();
    assert!(error.ends_with("c row 2: field \"vector\", item 2: it is not a finite number"), "{error}");
    let no_dimensions = RowOptions { dimensions: None, ..raw.clone() };
    assert!(read_inferred(&sources, &no_dimensions).unwrap_err().to_string().contains("need --dims"));
    let strings = RowOptions { key: KeyType::String, ..raw };
    assert!(
        read_inferred(&sources, &strings)
            .unwrap_err()
            .to_string()
            .contains("keys of this store are of type string")
    );
}

#[test]
fn truncated_files_are_errors_wherever_they_are_cut() {
    let batch = batch();
    for file in [parquet(&batch, Compression::SNAPPY), arrow_file(&batch)] {
        for cut in (8..file.len()).step_by(97).chain([file.len() - 1]) {
            let error = read_inferred(&source("in", &file[..cut]), &by_id(ValueShape::Json)).unwrap_err();
            assert!(matches!(error, RowsError::Damaged { .. }), "cut at {cut}: {error}");
        }
    }
    let stream = arrow_stream(&batch);
    for cut in (8..stream.len() - 8).step_by(97) {
        let got = read_inferred(&source("in", &stream[..cut]), &by_id(ValueShape::Json));
        assert!(got.is_err(), "a stream without its end mark, cut at {cut}: {got:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn damaged_files_never_panic(which in 0usize..3, damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let batch = batch();
        let mut file = match which {
            0 => parquet(&batch, Compression::UNCOMPRESSED),
            1 => arrow_file(&batch),
            _ => arrow_stream(&batch),
        };
        for (index, byte) in damage {
            let index = index.index(file.len());
            file[index] = byte;
        }
        let _ = read_inferred(&source("in", file), &by_id(ValueShape::Json));
    }
}
