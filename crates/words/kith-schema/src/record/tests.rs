//! Examples of the record coding; the drawn bytes are those of `docs/formats/record.md`.

use super::{EncodeError, RecordError, RecordView, RecordWriter, Scalar, ValueFault};
use crate::Schema;

fn schema(fields: &str) -> Schema {
    format!("{{\"fields\":[{fields}]}}").parse().unwrap()
}

fn written(schema: &Schema, json: &str) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    RecordWriter::new(schema).write_json(json, &mut out).map(|()| out)
}

fn refusal(fields: &str, json: &str) -> String {
    written(&schema(fields), json).unwrap_err().to_string()
}

/// The bytes of a drawing: hexadecimal pairs up to the comment of each line.
fn drawn(lines: &str) -> Vec<u8> {
    let pairs = lines.lines().flat_map(|line| line.split("//").next().unwrap_or_default().split_whitespace());
    pairs.filter(|pair| *pair != "|").map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn drawn_records_are_written_and_read() {
    let text = include_str!("../../../../../docs/formats/record.md");
    let mut seen = 0;
    for block in text.split("```").skip(1).step_by(2).filter(|block| block.starts_with("record\n")) {
        let mut lines = block.lines().skip(1);
        let schema: Schema = lines.next().unwrap().parse().unwrap();
        let json = lines.next().unwrap();
        let bytes = drawn(&lines.collect::<Vec<_>>().join("\n"));
        assert_eq!(written(&schema, json).unwrap(), bytes, "{json}");
        let view = RecordView::new(&schema, &bytes).unwrap();
        view.verify().unwrap();
        assert_eq!(view.to_json().unwrap(), json);
        seen += 1;
    }
    assert_eq!(seen, 4, "the document draws four records");
}

#[test]
fn numbers_keep_all_their_digits() {
    let schema = schema(
        r#"{"name":"a","type":"i64"},{"name":"b","type":"u64"},{"name":"c","type":"f32"},{"name":"d","type":"f64"}"#,
    );
    let json = r#"{"a":-9223372036854775808,"b":18446744073709551615,"c":0.1,"d":1e300}"#;
    let bytes = written(&schema, json).unwrap();
    assert_eq!(RecordView::new(&schema, &bytes).unwrap().to_json().unwrap(), json);
}

#[test]
fn fields_may_come_in_any_order_and_absent_ones_take_their_default() {
    let schema = schema(
        r#"{"name":"a","type":"i32","default":7},{"name":"b","type":"list<text>","default":["x","y"]},
           {"name":"c","type":"text","nullable":true},{"name":"d","type":"bool"}"#,
    );
    let bytes = written(&schema, r#"{"d":true}"#).unwrap();
    let view = RecordView::new(&schema, &bytes).unwrap();
    assert_eq!(view.to_json().unwrap(), r#"{"a":7,"b":["x","y"],"c":null,"d":true}"#);
    assert_eq!(written(&schema, r#"{"d":true,"c":null,"b":["x","y"],"a":7}"#).unwrap(), bytes);
}

#[test]
fn typed_values_give_the_same_bytes_as_json() {
    let schema = schema(
        r#"{"name":"v","type":"vector<f16,3>"},{"name":"m","type":"map<text,bytes>"},{"name":"t","type":"timestamp"},
           {"name":"l","type":"list<u64>"},{"name":"w","type":"vector<f32,2>"}"#,
    );
    let mut writer = RecordWriter::new(&schema);
    let mut typed = Vec::new();
    writer.set_f32s(0, &[0.5, -1.0, 65_504.0]).unwrap();
    writer.set_map(1, [("z", Scalar::Bytes(b"\0\xff")), ("a", Scalar::Bytes(b""))]).unwrap();
    writer.set(2, Scalar::Timestamp(-1)).unwrap();
    writer.set_list(3, [Scalar::U64(u64::MAX), Scalar::I32(0)]).unwrap();
    writer.set_f32s(4, &[1.5, 2.5]).unwrap();
    writer.finish(&mut typed).unwrap();
    let json = r#"{"v":[0.5,-1.0,65504.0],"m":{"a":"","z":"AP8="},"t":-1,"l":[18446744073709551615,0],"w":[1.5,2.5]}"#;
    assert_eq!(written(&schema, json).unwrap(), typed);
    let view = RecordView::new(&schema, &typed).unwrap();
    assert_eq!(view.to_json().unwrap(), json);
    let map = view.field("m").unwrap().unwrap().as_map().unwrap();
    assert_eq!(map.get("z"), Ok(Some(Scalar::Bytes(b"\0\xff"))));
    assert_eq!((map.get("a"), map.get("b")), (Ok(Some(Scalar::Bytes(b""))), Ok(None)));
    let list = view.field("l").unwrap().unwrap().as_list().unwrap();
    assert_eq!((list.len(), list.get(1)), (2, Ok(Scalar::U64(0))));
}

#[test]
fn wrong_values_are_named_with_their_field() {
    let title = r#"{"name":"title","type":"text"}"#;
    assert_eq!(refusal(title, r#"{"title":7}"#), "field \"title\": expected text, got number 7");
    assert_eq!(refusal(title, r#"{"title":null}"#), "field \"title\" is null, the schema says it never is");
    assert_eq!(refusal(title, r#"{}"#), "field \"title\" is missing");
    assert_eq!(
        refusal(title, r#"{"titel":"x"}"#),
        "field \"titel\" is not in the schema; did you mean \"title\"?"
    );
    assert_eq!(refusal(title, r#"{"title":"x","title":"y"}"#), "field \"title\" is there twice");
    assert_eq!(refusal(title, r#"{"title":["x"]}"#), "field \"title\": expected text, got a list");
    assert_eq!(refusal(title, r#"{"title":{"x":1}}"#), "field \"title\": expected text, got an object");
    assert!(refusal(title, r#"[1]"#).contains("expected an object"), "{}", refusal(title, "[1]"));
    assert!(refusal(title, r#"{"title":"x""#).contains("EOF"), "{}", refusal(title, r#"{"title":"x""#));
    assert!(refusal(title, r#"{"title":"x"} {}"#).contains("trailing"));
    let small = r#"{"name":"n","type":"i32"}"#;
    assert_eq!(refusal(small, r#"{"n":2147483648}"#), "field \"n\": number 2147483648 does not fit i32");
    assert_eq!(refusal(small, r#"{"n":1.5}"#), "field \"n\": number 1.5 does not fit i32");
    let exact = r#"{"name":"n","type":"f64"}"#;
    assert_eq!(
        refusal(exact, r#"{"n":9007199254740993}"#),
        "field \"n\": number 9007199254740993 does not fit f64"
    );
    assert_eq!(
        refusal(r#"{"name":"b","type":"bytes"}"#, r#"{"b":"?"}"#),
        "field \"b\": it is not base64 text"
    );
}

#[test]
fn floating_point_numbers_that_may_have_been_rounded_are_no_whole_fields() {
    for kind in ["i32", "i64", "u64", "timestamp"] {
        let schema = schema(&format!(r#"{{"name":"n","type":"{kind}"}}"#));
        let set = |value| RecordWriter::new(&schema).set(0, value);
        assert_eq!(set(Scalar::F32(16_777_215.0)), Ok(()), "{kind}");
        assert!(set(Scalar::F32(16_777_216.0)).is_err(), "{kind}: 2^24 may have been 2^24 + 1");
        assert_eq!(set(Scalar::F64(9_007_199_254_740_991.0)).is_ok(), kind != "i32", "{kind}");
        assert!(set(Scalar::F64(9_007_199_254_740_992.0)).is_err(), "{kind}: 2^53 may have been 2^53 + 1");
    }
}

#[test]
fn wrong_vectors_lists_and_maps_say_what_is_wrong_with_them() {
    let vector = r#"{"name":"v","type":"vector<f32,3>"}"#;
    let dimensions = |got| format!("field \"v\": expected a vector of 3 dimensions, got {got}");
    assert_eq!(refusal(vector, r#"{"v":[1,2]}"#), dimensions(2));
    assert_eq!(refusal(vector, r#"{"v":[1,2,3,4,5]}"#), dimensions(4));
    assert_eq!(refusal(vector, r#"{"v":[]}"#), dimensions(0));
    assert_eq!(
        refusal(vector, r#"{"v":[1,null,3]}"#),
        "field \"v\", item 2: a list, vector or map holds no nulls"
    );
    assert_eq!(refusal(vector, r#"{"v":[1,"2",3]}"#), "field \"v\", item 2: expected f32, got text");
    assert_eq!(refusal(vector, r#"{"v":[1,[2],3]}"#), "field \"v\", item 2: expected one value, got a list");
    assert_eq!(refusal(vector, r#"{"v":[1,2,1e39]}"#), "field \"v\", item 3: number 1e39 does not fit f32");
    let bytes = r#"{"name":"v","type":"vector<i8,1>"}"#;
    assert_eq!(refusal(bytes, r#"{"v":[128]}"#), "field \"v\", item 1: number 128 does not fit i8");
    let halves = r#"{"name":"v","type":"vector<f16,1>"}"#;
    assert_eq!(refusal(halves, r#"{"v":[65520]}"#), "field \"v\", item 1: number 65520 does not fit f16");
    assert_eq!(refusal(halves, r#"{"v":[1e5]}"#), "field \"v\", item 1: number 100000.0 does not fit f16");
    let map = r#"{"name":"m","type":"map<text,i64>"}"#;
    assert_eq!(refusal(map, r#"{"m":{"a":1,"a":2}}"#), "field \"m\", item 2: its key \"a\" is there twice");
    assert_eq!(refusal(map, r#"{"m":{"a":"x"}}"#), "field \"m\", item 1: expected i64, got text");
    let schema = schema(vector);
    let mut writer = RecordWriter::new(&schema);
    for wrong in [f32::NAN, f32::INFINITY] {
        let error = writer.set_f32s(0, &[0.0, wrong, 0.0]).unwrap_err();
        assert_eq!(
            error,
            EncodeError::Value { field: "v".to_owned(), item: Some(2), fault: ValueFault::NotFinite }
        );
    }
}

#[test]
fn a_refused_record_leaves_no_trace() {
    let schema = schema(r#"{"name":"a","type":"text"},{"name":"b","type":"list<i32>"}"#);
    let mut writer = RecordWriter::new(&schema);
    let mut out = b"before".to_vec();
    writer.write_json(r#"{"b":[1,2],"a":7}"#, &mut out).unwrap_err();
    writer.write_json(r#"{"b":[1,2,"x"],"a":"y"}"#, &mut out).unwrap_err();
    writer.write_json(r#"{"a":"y"}"#, &mut out).unwrap_err();
    assert_eq!(out, b"before");
    writer.write_json(r#"{"a":"y","b":[]}"#, &mut out).unwrap();
    assert_eq!(RecordView::new(&schema, &out[6..]).unwrap().to_json().unwrap(), r#"{"a":"y","b":[]}"#);
}

#[test]
fn the_key_of_a_row_is_passed_over_unless_the_schema_has_it() {
    let without = schema(r#"{"name":"a","type":"i64"}"#);
    let mut out = Vec::new();
    RecordWriter::new(&without).write_json_but(r#"{"id":[{}],"a":1}"#, Some("id"), &mut out).unwrap();
    assert_eq!(out, 1i64.to_le_bytes());
    let with = schema(r#"{"name":"id","type":"i64"},{"name":"a","type":"i64"}"#);
    out.clear();
    RecordWriter::new(&with).write_json_but(r#"{"id":5,"a":1}"#, Some("id"), &mut out).unwrap();
    assert_eq!(out.len(), 16);
}

#[test]
fn damaged_records_are_errors() {
    let schema = schema(
        r#"{"name":"a","type":"text","nullable":true},{"name":"b","type":"list<text>"},{"name":"c","type":"bool"}"#,
    );
    let good = written(&schema, r#"{"a":"hé","b":["x","yz"],"c":true}"#).unwrap();
    let verify = |bytes: &[u8]| RecordView::new(&schema, bytes).and_then(|view| view.verify());
    assert_eq!(verify(&good), Ok(()));
    for end in 0..good.len() {
        assert!(verify(&good[..end]).is_err(), "cut at {end}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert!(matches!(verify(&longer), Err(RecordError::Damaged { .. })));
    let mut null_bit = good.clone();
    null_bit[0] |= 2;
    assert!(matches!(verify(&null_bit), Err(RecordError::Damaged { .. })));
    let mut not_bool = good.clone();
    not_bool[9] = 2;
    assert!(matches!(verify(&not_bool), Err(RecordError::DamagedField { .. })));
    let mut not_text = good;
    not_text[12] = 0xff;
    assert_eq!(
        verify(&not_text).unwrap_err().to_string(),
        "field \"a\" of the record is damaged: it is not UTF-8 text"
    );
}

#[test]
fn a_record_beyond_the_limit_is_refused() {
    let schema = schema(r#"{"name":"a","type":"bytes"},{"name":"b","type":"bytes"}"#);
    let mut writer = RecordWriter::new(&schema);
    let half = vec![0; crate::VALUE_BYTES_MAX / 2];
    let mut out = Vec::new();
    writer.set(0, Scalar::Bytes(&half)).unwrap();
    writer.set(1, Scalar::Bytes(&half)).unwrap();
    assert_eq!(writer.finish(&mut out), Err(EncodeError::Record(ValueFault::TooLarge)));
    assert!(out.is_empty());
    writer.set(0, Scalar::Bytes(&half)).unwrap();
    writer.set(1, Scalar::Bytes(&half[8..])).unwrap();
    writer.finish(&mut out).unwrap();
    assert_eq!(out.len(), crate::VALUE_BYTES_MAX);
}

#[test]
fn whole_numbers_that_a_parser_would_round_are_refused() {
    let fields = r#"{"name":"x","type":"f64","nullable":true},{"name":"t","type":"text","default":""},{"name":"l","type":"list<f64>","nullable":true},
        {"name":"i","type":"i64","nullable":true}"#;
    for number in [
        "123456789012345678901234567890",
        "18446744073709551617",
        "-9223372036854775809",
        "1".repeat(400).as_str(),
    ] {
        for json in [format!("{{\"x\":{number}}}"), format!("{{\"t\":\"a\\\"\",\"l\":[1, {number} ]}}")] {
            let error = refusal(fields, &json);
            assert!(error.contains("would be rounded"), "{json}: {error}");
            let column: usize = error.split(['(', ')', ' ']).rev().nth(1).unwrap().parse().unwrap();
            assert_eq!(Some(column - 1), json.find(number), "{error}");
        }
        assert!(written(&schema(fields), &format!("{{\"t\":\"{number}\"}}")).is_ok());
    }
    for number in
        ["100000000000000000000", "1.23456789012345678901234567890", "1234567890123456789012e3", "1e300"]
    {
        assert!(written(&schema(fields), &format!("{{\"x\":{number}}}")).is_ok(), "{number}");
    }
    assert!(written(&schema(fields), "{\"i\":-9223372036854775807}").is_ok());
}
