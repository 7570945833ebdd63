//! One batch of rows in every file format with typed columns.

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Int32Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

pub fn batch() -> RecordBatch {
    let mut vectors = FixedSizeListBuilder::new(Float32Builder::new(), 2);
    let mut tags = ListBuilder::new(StringBuilder::new());
    let mut counts = MapBuilder::new(None, StringBuilder::new(), arrow_array::builder::Int64Builder::new());
    for row in 0..3 {
        vectors.values().append_slice(&[row as f32, -0.5]);
        vectors.append(true);
        (0..row).for_each(|tag| tags.values().append_value(format!("t{tag}")));
        tags.append(true);
        counts.keys().append_value("k");
        counts.values().append_value(row);
        counts.append(true).unwrap();
    }
    let kinds: DictionaryArray<Int8Type> = ["x", "y", "x"].into_iter().collect();
    let columns: [(&str, ArrayRef); 10] = [
        ("id", Arc::new(UInt64Array::from(vec![0, 7, u64::MAX]))),
        ("text", Arc::new(StringArray::from(vec![Some("a"), None, Some("é")]))),
        ("bytes", Arc::new(BinaryArray::from_vec(vec![b"", b"\0\xff", b"z"]))),
        ("flag", Arc::new(BooleanArray::from(vec![true, false, true]))),
        ("small", Arc::new(Int32Array::from(vec![1, -2, 3]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![1_999, -1, 0]))),
        ("kind", Arc::new(kinds)),
        ("v", Arc::new(vectors.finish())),
        ("tags", Arc::new(tags.finish())),
        ("counts", Arc::new(counts.finish())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

pub fn parquet(batch: &RecordBatch, compression: Compression) -> Vec<u8> {
    let mut out = Vec::new();
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    out
}

pub fn arrow_file(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

pub fn arrow_stream(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}
