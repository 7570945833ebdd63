//! Wrong lines, with their messages.

use super::*;

#[test]
fn wrong_lines_are_named_with_their_number_and_reason() {
    let folder = Folder::new();
    let text = "src,dst\n1,2\nabc,5\n-3,4\n18446744073709551616,1\n,2\n1\n1,2,3\n\"1,2\n\"1\"x,2\n5,6\n";
    let path = folder.file("bad.csv", text);
    let error = edges(&path).unwrap_err();
    assert_eq!(
        message(&folder, &error),
        "bad.csv has 8 bad lines, 0 allowed; line 3: src is not a whole number: \"abc,5\""
    );
    let FileError::BadLines { errors, complete: true, .. } = error else { panic!("{error}") };
    let lines: Vec<String> = errors.first.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "line 3: src is not a whole number: \"abc,5\"",
            "line 4: src is negative: \"-3,4\"",
            "line 5: src is above 18446744073709551615: \"18446744073709551616,1\"",
            "line 6: src is empty: \",2\"",
            "line 7: expected 2 columns, got 1: \"1\"",
            "line 8: expected 2 columns, got 3: \"1,2,3\"",
            "line 9: text follows a closing quote: \"\"1,2\"",
            "line 10: text follows a closing quote: \"\"1\"x,2\"",
        ]
    );

    let lenient = FileOptions { max_errors: 8, ..FileOptions::default() };
    let (kept, report) = edges_with(&path, &lenient, &EdgeColumns::default()).unwrap();
    assert_eq!(kept, [(1, 2, vec![]), (5, 6, vec![])]);
    assert_eq!((report.rows, report.errors.by_reason["wrong column count"]), (10, 2));
}

#[test]
fn an_unclosed_quote_costs_one_line() {
    let folder = Folder::new();
    let path = folder.file("bad.csv", "1,2\n\"3,4\n5,6\n7,8\n");
    let lenient = FileOptions { max_errors: 1, ..FileOptions::default() };
    let (kept, report) = edges_with(&path, &lenient, &EdgeColumns::default()).unwrap();
    assert_eq!(kept.iter().map(|edge| edge.0).collect::<Vec<_>>(), [1, 5, 7]);
    assert_eq!(report.errors.first[0].to_string(), "line 2: a quoted field is not closed: \"\"3,4\"");
}

#[test]
fn a_hopeless_file_is_given_up_after_ten_wrong_lines() {
    let folder = Folder::new();
    let path = folder.file("bad.csv", "a,b\n".repeat(5_000));
    let error = edges(&path).unwrap_err();
    assert_eq!(
        message(&folder, &error),
        "bad.csv has at least 10 bad lines, 0 allowed; line 2: src is not a whole number: \"a,b\""
    );
    let FileError::BadLines { errors, .. } = error else { panic!("{error}") };
    assert_eq!(errors.first.len(), ROW_ERRORS_SHOWN);
}

#[test]
fn an_id_of_spaces_only_is_empty() {
    let folder = Folder::new();
    let error = edges(&folder.file("bad.csv", "1,2\n1,  \n")).unwrap_err();
    assert!(message(&folder, &error).ends_with("line 2: dst is empty: \"1,  \""), "{error}");
}

#[test]
fn column_values_and_kind_names_are_checked() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "src,dst,at\n1,2,yesterday\n");
    let columns = EdgeColumns { columns: vec!["at:time".parse().unwrap()], ..EdgeColumns::default() };
    let error = edges_with(&path, &FileOptions::default(), &columns).unwrap_err();
    assert!(message(&folder, &error).ends_with(
        "line 2: at is not a time from 1970 on, in milliseconds or as 2026-11-25T08:00:00Z: \"1,2,yesterday\""
    ));
    let columns = EdgeColumns { columns: vec!["weight:f64".parse().unwrap()], ..EdgeColumns::default() };
    let error = edges_with(&path, &FileOptions::default(), &columns).unwrap_err();
    assert_eq!(
        message(&folder, &error),
        "t.csv has no column \"weight\" for weight (its columns: src, dst, at)"
    );

    let path = folder.file("e.csv", "member,kind,entity\n1,../x,2\n");
    let each = |_: u64, _: &str, _: u64, _: &[u64]| Ok::<(), ()>(());
    let read = read_entities(&path, &FileOptions::default(), &[], &mut |_| {}, each);
    let Err(ReadError::Input(error)) = read else { panic!("a path is not a kind") };
    assert_eq!(
        message(&folder, &error),
        "e.csv has 1 bad line, 0 allowed; line 2: kind is not a name (1 to 64 letters, digits, '_' or '-'): \"1,../x,2\""
    );
}

#[test]
fn edges_that_take_more_than_allowed_are_refused() {
    let folder = Folder::new();
    let lines = |of: &dyn Fn(u64) -> String| (0..1_000).map(of).collect::<String>();
    let pairs = lines(&|id| format!("{id},{}\n", id + 1));
    let json = lines(&|id| format!("{{\"src\":{id},\"dst\":{}}}\n", id + 1));
    let files = [
        folder.file("e.csv.gz", gzip(pairs.as_bytes())),
        folder.file("quoted.csv", pairs.replace(',', ",\"").replace('\n', "\"\n")),
        folder.file("e.jsonl", json),
    ];
    for path in files {
        let with = |most| FileOptions { unpacked_max: Some(most), ..FileOptions::default() };
        let read = |most| edges_with(&path, &with(most), &EdgeColumns::default());
        assert_eq!(read(16_000).expect("as much as is allowed").1.rows, 1_000);
        let error = read(15_999).expect_err("more than is allowed");
        assert!(matches!(error, FileError::Rows(RowsError::Expands { max: 15_999, .. })), "{error}");
        let text = message(&folder, &error);
        assert!(
            text.contains("expands to more than 15999 bytes") && text.contains("--unpacked-max"),
            "{text}"
        );
    }
}
