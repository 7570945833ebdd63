//! Measures the rows per second of each format, with one thread, for a million rows of a key and four fields in memory.

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use divan::counter::ItemsCount;
use kith_build::rows::{KeyType, MemorySource, RowOptions, RowSource, ValueShape, infer_schema, read_rows};
use parquet::arrow::ArrowWriter;
use std::fmt::Write;
use std::sync::Arc;

const ROWS: u64 = 1_000_000;

fn main() {
    divan::main();
}

fn name(row: u64) -> String {
    format!("member number {row}")
}

fn csv() -> Vec<u8> {
    let mut out = String::from("id,name,age,score,city\n");
    for row in 0..ROWS {
        let _ =
            writeln!(out, "{row},{},{},{}.5,\"Springfield, {}\"", name(row), row % 90, row % 1_000, row % 50);
    }
    out.into_bytes()
}

fn json() -> Vec<u8> {
    let mut out = String::new();
    for row in 0..ROWS {
        let (name, age, score, city) = (name(row), row % 90, row % 1_000, row % 50);
        let _ = writeln!(
            out,
            "{{\"id\":{row},\"name\":\"{name}\",\"age\":{age},\"score\":{score}.5,\"city\":\"Springfield, {city}\"}}"
        );
    }
    out.into_bytes()
}

fn parquet() -> Vec<u8> {
    let columns: [(&str, ArrayRef); 5] = [
        ("id", Arc::new(UInt64Array::from_iter_values(0..ROWS))),
        ("name", Arc::new(StringArray::from_iter_values((0..ROWS).map(name)))),
        ("age", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| (row % 90) as i64)))),
        ("score", Arc::new(Float64Array::from_iter_values((0..ROWS).map(|row| (row % 1_000) as f64 + 0.5)))),
        (
            "city",
            Arc::new(StringArray::from_iter_values(
                (0..ROWS).map(|row| format!("Springfield, {}", row % 50)),
            )),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("the columns are of one length");
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), None).expect("the schema can be written");
    writer.write(&batch).expect("memory takes all bytes");
    writer.close().expect("memory takes all bytes");
    out
}

fn vectors() -> Vec<u8> {
    (0..ROWS * 64).flat_map(|index| (index as f32).to_le_bytes()).collect()
}

fn run(bencher: divan::Bencher<'_, '_>, bytes: Vec<u8>, dimensions: Option<u32>) {
    let sources: [Box<dyn RowSource>; 1] = [Box::new(MemorySource::new("rows", bytes))];
    let mut options = RowOptions::new(KeyType::Id, ValueShape::Json);
    options.key_field = Some("id".to_owned());
    options.dimensions = dimensions;
    if dimensions.is_some() {
        options.format = kith_build::rows::FormatChoice::Given(kith_build::rows::Format::F32le);
    }
    options.value =
        ValueShape::Record(infer_schema(&sources, &options, Some(1_000)).expect("the rows agree"));
    bencher.counter(ItemsCount::new(ROWS)).bench_local(|| {
        let mut bytes = 0;
        let report = read_rows(&sources, &options, |key, value| {
            bytes += key.len() + value.len();
            Ok::<(), std::convert::Infallible>(())
        });
        assert_eq!(report.expect("all rows are good").rows, ROWS);
        bytes
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn csv_rows(bencher: divan::Bencher<'_, '_>) {
    run(bencher, csv(), None);
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn json_rows(bencher: divan::Bencher<'_, '_>) {
    run(bencher, json(), None);
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn parquet_rows(bencher: divan::Bencher<'_, '_>) {
    run(bencher, parquet(), None);
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn f32le_rows_of_64(bencher: divan::Bencher<'_, '_>) {
    run(bencher, vectors(), Some(64));
}
