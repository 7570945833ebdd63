//! Records: their bytes, the JSON that they are made from, and the JSON that they are printed as.

use super::{Seed, schemas};
use kith_schema::{FieldView, ListView, MapView, Projection, RecordView, RecordWriter, Scalar, Schema};

/// Input: the text of a schema, a newline, the bytes of a record.
pub fn check(input: &[u8]) {
    let Some((schema, record)) = split(input) else { return };
    let Ok(view) = RecordView::new(&schema, record) else { return };
    let is_whole = view.verify().is_ok();
    for index in 0..schema.fields().len() {
        if let Ok(Some(value)) = view.at(index) {
            walk(&value, is_whole);
        }
    }
    let shown = view.to_result_json();
    assert_eq!(shown.is_ok(), is_whole, "what is whole can be shown, and nothing else");
    let json = view.to_json();
    assert!(is_whole || json.is_err(), "damage is not shown");
    let projection = Projection::resolve(&schema, &schema).expect("records of a schema are records of it");
    let mut copy = Vec::new();
    match projection.write(record, &mut copy) {
        Ok(()) => {
            let copied = RecordView::new(&schema, &copy).expect("a copy is a record");
            assert_eq!(copied.to_result_json(), shown);
        }
        Err(error) => assert!(!is_whole && copy.is_empty(), "{error}"),
    }
    if let Ok(json) = json {
        let mut again = Vec::new();
        RecordWriter::new(&schema).write_json(&json, &mut again).expect("what a record shows is one");
        let read = RecordView::new(&schema, &again).expect("a written record is one");
        assert_eq!(read.to_json().as_deref(), Ok(json.as_str()));
    }
}

/// Input: the text of a schema, a newline, a JSON object.
pub fn check_json(input: &[u8]) {
    let Some((schema, json)) = split(input) else { return };
    let Ok(json) = std::str::from_utf8(json) else { return };
    round_trip(&schema, json);
}

/// Storing what a record is printed as gives the same record.
pub fn round_trip(schema: &Schema, json: &str) {
    let mut record = vec![7];
    if RecordWriter::new(schema).write_json(json, &mut record).is_err() {
        assert_eq!(record, [7], "an error leaves nothing behind");
        return;
    }
    let record = &record[1..];
    let view = RecordView::new(schema, record).expect("a written record is one");
    view.verify().expect("a written record is whole");
    let shown = view.to_json().expect("a written record can be shown");
    let mut again = Vec::new();
    RecordWriter::new(schema).write_json(&shown, &mut again).expect("what a record shows is one");
    assert_eq!(again, record, "{shown}");
}

fn split(input: &[u8]) -> Option<(Schema, &[u8])> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    let schema = std::str::from_utf8(&input[..end]).ok()?.parse().ok()?;
    Some((schema, &input[end + 1..]))
}

fn walk(value: &FieldView<'_>, is_whole: bool) {
    match value {
        FieldView::Scalar(scalar) => same(scalar, scalar),
        FieldView::Vector(vector) => assert_eq!(vector.iter().count(), vector.dimensions()),
        FieldView::List(list) => items(list),
        FieldView::Map(map) => entries(map, is_whole),
    }
}

fn items(list: &ListView<'_>) {
    let mut count = 0;
    for (index, item) in list.iter().enumerate() {
        match (item, list.get(index)) {
            (Ok(one), Ok(other)) => same(&one, &other),
            (one, other) => assert_eq!(one.is_err(), other.is_err()),
        }
        count += 1;
    }
    assert_eq!((count, list.is_empty()), (list.len(), count == 0));
}

fn entries(map: &MapView<'_>, is_whole: bool) {
    for (key, value) in map.iter().flatten() {
        let found = map.get(key);
        if is_whole {
            let found = found.expect("a whole map is searched").expect("its keys are found");
            same(&found, &value);
        }
    }
    let _ = map.get("a key that few maps have");
}

/// Compares the printed forms: a NaN does not equal itself.
fn same(one: &Scalar<'_>, other: &Scalar<'_>) {
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
}

const WHOLE: &str = r#"{"is":true,"i":null,"l":-9223372036854775808,"u":18446744073709551615,"f":1.5,"d":-0.0,"t":"Kith ü","b":"AQID","at":0,"v":[0.1,-65504.0,0],"n":[1,2,3],"w":["","b"],"m":{"a":1,"b":1e300},"s":{"k":"v","l":""}}"#;

pub fn seeds() -> Vec<Seed> {
    let schema: Schema = schemas::PLAIN.parse().expect("a schema of ours");
    let record = |json: &str| {
        let mut record = format!("{}\n", schemas::PLAIN).into_bytes();
        RecordWriter::new(&schema).write_json(json, &mut record).expect("a record of it");
        record
    };
    let whole = record(WHOLE);
    let small =
        |fields: &str, record: &[u8]| [format!("{{\"fields\":[{fields}]}}\n").as_bytes(), record].concat();
    let texts = r#"{"name":"w","type":"list<text>"}"#;
    vec![
        ("whole", whole.clone()),
        ("short", whole[..whole.len() - 3].to_vec()),
        ("not-finite", small(r#"{"name":"f","type":"f32"}"#, &f32::NAN.to_le_bytes())),
        ("neither-true-nor-false", small(r#"{"name":"is","type":"bool"}"#, &[2])),
        ("null-bit-of-no-field", small(r#"{"name":"is","type":"bool","nullable":true}"#, &[2, 0])),
        ("empty-but-not-written-so", small(texts, &[4, 0, 0, 0, 0, 0, 0, 0])),
        ("ends-out-of-order", {
            let ends = [2u32, 3, 0, 1].map(u32::to_le_bytes).concat();
            small(texts, &[&13u32.to_le_bytes()[..], &ends[..12], b"x"].concat())
        }),
        ("keys-out-of-order", {
            let head = [2u32, 1, 2].map(u32::to_le_bytes).concat();
            let map = [&head[..], b"ba", &[1, 0]].concat();
            let end = (map.len() as u32).to_le_bytes();
            small(r#"{"name":"m","type":"map<text,bool>"}"#, &[&end[..], &map].concat())
        }),
    ]
}

pub fn json_seeds() -> Vec<Seed> {
    let of = |json: &str| format!("{}\n{json}", schemas::PLAIN).into_bytes();
    let small = |fields: &str, json: &str| format!("{{\"fields\":[{fields}]}}\n{json}").into_bytes();
    vec![
        ("whole", of(WHOLE)),
        ("a-field-twice", of(r#"{"is":true,"is":false}"#)),
        ("f16", small(r#"{"name":"v","type":"vector<f16,4>"}"#, r#"{"v":[6e-8,65504.0,1e-30,-0.0]}"#)),
        ("too-large-for-f32", small(r#"{"name":"f","type":"f32"}"#, r#"{"f":1e39}"#)),
        ("whole-numbers-as-floats", small(r#"{"name":"l","type":"i64"}"#, r#"{"l":1e18}"#)),
        ("surrogate", small(r#"{"name":"t","type":"text"}"#, r#"{"t":"\ud83e\udd80 \udd80"}"#)),
        ("time", small(r#"{"name":"at","type":"timestamp"}"#, r#"{"at":"2024-02-30T00:00:00Z"}"#)),
        ("nested-too-deep", of(&format!("{{\"n\":{}", "[".repeat(300)))),
    ]
}
