//! Files of objects and associations.

use super::*;

type Read<T> = Result<(Vec<T>, FileReport), FileError>;

fn rows<T>(read: Result<FileReport, ReadError<(), FileError>>, rows: Vec<T>) -> Read<T> {
    match read {
        Ok(report) => Ok((rows, report)),
        Err(ReadError::Input(error)) => Err(error),
        Err(ReadError::Caller(())) => panic!("nothing ends the reading"),
    }
}

fn columns(names: &str) -> Vec<ColumnRef> {
    names.split_whitespace().map(|name| name.parse().unwrap()).collect()
}

fn associations(path: &Path, names: &str, max_errors: u64) -> Read<AssociationRow> {
    associations_in(TimeUnit::Millis, path, names, max_errors)
}

fn associations_in(unit: TimeUnit, path: &Path, names: &str, max_errors: u64) -> Read<AssociationRow> {
    let (mut found, options) = (Vec::new(), FileOptions { max_errors, ..FileOptions::default() });
    let read = read_associations(path, &options, &columns(names), unit, &mut |_| {}, |row| {
        found.push(row);
        Ok(Ok(()))
    });
    rows(read, found)
}

fn objects(path: &Path, names: &str, fault: Option<&LineFault>) -> Read<ObjectRow> {
    let (mut found, options) = (Vec::new(), FileOptions { max_errors: 5, ..FileOptions::default() });
    let read = read_objects(path, &options, &columns(names), &mut |_| {}, |row| {
        found.push(row);
        Ok(fault.map_or(Ok(()), |fault| Err(fault.clone())))
    });
    rows(read, found)
}

fn association(number: u64, ids: [u64; 2], time: u64, data: Option<&str>) -> AssociationRow {
    AssociationRow { number, id1: ids[0], id2: ids[1], time, data: data.map(str::to_owned) }
}

#[test]
fn associations_have_fields_if_the_file_has_that_column() {
    let folder = Folder::new();
    let fields = "id1,id2,time,data\n1,2,3,\"{\"\"a\"\":\"\"x,\"\"}\"\n1,4,1970-01-01T00:00:01Z,\n";
    let (found, report) = associations(&folder.file("a.csv", fields), "", 0).unwrap();
    let first = association(2, [1, 2], 3, Some(r#"{"a":"x,"}"#));
    assert_eq!(found, [first, association(3, [1, 4], 1_000, None)]);
    assert_eq!((report.rows, report.lines), (2, 3));
    for (name, text, names) in [
        ("without", "id1,id2,time\n1,2,3\n", ""),
        ("bare", "1,2,3\n", ""),
        ("others", "src,dst,since\n1,2,3\n", ""),
        ("named", "x,since,dst,src\n9,3,2,1\n", "src dst since"),
        ("placed", "9,3,2,1\n", "4 3 2"),
        ("unread", "time,weight,id2,id1\n3,0.5,2,1\n", ""),
    ] {
        let (found, _) = associations(&folder.file(name, text), names, 0).unwrap();
        let found: Vec<_> = found.into_iter().map(|it| (it.id1, it.id2, it.time, it.data)).collect();
        assert_eq!(found, [(1, 2, 3, None)], "{name}");
    }
}

#[test]
fn columns_are_taken_by_their_usual_names_or_refused() {
    let folder = Folder::new();
    for (name, text, taken) in [
        ("a", "creationDate|Person2Id|Person1Id\n3|2|1\n", "Person1Id → Person2Id; time = creationDate"),
        ("b", "TO,FROM,since\n2,1,3\n", "FROM → TO; time = since"),
        ("c", "x,y,time\n1,2,3\n", "x → y; time = time"),
        ("d", "1\t2\t3\n", "column 1 → column 2; time = column 3"),
    ] {
        let (found, report) = associations(&folder.file(name, text), "", 0).unwrap();
        assert_eq!((found[0].id1, found[0].id2, found[0].time), (1, 2, 3), "{name}");
        assert_eq!(columns_taken("likes", &report.taken), Some(format!("likes: {taken}")));
    }
    for (name, text) in
        [("e", "made,followee,follower\n3,2,1\n"), ("f", "a,b,c,d,e\n1,2,3,4,5\n"), ("g", "x,y,z\n1,2,3\n")]
    {
        let read = associations(&folder.file(name, text), "", 0);
        assert!(matches!(read, Err(FileError::UnknownHeader { .. })), "{name}");
    }
}

#[test]
fn times_are_in_the_unit_that_is_named_and_doubted_otherwise() {
    let folder = Folder::new();
    let text = "id1,id2,at\n1,2,1700000000\n1,3,2023-11-14T22:13:20Z\n1,4,2023-11-14 23:13:20+01\n";
    let path = folder.file("a.csv", text);
    let times = |read: Read<AssociationRow>| {
        let (found, report) = read.unwrap();
        (found.iter().map(|row| row.time).collect::<Vec<_>>(), report.unlikely_time)
    };
    let (read, doubt) = times(associations(&path, "", 0));
    assert_eq!(read, [1_700_000_000, 1_700_000_000_000, 1_700_000_000_000]);
    let doubt = doubt.expect("these are seconds");
    assert!(doubt.contains("1970-01-20") && doubt.ends_with("write the column as at:time-s"), "{doubt}");
    assert_eq!(times(associations_in(TimeUnit::Seconds, &path, "", 0)), (vec![1_700_000_000_000; 3], None));
    let bare = folder.file("b.csv", "1,2,1700000000000000000\n");
    let (read, doubt) = times(associations(&bare, "", 0));
    assert_eq!(read, [1_700_000_000_000_000_000]);
    assert!(doubt.unwrap().ends_with("write the column as 3:time-ns"));
    assert_eq!(times(associations_in(TimeUnit::Nanos, &bare, "", 0)), (vec![1_700_000_000_000], None));
}

#[test]
fn columns_that_are_needed_must_be_there() {
    let folder = Folder::new();
    let two = folder.file("two", "1,2\n");
    let error = associations(&two, "", 0).unwrap_err();
    assert_eq!(message(&folder, &error), "two has no column 3 for time (its columns: 1, 2)");
    let named = folder.file("named", "id1,id2,time\n1,2,3\n");
    let error = associations(&named, "id1 id2 time data", 0).unwrap_err();
    assert!(message(&folder, &error).starts_with("named has no column \"data\" for data"), "{error}");
}

#[test]
fn wrong_lines_are_reported_with_the_column_and_the_reason() {
    let folder = Folder::new();
    let text = b"1,2,3\n-1,2,3\n1,x,3\n1,2,-3\n1,2\n";
    let (found, report) = associations(&folder.file("a.csv", text), "", 4).unwrap();
    assert_eq!(found, [association(1, [1, 2], 3, None)]);
    let messages: Vec<String> = report.errors.first.iter().map(ToString::to_string).collect();
    assert!(messages[0].starts_with("line 2: id1 is negative: "), "{messages:?}");
    assert!(messages[1].starts_with("line 3: id2 is not a whole number: "), "{messages:?}");
    assert!(messages[2].starts_with("line 4: time is not a time from 1970 on"), "{messages:?}");
    assert!(messages[3].starts_with("line 5: expected 3 columns, got 2"), "{messages:?}");
    let fault = LineFault::Fields("field \"age\" is missing".to_owned());
    let (_, report) = objects(&folder.file("o.csv", "7,{}\n"), "", Some(&fault)).unwrap();
    assert_eq!(report.errors.first[0].to_string(), "line 1: data: field \"age\" is missing: \"7,{}\"");
    let (_, report) = objects(&folder.file("bytes", b"id,data\n7,\xff\n"), "", None).unwrap();
    assert_eq!(report.errors.first[0].fault, LineFault::NotText);
}

#[test]
fn lines_of_json_have_fields_even_if_the_first_ones_have_none() {
    let folder = Folder::new();
    let mut text = "{\"id\":1}\n".repeat(20_000);
    text += "{\"id\":2,\"data\":{\"name\":\"Ada\"}}\n";
    let (found, _) = objects(&folder.file("o.jsonl", text), "", None).unwrap();
    let last = ObjectRow { number: 20_001, id: 2, data: Some(r#"{"name":"Ada"}"#.to_owned()) };
    assert_eq!((found.len(), found.last()), (20_001, Some(&last)));
}

#[test]
fn a_line_may_be_as_long_as_is_allowed() {
    let folder = Folder::new();
    let path = folder.file("o.csv", format!("1,{}\n", "x".repeat(2 << 20)));
    assert!(matches!(objects(&path, "", None), Err(FileError::LineTooLong { .. })));
    let options = FileOptions { line_bytes_max: 4 << 20, ..FileOptions::default() };
    let read = read_objects(&path, &options, &[], &mut |_| {}, |_| Ok::<_, ()>(Ok(())));
    assert_eq!(read.map(|report| report.rows).unwrap(), 1);
}
