//! The layouts of files, and the places of their columns.

use super::*;
use kith_schema::ColumnKind;
use proptest::prelude::*;

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
    assert_eq!(edges_of(" 007 , 8\n"), [(7, 8)], "spaces around ids do not count");
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
    let (got, report) = edges_with(&path, &FileOptions::default(), &columns).unwrap();
    let stored = |text| store_text(ColumnKind::I64, text).unwrap();
    assert_eq!(got, [(2, 1, vec![stored("-3"), 17]), (4, 3, vec![stored("5"), 18])]);
    assert_eq!((report.rows, report.lines, report.errors.total()), (2, 3, 0));

    let headless = folder.file("h.csv", "5,6,70\n");
    let columns = EdgeColumns { columns: vec!["t=3:time".parse().unwrap()], ..EdgeColumns::default() };
    assert_eq!(edges_with(&headless, &FileOptions::default(), &columns).unwrap().0, [(5, 6, vec![70])]);

    let options = FileOptions { header: HeaderMode::Absent, delimiter: Some(b':'), ..FileOptions::default() };
    let path = folder.file("c.txt", "1:2\n");
    assert_eq!(edges_with(&path, &options, &EdgeColumns::default()).unwrap().0, [(1, 2, vec![])]);
    let options = FileOptions { header: HeaderMode::Present, ..options };
    assert_eq!(edges_with(&path, &options, &EdgeColumns::default()).unwrap().0, []);
}

#[test]
fn progress_counts_bytes_on_disk_and_lines() {
    let folder = Folder::new();
    let (text, expected) = many_lines();
    let path = folder.file("e.csv.gz", gzip(text.as_bytes()));
    let mut seen = Vec::new();
    let columns = EdgeColumns::default();
    let each = |_: u64, _: u64, _: &[u64]| Ok::<(), ()>(());
    read_edges(&path, &FileOptions::default(), &columns, &mut |now| seen.push(now.clone()), each).unwrap();
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
    read_members(&members, &FileOptions::default(), None, &mut |_| {}, keep).unwrap();
    assert_eq!(ids, [7, 9]);

    let entities = folder.file("e.csv", "member,kind,entity,year\n7,school,1,2017\n9,company,1,0\n");
    let mut got = Vec::new();
    let year = ["year".parse().unwrap()];
    let keep = |member, kind: &str, entity, columns: &[u64]| {
        got.push((member, kind.to_owned(), entity, columns.to_vec()));
        Ok::<(), ()>(())
    };
    read_entities(&entities, &FileOptions::default(), &year, &mut |_| {}, keep).unwrap();
    assert_eq!(got, [(7, "school".to_owned(), 1, vec![2017]), (9, "company".to_owned(), 1, vec![0])]);
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
    let report = read_members(&path, &FileOptions::default(), None, &mut |_| {}, |id| {
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
        read_members(&path, &FileOptions::default(), None, &mut |_| {}, keep).unwrap();
        prop_assert_eq!(ids, rows.iter().map(|row| row.0).collect::<Vec<_>>());
    }

    #[test]
    fn any_text_is_read_or_refused_line_by_line(text in "([0-9]{0,20}|[-,;\"x#\n\r ]){0,60}") {
        let folder = Folder::new();
        let path = folder.file("any.csv", &text);
        let options = FileOptions { delimiter: Some(b','), header: HeaderMode::Absent, max_errors: u64::MAX, ..FileOptions::default() };
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

#[test]
fn folders_give_the_columns_that_are_asked_for() {
    let folder = Folder::new();
    let spec = |text: &str| text.parse::<ColumnSpec>().unwrap();
    let read = |name: &str, text: &str, columns: &[&str]| {
        let path = folder.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let columns = columns.iter().map(|text| spec(text)).collect();
        edges_with(&path, &FileOptions::default(), &EdgeColumns { columns, ..EdgeColumns::default() })
    };
    for (name, text) in [
        ("since=2024-01-02/year=2024/e.csv", "src,w,dst\n1,7,2\n"),
        ("since=2024-01-02/year=2024/e.jsonl", "{\"src\":1,\"w\":7,\"dst\":2}\n"),
        ("since=2024-01-02/year=2024/only.csv", "src,dst,w\n1,2,7\n"),
    ] {
        let (edges, report) = read(name, text, &["year", "w", "since:time"]).unwrap();
        assert_eq!(edges, [(1, 2, vec![2024, 7, 1_704_153_600_000])], "{name}");
        let taken: Vec<&str> = report.taken.iter().map(|(role, _)| role.as_str()).collect();
        assert_eq!(taken, ["src", "dst", "w", "year", "since"], "{name}");
    }
    let (edges, _) = read("year=2024/two.csv", "1,2\n", &["year:i64"]).unwrap();
    assert_eq!(
        edges,
        [(1, 2, vec![spec("year:i64").kind.store(kith_schema::ColumnNumber::I64(2024)).unwrap()])]
    );
    let (edges, _) = read("year=2024/none.csv", "src,dst\n1,2\n", &[]).unwrap();
    assert_eq!(edges, [(1, 2, vec![])]);
    let (edges, report) = read("since=1700000000/e.csv", "src,dst\n1,2\n", &["since:time"]).unwrap();
    assert_eq!(edges, [(1, 2, vec![1_700_000_000])]);
    assert!(report.unlikely_time.unwrap().contains("since:time-s"));

    for (name, text, expected) in [
        ("year=x/e.csv", "src,dst\n1,2\n", "\"year\", but \"x\" is not of kind u64"),
        ("year=__HIVE_DEFAULT_PARTITION__/e.csv", "src,dst\n1,2\n", "\"year\", but its value is null"),
        ("year=1/year=2/e.csv", "src,dst\n1,2\n", "\"year\", but two folders give it"),
        ("year=1/both.csv", "src,dst,year\n1,2,3\n", "two columns that can be \"year\""),
        ("year=1/both.jsonl", "{\"src\":1,\"dst\":2,\"year\":3}\n", "two columns that can be \"year\""),
    ] {
        let error = read(name, text, &["year"]).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn folders_give_the_columns_of_entities() {
    let folder = Folder::new();
    let path = folder.0.path().join("year=2024/x.csv");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "member,kind,entity,w\n1,school,7,5\n").unwrap();
    let columns: Vec<ColumnSpec> = ["year", "w"].map(|text| text.parse().unwrap()).to_vec();
    let mut rows = Vec::new();
    read_entities(&path, &FileOptions::default(), &columns, &mut |_| {}, |member, kind, entity, values| {
        rows.push((member, kind.to_owned(), entity, values.to_vec()));
        Ok::<(), std::convert::Infallible>(())
    })
    .unwrap();
    assert_eq!(rows, [(1, "school".to_owned(), 7, vec![2024, 5])]);
}
