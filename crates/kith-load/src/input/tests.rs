//! What is read, what is refused, and the words in which it is said.

use super::*;
use kith_schema::ColumnKind;
use proptest::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

type Edge = (u64, u64, Vec<u64>);

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn edges_with(
    path: &Path,
    options: &TextOptions,
    columns: &EdgeColumns,
) -> Result<(Vec<Edge>, FileReport), InputError> {
    let mut edges = Vec::new();
    let read = read_edges(path, options, columns, &mut |_| {}, |src, dst, values| {
        edges.push((src, dst, values.to_vec()));
        Ok::<(), std::convert::Infallible>(())
    });
    match read {
        Ok(report) => Ok((edges, report)),
        Err(ReadError::Input(error)) => Err(error),
        Err(ReadError::Caller(never)) => match never {},
    }
}

fn edges(path: &Path) -> Result<Vec<(u64, u64)>, InputError> {
    let (edges, _) = edges_with(path, &TextOptions::default(), &EdgeColumns::default())?;
    Ok(edges.into_iter().map(|(src, dst, _)| (src, dst)).collect())
}

fn edges_of(text: &str) -> Vec<(u64, u64)> {
    edges(&Folder::new().file("edges.csv", text)).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The message of an error with its folder cut off.
fn message(folder: &Folder, error: &InputError) -> String {
    error.to_string().replace(&format!("{}/", folder.0.path().display()), "")
}

/// Text larger than several blocks, so that lines cross their borders.
fn many_lines() -> (String, Vec<(u64, u64)>) {
    let edges: Vec<(u64, u64)> = (0..120_000u64).map(|i| (i, i * 7_919 % 1_000_003)).collect();
    let lines: Vec<String> = edges.iter().map(|(src, dst)| format!("{src},{dst}")).collect();
    (format!("src,dst\n{}\n", lines.join("\n")), edges)
}

#[test]
fn every_usual_layout_gives_the_same_edges() {
    let expected = vec![(1, 2), (30, 4)];
    for text in [
        "src,dst\n1,2\n30,4\n",
        "1,2\n30,4",
        "1,2\r\n30,4\r\n",
        "src\tdst\n1\t2\n30\t4\n",
        "# a list\n# FromNodeId\tToNodeId\n1\t2\n30\t4\n",
        "\u{feff}id_1;id_2\n1;2\n30;4\n",
        "1 2\n30 4\n",
        "a|b\n1|2\n\n30|4\n\n",
        "\"src\",\"dst\"\n\"1\",2\n30,\"4\"",
        "src,dst,note\n1,2,\"a, b\"\n30,4,\"two\nlines and \"\"quotes\"\"\"\n",
        "dst,note,src\n2,x,1\n4,y,30\n",
    ] {
        assert_eq!(edges_of(text), expected, "{text:?}");
    }
    assert_eq!(edges_of(""), []);
    assert_eq!(edges_of("src,dst\n"), []);
}

#[test]
fn columns_are_found_by_name_and_by_position() {
    let folder = Folder::new();
    let path = folder.file("e.csv", "when,a,b,w\n17,1,2,-3\n18,3,4,5\n");
    let columns = EdgeColumns {
        src: Some("b".parse().unwrap()),
        dst: Some("2".parse().unwrap()),
        columns: vec!["w:i64".parse().unwrap(), "when=1:time".parse().unwrap()],
    };
    let (got, report) = edges_with(&path, &TextOptions::default(), &columns).unwrap();
    let stored = |text| store_text(ColumnKind::I64, text).unwrap();
    assert_eq!(got, [(2, 1, vec![stored("-3"), 17]), (4, 3, vec![stored("5"), 18])]);
    assert_eq!((report.rows, report.lines, report.errors.total()), (2, 3, 0));

    let headless = folder.file("h.csv", "5,6,70\n");
    let columns = EdgeColumns { columns: vec!["t=3:time".parse().unwrap()], ..EdgeColumns::default() };
    assert_eq!(edges_with(&headless, &TextOptions::default(), &columns).unwrap().0, [(5, 6, vec![70])]);

    let told = TextOptions { header: HeaderMode::Absent, delimiter: Some(b':'), max_errors: 0, typed: None };
    let path = folder.file("c.txt", "1:2\n");
    assert_eq!(edges_with(&path, &told, &EdgeColumns::default()).unwrap().0, [(1, 2, vec![])]);
    let told = TextOptions { header: HeaderMode::Present, ..told };
    assert_eq!(edges_with(&path, &told, &EdgeColumns::default()).unwrap().0, []);
}

#[test]
fn lines_cross_blocks_in_every_compression() {
    let folder = Folder::new();
    let (text, expected) = many_lines();
    let (head, tail) = text.as_bytes().split_at(text.len() / 3);
    let members = [gzip(head), gzip(tail)].concat();
    let frames = [zstd::encode_all(head, 1).unwrap(), zstd::encode_all(tail, 1).unwrap()].concat();
    for (name, bytes) in [
        ("a.csv", text.as_bytes()),
        ("b.csv.gz", &members),
        ("c.csv.zst", &frames),
        ("gzip-without-the-name", &members),
        ("zstd-named-gzip.gz", &frames),
    ] {
        assert_eq!(edges(&folder.file(name, bytes)).unwrap(), expected, "{name}");
    }
    let quoted = text.replace(',', ",\"").replace('\n', "\"\r\n");
    assert_eq!(edges(&folder.file("quoted.csv", quoted)).unwrap(), expected);
}

#[test]
fn progress_counts_bytes_on_disk_and_lines() {
    let folder = Folder::new();
    let (text, expected) = many_lines();
    let path = folder.file("e.csv.gz", gzip(text.as_bytes()));
    let mut seen = Vec::new();
    let columns = EdgeColumns::default();
    let each = |_: u64, _: u64, _: &[u64]| Ok::<(), ()>(());
    read_edges(&path, &TextOptions::default(), &columns, &mut |now| seen.push(now.clone()), each).unwrap();
    let last = seen.last().unwrap();
    assert_eq!((last.bytes_read, last.lines), (last.bytes_total, expected.len() as u64 + 1));
    assert!(seen.len() > 3 && seen.windows(2).all(|pair| pair[0].lines <= pair[1].lines));
}

#[test]
fn members_and_entities_are_read() {
    let folder = Folder::new();
    let members = folder.file("m.csv", "name,id\n\"Ann, B\",7\n\"x\"\"y\",9\n");
    let mut ids = Vec::new();
    let keep = |id| {
        ids.push(id);
        Ok::<(), ()>(())
    };
    read_members(&members, &TextOptions::default(), None, &mut |_| {}, keep).unwrap();
    assert_eq!(ids, [7, 9]);

    let entities = folder.file("e.csv", "member,kind,entity,year\n7,school,1,2017\n9,company,1,0\n");
    let mut got = Vec::new();
    let year = ["year".parse().unwrap()];
    let keep = |member, kind: &str, entity, columns: &[u64]| {
        got.push((member, kind.to_owned(), entity, columns.to_vec()));
        Ok::<(), ()>(())
    };
    read_entities(&entities, &TextOptions::default(), &year, &mut |_| {}, keep).unwrap();
    assert_eq!(got, [(7, "school".to_owned(), 1, vec![2017]), (9, "company".to_owned(), 1, vec![0])]);
}

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
    let InputError::BadLines { errors, complete: true, .. } = error else { panic!("{error}") };
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

    let lenient = TextOptions { max_errors: 8, ..TextOptions::default() };
    let (kept, report) = edges_with(&path, &lenient, &EdgeColumns::default()).unwrap();
    assert_eq!(kept, [(1, 2, vec![]), (5, 6, vec![])]);
    assert_eq!((report.rows, report.errors.by_reason["wrong column count"]), (10, 2));
}

#[test]
fn an_unclosed_quote_costs_one_line() {
    let folder = Folder::new();
    let path = folder.file("bad.csv", "1,2\n\"3,4\n5,6\n7,8\n");
    let lenient = TextOptions { max_errors: 1, ..TextOptions::default() };
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
    let InputError::BadLines { errors, .. } = error else { panic!("{error}") };
    assert_eq!(errors.first.len(), LINE_ERRORS_SHOWN);
}

#[test]
fn a_first_line_that_is_half_numeric_is_data() {
    let folder = Folder::new();
    let error = edges(&folder.file("bad.csv", "1,x\n2,3\n")).unwrap_err();
    assert_eq!(
        message(&folder, &error),
        "bad.csv has 1 bad line, 0 allowed; line 1: dst is not a whole number: \"1,x\""
    );
    let error = edges(&folder.file("one.csv", "1\n2\n")).unwrap_err();
    assert_eq!(message(&folder, &error), "one.csv has no column 2 for dst (its columns: 1)");
}

#[test]
fn column_values_and_kind_names_are_checked() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "src,dst,at\n1,2,yesterday\n");
    let columns = EdgeColumns { columns: vec!["at:time".parse().unwrap()], ..EdgeColumns::default() };
    let error = edges_with(&path, &TextOptions::default(), &columns).unwrap_err();
    assert!(message(&folder, &error).ends_with(
        "line 2: at is not a time from 1970 on, in milliseconds or as 2026-11-25T08:00:00Z: \"1,2,yesterday\""
    ));
    let columns = EdgeColumns { columns: vec!["weight:f64".parse().unwrap()], ..EdgeColumns::default() };
    let error = edges_with(&path, &TextOptions::default(), &columns).unwrap_err();
    assert_eq!(
        message(&folder, &error),
        "t.csv has no column \"weight\" for weight (its columns: src, dst, at)"
    );

    let path = folder.file("e.csv", "member,kind,entity\n1,../x,2\n");
    let each = |_: u64, _: &str, _: u64, _: &[u64]| Ok::<(), ()>(());
    let read = read_entities(&path, &TextOptions::default(), &[], &mut |_| {}, each);
    let Err(ReadError::Input(error)) = read else { panic!("a path is not a kind") };
    assert_eq!(
        message(&folder, &error),
        "e.csv has 1 bad line, 0 allowed; line 2: kind is not a name (1 to 64 letters, digits, '_' or '-'): \"1,../x,2\""
    );
}

#[test]
fn every_cut_of_a_compressed_file_is_an_error() {
    let folder = Folder::new();
    let text = "src,dst\n".to_owned() + &"12,34\n56,78\n".repeat(50);
    for (name, bytes) in
        [("e.csv.gz", gzip(text.as_bytes())), ("e.csv.zst", zstd::encode_all(text.as_bytes(), 1).unwrap())]
    {
        for end in 0..bytes.len() {
            let path = folder.file(name, &bytes[..end]);
            let error = edges(&path).expect_err("a cut file is no shorter file");
            let expected = if end < 4 { "does not begin like it" } else { "is cut off" };
            let text = message(&folder, &error);
            assert!(text.contains(expected) || end < 4 && text.contains("is cut off"), "{end}: {text}");
        }
    }
}

#[test]
fn a_half_gzipped_file_says_where_it_ends() {
    let folder = Folder::new();
    let (text, _) = many_lines();
    let packed = gzip(text.as_bytes());
    let path = folder.file("half.csv.gz", &packed[..packed.len() / 2]);
    let error = edges(&path).unwrap_err();
    let InputError::Truncated { bytes, line, .. } = &error else { panic!("{error}") };
    assert_eq!(*bytes, packed.len() as u64 / 2);
    assert!((40_000..80_000).contains(line), "{line}");
    assert!(error.help().contains("gzip -t"));
}

#[test]
fn damage_inside_a_compressed_file_is_an_error() {
    let folder = Folder::new();
    let (text, _) = many_lines();
    let mut packed = gzip(text.as_bytes());
    let checksum = packed.len() - 6;
    packed[checksum] ^= 1;
    let error = edges(&folder.file("e.csv.gz", &packed)).unwrap_err();
    assert!(matches!(error, InputError::Damaged { codec: Codec::Gzip, .. }), "{error}");
    let trailing = [gzip(b"1,2\n"), b"rubbish".to_vec()].concat();
    let error = edges(&folder.file("t.csv.gz", trailing)).unwrap_err();
    assert!(matches!(error, InputError::Damaged { .. } | InputError::Truncated { .. }), "{error}");
}

#[test]
fn other_formats_are_refused_by_name() {
    let folder = Folder::new();
    for (bytes, words) in [
        (&b"PAR1xxxx"[..], "e is a Parquet file, not CSV or TSV text (plain, .gz or .zst)"),
        (b"PK\x03\x04xxxx", "e is a zip archive, not CSV or TSV text (plain, .gz or .zst)"),
        (b"\xff\xfe1\0", "e is UTF-16 text, not CSV or TSV text (plain, .gz or .zst)"),
    ] {
        assert_eq!(message(&folder, &edges(&folder.file("e", bytes)).unwrap_err()), words);
    }
    let error = edges(&folder.file("e.csv.gz", "1,2\n")).unwrap_err();
    assert_eq!(message(&folder, &error), "e.csv.gz is named as gzip but does not begin like it");
    let error = edges(&folder.0.path().join("none.csv")).unwrap_err();
    assert_eq!(message(&folder, &error), "none.csv cannot be opened");
    let error = edges(folder.0.path()).unwrap_err();
    assert!(matches!(error, InputError::Open { .. }), "{error}");
    let error = edges(&folder.file("long.csv", vec![b'1'; 3 << 20])).unwrap_err();
    assert_eq!(message(&folder, &error), "long.csv has a line of more than 1048576 bytes at line 1");
}

/// RFC 4180 quoting of a field.
fn quoted(field: &str) -> String {
    format!("\"{}\"", field.replace('"', "\"\""))
}

#[test]
fn quoted_records_of_many_lines_cross_blocks() {
    let folder = Folder::new();
    let text: String = (0..4_000u64)
        .map(|id| format!("{},{id}\r\n", quoted(&"line \"one\",\nor two\n".repeat(id as usize % 23))))
        .collect();
    let path = folder.file("m.csv", format!("note,id\n{text}"));
    let mut ids = Vec::new();
    let report = read_members(&path, &TextOptions::default(), None, &mut |_| {}, |id| {
        ids.push(id);
        Ok::<(), ()>(())
    })
    .unwrap();
    assert_eq!(ids, (0..4_000).collect::<Vec<_>>());
    let lines = std::fs::read_to_string(&path).unwrap().lines().count() as u64;
    assert_eq!((report.rows, report.lines), (4_000, lines));
}

proptest! {
    #[test]
    fn fields_come_back_as_they_were_quoted(
        rows in prop::collection::vec((any::<u64>(), "[a,\"\n\r\t #-]{0,12}", any::<bool>()), 1..40),
        end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let folder = Folder::new();
        let lines: Vec<String> = rows
            .iter()
            .map(|(id, note, quote)| {
                let id = if *quote { quoted(&id.to_string()) } else { id.to_string() };
                format!("{},{id}", quoted(note))
            })
            .collect();
        let path = folder.file("m.csv", format!("note,id{end}{}", lines.join(end)));
        let mut ids = Vec::new();
        let keep = |id| { ids.push(id); Ok::<(), ()>(()) };
        read_members(&path, &TextOptions::default(), None, &mut |_| {}, keep).unwrap();
        prop_assert_eq!(ids, rows.iter().map(|row| row.0).collect::<Vec<_>>());
    }

    #[test]
    fn any_text_is_read_or_refused_line_by_line(text in "([0-9]{0,20}|[-,;\"x#\n\r ]){0,60}") {
        let folder = Folder::new();
        let path = folder.file("any.csv", &text);
        let options = TextOptions { delimiter: Some(b','), header: HeaderMode::Absent, max_errors: u64::MAX, typed: None };
        let Ok((edges, report)) = edges_with(&path, &options, &EdgeColumns::default()) else {
            // The first line has too few columns.
            return Ok(());
        };
        prop_assert_eq!(report.rows, edges.len() as u64 + report.errors.total());
        if text.contains('"') {
            return Ok(());
        }
        let ids = |line: &str| {
            let (src, dst) = line.split_once(',')?;
            let id = |text: &str| text.trim_matches([' ', '\r']).parse::<u64>().ok();
            Some((id(src)?, id(dst)?))
        };
        let data = text.split('\n').skip_while(|line| line.starts_with('#')).filter(|line| !line.trim_matches('\r').is_empty());
        let width = data.clone().next().map_or(0, |line| line.matches(',').count());
        let expected: Vec<_> = data.filter(|line| line.matches(',').count() == width && width == 1).filter_map(ids).collect();
        if width == 1 {
            prop_assert_eq!(edges.iter().map(|edge| (edge.0, edge.1)).collect::<Vec<_>>(), expected);
        }
    }
}

/// A file of three columns whose rows are written down as text: `!` is a row without fields.
struct Written(Vec<String>, Vec<&'static str>);

impl TypedFile for Written {
    fn columns(&self) -> &[String] {
        &self.0
    }

    fn unit(&self) -> &'static str {
        "row"
    }

    fn bytes(&self) -> u64 {
        100
    }

    fn rows(self: Box<Self>, columns: &[usize], each: &mut EachRow<'_>) -> Result<(), TypedError> {
        for (number, row) in (1..).zip(&self.1) {
            let cells: Vec<&str> = row.split(',').collect();
            let field = |&place: &usize| match cells[place] {
                "" => Field::Null,
                text => text.parse().map_or(Field::Text(text.into()), Field::Unsigned),
            };
            let fields: Vec<Field<'_>> =
                if *row == "!" { Vec::new() } else { columns.iter().map(field).collect() };
            let row = if *row == "!" { Err(LineFault::NotAnObject) } else { Ok(&fields[..]) };
            if !each(number, row) {
                return Ok(());
            }
        }
        if self.1.last() == Some(&"9,9,9") { Err("the file is cut off".into()) } else { Ok(()) }
    }
}

fn written(rows: &[&'static str]) -> Written {
    Written(["since", "dst", "src"].map(str::to_owned).to_vec(), rows.to_vec())
}

#[test]
fn rows_of_other_files_are_counted_and_told_as_lines_are() {
    fn open(path: &Path, _: TypedOptions) -> Result<Option<Box<dyn TypedFile>>, TypedError> {
        let rows = ["7,2,1", "1970-01-01T00:00:01Z,3,1", ",4,1", "7,-5,1", "!", "7,2,x"];
        Ok(path.ends_with("rows").then(|| Box::new(written(&rows)) as Box<dyn TypedFile>))
    }
    let folder = Folder::new();
    let (rows, text) = (folder.file("rows", ""), folder.file("text", "since,dst,src\n7,2,1\n"));
    let columns = EdgeColumns { columns: vec!["since:time".parse().unwrap()], ..EdgeColumns::default() };
    let typed = Some((open as OpenTyped, TypedOptions { memory_bytes: 1 }));
    let options = TextOptions { typed, max_errors: 4, ..TextOptions::default() };
    let (edges, report) = edges_with(&rows, &options, &columns).unwrap();
    assert_eq!(edges, [(1, 2, vec![7]), (1, 3, vec![1_000])]);
    assert_eq!((report.rows, report.lines, report.bytes, report.errors.total()), (6, 6, 100, 4));
    let told: Vec<String> = report.errors.first.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "row 3: since is not a time from 1970 on, in milliseconds or as 2026-11-25T08:00:00Z: \"1,4,\"",
            "row 4: dst is negative: \"1,-5,7\"",
            "row 5: the line is not one JSON object of distinct members",
            "row 6: src is not a whole number: \"x,2,7\"",
        ]
    );
    assert_eq!(edges_with(&text, &options, &columns).unwrap().0, [(1, 2, vec![7])], "text is read beside it");
    let strict = TextOptions { max_errors: 3, ..options };
    let error = edges_with(&rows, &strict, &columns).unwrap_err();
    assert!(message(&folder, &error).starts_with("rows has 4 bad lines, 3 allowed; row 3: "), "{error}");
}

#[test]
fn a_file_of_rows_that_breaks_off_is_refused_whatever_is_allowed() {
    fn open(_: &Path, _: TypedOptions) -> Result<Option<Box<dyn TypedFile>>, TypedError> {
        Ok(Some(Box::new(written(&["1,1,1", "9,9,9"]))))
    }
    let typed = Some((open as OpenTyped, TypedOptions { memory_bytes: 1 }));
    let options = TextOptions { typed, max_errors: 9, ..TextOptions::default() };
    let error = edges_with(Path::new("rows"), &options, &EdgeColumns::default()).unwrap_err();
    assert_eq!(error.to_string(), "the file is cut off");
}
