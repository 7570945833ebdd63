//! Files of rows: Arrow and JSON lines.

use super::*;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use std::sync::Arc;

/// An Arrow file with the columns `since`, `dst` and `src`.
fn arrow(rows: &[[Option<&str>; 3]]) -> Vec<u8> {
    let column =
        |index: usize| -> ArrayRef { Arc::new(rows.iter().map(|row| row[index]).collect::<StringArray>()) };
    let columns = [("since", column(0)), ("dst", column(1)), ("src", column(2))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn rows_of_other_files_are_counted_and_reported_as_lines_are() {
    let folder = Folder::new();
    let rows = [
        [Some("7"), Some("2"), Some("1")],
        [Some("1970-01-01T00:00:01Z"), Some("3"), Some("1")],
        [None, Some("4"), Some("1")],
        [Some("7"), Some("-5"), Some("1")],
        [Some("7"), Some("2"), Some("x")],
    ];
    let bytes = arrow(&rows);
    let (rows, text) = (folder.file("rows", &bytes), folder.file("text", "since,dst,src\n7,2,1\n"));
    let columns = EdgeColumns { columns: vec!["since:time".parse().unwrap()], ..EdgeColumns::default() };
    let options = FileOptions { max_errors: 3, ..FileOptions::default() };
    let (edges, report) = edges_with(&rows, &options, &columns).unwrap();
    assert_eq!(edges, [(1, 2, vec![7]), (1, 3, vec![1_000])]);
    assert_eq!((report.rows, report.lines, report.bytes), (5, 5, bytes.len() as u64));
    let messages: Vec<String> = report.errors.first.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "row 3: since is not a time from 1970 on, in milliseconds or as 2026-11-25T08:00:00Z: \"1,4,\"",
            "row 4: dst is negative: \"1,-5,7\"",
            "row 5: src is not a whole number: \"x,2,7\"",
        ]
    );
    assert_eq!(edges_with(&text, &options, &columns).unwrap().0, [(1, 2, vec![7])], "text is read beside it");
    let strict = FileOptions { max_errors: 2, ..options };
    let error = edges_with(&rows, &strict, &columns).unwrap_err();
    assert!(message(&folder, &error).starts_with("rows has 3 bad lines, 2 allowed; row 3: "), "{error}");
}

#[test]
fn lines_of_json_are_rows_too_and_those_that_are_none_are_reported() {
    let folder = Folder::new();
    let text = "{\"dst\":2,\"src\":1}\n[]\n{\"dst\":3,\"dst\":4,\"src\":1}\n{\"src\":1,\"dst\":5}\n";
    let options = FileOptions { max_errors: 2, ..FileOptions::default() };
    let read = edges_with(&folder.file("e.jsonl", text), &options, &EdgeColumns::default());
    let (edges, report) = read.unwrap();
    assert_eq!(edges, [(1, 2, vec![]), (1, 5, vec![])]);
    let messages: Vec<String> = report.errors.first.iter().map(ToString::to_string).collect();
    let no_object = "the line is not one JSON object of distinct members";
    assert_eq!(messages, [format!("line 2: {no_object}"), format!("line 3: {no_object}")]);
}

#[test]
fn a_file_of_rows_that_breaks_off_is_refused_whatever_is_allowed() {
    let folder = Folder::new();
    let text: String =
        (0..40_000).map(|id| format!("{{\"src\":{id},\"dst\":{}}}\n", id * 7 % 40_009)).collect();
    let packed = gzip(text.as_bytes());
    let path = folder.file("e.jsonl.gz", &packed[..packed.len() - 9]);
    let options = FileOptions { max_errors: 9, ..FileOptions::default() };
    let error = edges_with(&path, &options, &EdgeColumns::default()).unwrap_err();
    assert_eq!(
        message(&folder, &error),
        "e.jsonl.gz is cut off: its gzip data end early; fetch or write it again"
    );
}
