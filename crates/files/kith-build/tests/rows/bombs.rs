//! Small files that decompress to much more: they are read within the allowed memory, or refused.

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use kith_build::rows::{
    KeyType, MemorySource, ReadError, RowOptions, RowSource, RowsError, ValueShape, read_rows,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{WriterProperties, WriterVersion};
use std::process::Command;
use std::sync::Arc;

const MIB: usize = 1 << 20;
/// Set when a test runs itself in a process with a memory limit.
const CAPPED: &str = "KITH_ROWS_TEST_CAPPED";
const CAP_KIB: usize = 800 << 10;

fn batch(rows: usize, name: &str, column: ArrayRef) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    RecordBatch::try_from_iter([("key", keys), (name, column)]).expect("columns of one length")
}

/// Rows that have the same text of this many bytes.
fn repeated(rows: usize, bytes: usize) -> RecordBatch {
    let text = "x".repeat(bytes);
    batch(rows, "value", Arc::new(StringArray::from_iter_values(std::iter::repeat_n(&text, rows))))
}

fn parquet(batches: &[RecordBatch], properties: WriterProperties) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batches[0].schema(), Some(properties)).expect("a writer");
    batches.iter().for_each(|batch| writer.write(batch).expect("written"));
    writer.close().expect("closed");
    out
}

fn properties() -> parquet::file::properties::WriterPropertiesBuilder {
    let zstd = Compression::ZSTD(Default::default());
    WriterProperties::builder().set_compression(zstd).set_dictionary_page_size_limit(64 * MIB)
}

fn read(file: Vec<u8>, options: &RowOptions) -> Result<(u64, usize), RowsError> {
    let sources: [Box<dyn RowSource>; 1] = [Box::new(MemorySource::new("small.parquet", file))];
    let mut bytes = 0;
    let read = read_rows(&sources, options, |_, value| {
        bytes += value.len();
        Ok::<(), ()>(())
    });
    match read {
        Ok(report) => Ok((report.rows, bytes)),
        Err(ReadError::Input(error)) => Err(error),
        Err(ReadError::Caller(())) => panic!("the caller has no errors"),
    }
}

fn text(memory_bytes: usize) -> RowOptions {
    RowOptions { memory_bytes, ..RowOptions::new(KeyType::Id, ValueShape::Text) }
}

fn assert_refused(file: Vec<u8>, options: &RowOptions) {
    let length = file.len();
    let error = read(file, options).expect_err("it needs more than is allowed");
    assert!(matches!(error, RowsError::TooLarge { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("small.parquet needs") && message.contains("--memory"), "{message}");
    assert!(length < 100_000, "{length} bytes");
}

/// Runs a test of this file in a separate process with little memory. Returns whether this is that process.
fn is_capped(test: &str) -> bool {
    if std::env::var_os(CAPPED).is_some() {
        return true;
    }
    let script = format!("ulimit -v {CAP_KIB}; exec \"$0\" --exact bombs::{test} --nocapture");
    let program = std::env::current_exe().expect("its path");
    let run =
        Command::new("sh").arg("-c").arg(script).arg(program).env(CAPPED, "1").output().expect("sh runs");
    let said = String::from_utf8_lossy(&run.stderr).into_owned() + &String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{}: {said}", run.status);
    false
}

#[test]
fn a_value_that_many_rows_repeat_is_read_a_few_rows_at_a_time() {
    if !is_capped("a_value_that_many_rows_repeat_is_read_a_few_rows_at_a_time") {
        return;
    }
    // The file is written in parts, because its writer has no more memory than its reader.
    let file = parquet(&vec![repeated(16, MIB); 64], properties().build());
    assert!(file.len() < 100_000, "{} bytes", file.len());
    let more = RowOptions { unpacked_max: Some(2 << 30), ..text(64 * MIB) };
    let rows = read(file.clone(), &more).expect("it fits");
    assert_eq!(rows, (1_024, 1_024 * MIB));
    assert_refused(file, &text(3 * MIB));
}

#[test]
fn a_page_that_is_larger_than_allowed_is_refused() {
    let properties = properties().set_dictionary_enabled(false).build();
    let file = parquet(&[repeated(2, 24 * MIB)], properties);
    assert_eq!(read(file.clone(), &text(256 * MIB)).expect("it fits").0, 2);
    assert_refused(file, &text(16 * MIB));
}

#[test]
fn a_row_with_many_items_is_refused() {
    let schema = r#"{"fields":[{"name":"x","type":"list<i32>"}]}"#.parse().expect("a schema");
    let mut options = RowOptions::new(KeyType::Id, ValueShape::Record(schema));
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let mut lists = ListBuilder::new(Int32Builder::new());
        for items in [3, 2_000_000, 0] {
            lists.append_value(std::iter::repeat_n(Some(7), items));
        }
        let file = batch(3, "x", Arc::new(lists.finish()));
        options.memory_bytes = 16 * MIB;
        assert_refused(parquet(&[file], properties().set_writer_version(version).build()), &options);

        // The same number of items in as many rows as usual.
        let mut lists = ListBuilder::new(Int32Builder::new());
        (0..20_000).for_each(|_| lists.append_value(std::iter::repeat_n(Some(7), 100)));
        let file = batch(20_000, "x", Arc::new(lists.finish()));
        let file = parquet(&[file], properties().set_writer_version(version).build());
        assert_eq!(read(file, &options).expect("it fits").0, 20_000);
    }
}

#[test]
fn arrow_batches_that_unpack_to_more_than_allowed_are_refused() {
    let batch = repeated(2, 24 * MIB);
    let zstd =
        IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).expect("built in");
    let mut file =
        FileWriter::try_new_with_options(Vec::new(), &batch.schema(), zstd.clone()).expect("a writer");
    file.write(&batch).expect("written");
    let mut stream = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), zstd).expect("a writer");
    stream.write(&batch).expect("written");
    for file in [file.into_inner().expect("ended"), stream.into_inner().expect("ended")] {
        assert_eq!(read(file.clone(), &text(256 * MIB)).expect("it fits"), (2, 48 * MIB));
        assert_refused(file, &text(16 * MIB));
    }
}

/// A source that can be read, and whose size is not known.
struct Pipe(Vec<u8>);

impl RowSource for Pipe {
    fn name(&self) -> &str {
        "pipe"
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn open(&self) -> std::io::Result<Box<dyn std::io::Read + Send>> {
        Ok(Box::new(std::io::Cursor::new(self.0.clone())))
    }
}

/// The rows of an expanded file would be sorted on the disk.
#[test]
fn a_small_file_that_expands_to_a_multiple_of_its_size_is_refused() {
    let file = parquet(&vec![repeated(256, MIB); 6], properties().build());
    assert!(file.len() < 100_000, "{} bytes", file.len());
    let read_with = |unpacked_max| {
        let options = RowOptions { unpacked_max, ..text(64 * MIB) };
        read(file.clone(), &options).map_err(|error| match error {
            RowsError::Expands { max, .. } => (max, error.to_string()),
            other => panic!("{other}"),
        })
    };
    let (max, message) = read_with(None).expect_err("it expands to 1.5 GiB");
    assert_eq!(max, 1 << 30);
    assert!(message.contains("small.parquet expands") && message.contains("--unpacked-max"), "{message}");
    assert_eq!(read_with(Some(20 << 20)).expect_err("less is allowed").0, 20 << 20);
    assert_eq!(read_with(Some(2 << 30)), Ok((1_536, 1_536 * MIB)));
    // Of a pipe, only what was read is known.
    let pipe: [Box<dyn RowSource>; 1] = [Box::new(Pipe(file.clone()))];
    let piped = read_rows(&pipe, &text(64 * MIB), |_, _| Ok::<(), ()>(()));
    assert!(matches!(piped, Err(ReadError::Input(RowsError::Expands { max, .. })) if max == 1 << 30));
    // Text is compressed as well.
    let mut lines = b"key,value\n".to_vec();
    (0..40_000).for_each(|key: u32| lines.extend(format!("{key},{}\n", "x".repeat(1_000)).into_bytes()));
    let options = RowOptions { unpacked_max: Some(30 << 20), ..text(64 * MIB) };
    let refused = read(zstd::encode_all(&lines[..], 3).expect("compressed"), &options);
    assert!(matches!(refused, Err(RowsError::Expands { .. })), "{refused:?}");
}
