//! Compares records with a plain twin (`serde_json` values), and reads hostile bytes.

#![allow(clippy::unwrap_used)]

use kith_schema::{
    ElementType, Field, FieldType, Projection, RecordView, RecordWriter, ScalarType, Schema, compatible,
    f16_from_f32, f32_from_f16,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn scalar_type() -> impl Strategy<Value = ScalarType> {
    proptest::sample::select(ScalarType::ALL.to_vec())
}

fn field_type() -> impl Strategy<Value = FieldType> {
    let element = proptest::sample::select(ElementType::ALL.to_vec());
    prop_oneof![
        4 => scalar_type().prop_map(FieldType::Scalar),
        1 => (element, 1u32..5).prop_map(|(element, dimensions)| FieldType::Vector { element, dimensions }),
        1 => scalar_type().prop_map(FieldType::List),
        1 => scalar_type().prop_map(FieldType::Map),
    ]
}

fn schema() -> impl Strategy<Value = Schema> {
    proptest::collection::vec((field_type(), any::<bool>()), 1..20).prop_map(|fields| {
        let fields = fields.into_iter().enumerate().map(|(index, (field_type, nullable))| {
            let field = Field::new(format!("f{index}"), field_type);
            if nullable { field.nullable() } else { field }
        });
        Schema::new(fields.collect()).unwrap()
    })
}

/// A value in the form in which the record prints it.
fn scalar_value(scalar: ScalarType) -> BoxedStrategy<Value> {
    match scalar {
        ScalarType::Bool => any::<bool>().prop_map(|v| json!(v)).boxed(),
        ScalarType::I32 => any::<i32>().prop_map(|v| json!(v)).boxed(),
        ScalarType::I64 | ScalarType::Timestamp => any::<i64>().prop_map(|v| json!(v)).boxed(),
        ScalarType::U64 => any::<u64>().prop_map(|v| json!(v)).boxed(),
        ScalarType::F32 => single().boxed(),
        ScalarType::F64 => {
            any::<f64>().prop_filter("finite", |v| v.is_finite()).prop_map(|v| json!(v)).boxed()
        }
        ScalarType::Text => any::<String>().prop_map(|v| json!(v)).boxed(),
        ScalarType::Bytes => {
            proptest::collection::vec(any::<u8>(), 0..9).prop_map(|v| json!(base64(&v))).boxed()
        }
    }
}

fn single() -> impl Strategy<Value = Value> {
    // The value is converted through its shortest text, as the record prints it. `json!` would widen it to an f64 first.
    let finite = any::<f32>().prop_filter("finite", |v| v.is_finite());
    finite.prop_map(|v| serde_json::from_str(&serde_json::to_string(&v).unwrap()).unwrap())
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().chain([0, 0].iter()).take(3).fold(0u32, |bits, &byte| bits << 8 | u32::from(byte));
        for index in 0..4 {
            let sextet = (bits >> (18 - 6 * index) & 63) as usize;
            out.push(if index <= chunk.len() { char::from(ALPHABET[sextet]) } else { '=' });
        }
    }
    out
}

fn value(field_type: FieldType) -> BoxedStrategy<Value> {
    match field_type {
        FieldType::Scalar(scalar) => scalar_value(scalar),
        FieldType::List(scalar) => {
            proptest::collection::vec(scalar_value(scalar), 0..5).prop_map(Value::Array).boxed()
        }
        FieldType::Map(scalar) => {
            proptest::collection::btree_map(any::<String>(), scalar_value(scalar), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect()))
                .boxed()
        }
        FieldType::Vector { element, dimensions } => {
            let item = match element {
                ElementType::F32 => single().boxed(),
                ElementType::F16 => any::<u16>()
                    .prop_map(|bits| f32_from_f16(bits & 0xbfff))
                    .prop_map(|v| {
                        assert_eq!(f32_from_f16(f16_from_f32(v)), v);
                        serde_json::from_str(&serde_json::to_string(&v).unwrap()).unwrap()
                    })
                    .boxed(),
                ElementType::I8 => any::<i8>().prop_map(|v| json!(v)).boxed(),
            };
            proptest::collection::vec(item, dimensions as usize).prop_map(Value::Array).boxed()
        }
    }
}

/// A schema and a record under it that has every field.
fn schema_and_record() -> impl Strategy<Value = (Schema, Vec<Value>)> {
    schema().prop_flat_map(|schema| {
        let values: Vec<BoxedStrategy<Value>> = schema
            .fields()
            .iter()
            .map(|field| match field.is_nullable() {
                true => prop_oneof![1 => Just(Value::Null), 2 => value(field.field_type())].boxed(),
                false => value(field.field_type()),
            })
            .collect();
        (Just(schema), values)
    })
}

/// The record as compact JSON, with fields in the order of the schema.
fn text(schema: &Schema, values: &[Value]) -> String {
    let members: Vec<String> = schema
        .fields()
        .iter()
        .zip(values)
        .map(|(field, value)| format!("{}:{}", json!(field.name()), printed(field.field_type(), value)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// `serde_json` prints an f64, but the text of an f32 is shorter.
fn printed(field_type: FieldType, value: &Value) -> String {
    let is_single = match field_type {
        FieldType::Scalar(scalar) | FieldType::List(scalar) | FieldType::Map(scalar) => {
            scalar == ScalarType::F32
        }
        FieldType::Vector { element, .. } => element != ElementType::I8,
    };
    match value {
        Value::Number(number) if is_single => format!("{:?}", number.as_f64().unwrap() as f32),
        Value::Number(number) if number.is_f64() => format!("{:?}", number.as_f64().unwrap()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| printed(field_type, item)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(entries) => {
            let entries: std::collections::BTreeMap<_, _> = entries.iter().collect();
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}:{}", json!(key), printed(field_type, value)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        other => other.to_string(),
    }
}

fn written(schema: &Schema, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    RecordWriter::new(schema).write_json(text, &mut out).unwrap();
    out
}

/// Reads everything in a record.
fn read_everything(schema: &Schema, bytes: &[u8]) {
    let Ok(view) = RecordView::new(schema, bytes) else { return };
    let _ = view.verify();
    let _ = view.to_json();
    for field in schema.fields() {
        let Ok(Some(value)) = view.field(field.name()) else { continue };
        if let Some(list) = value.as_list() {
            (0..list.len()).for_each(|index| assert!(list.get(index).is_ok() || view.verify().is_err()));
        }
        if let Some(map) = value.as_map() {
            ["", "a", "\u{10ffff}"]
                .iter()
                .for_each(|key| assert!(map.get(key).is_ok() || view.verify().is_err()));
        }
        if let Some(vector) = value.as_vector() {
            assert_eq!(vector.iter().count(), vector.dimensions());
            assert_eq!(vector.get(vector.dimensions()), None);
        }
    }
    let last = schema.fields().len() - 1;
    let kept = schema.select(&if last == 0 { vec![0] } else { vec![last, 0] }).unwrap();
    let projection = Projection::resolve(schema, &kept).unwrap();
    let mut out = Vec::new();
    if projection.write(bytes, &mut out).is_ok() {
        // Values that were copied without decoding may be damaged, but the layout of the record is valid.
        RecordView::new(&kept, &out).unwrap();
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back((schema, values) in schema_and_record()) {
        let text = text(&schema, &values);
        let bytes = written(&schema, &text);
        let view = RecordView::new(&schema, &bytes).unwrap();
        view.verify().unwrap();
        prop_assert_eq!(&view.to_json().unwrap(), &text);
        for (field, value) in schema.fields().iter().zip(&values) {
            prop_assert_eq!(view.field(field.name()).unwrap().is_none(), value.is_null());
        }
    }

    #[test]
    fn a_projection_is_the_record_of_the_fields_kept(
        (schema, values) in schema_and_record(),
        picks in proptest::collection::vec(any::<proptest::sample::Index>(), 1..6),
    ) {
        let mut kept: Vec<usize> = Vec::new();
        for index in picks.iter().map(|pick| pick.index(schema.fields().len())) {
            if !kept.contains(&index) {
                kept.push(index);
            }
        }
        let reader = schema.select(&kept).unwrap();
        let projection = Projection::resolve(&schema, &reader).unwrap();
        let (bytes, mut projected) = (written(&schema, &text(&schema, &values)), Vec::new());
        projection.write(&bytes, &mut projected).unwrap();
        let kept_values: Vec<Value> = kept.iter().map(|&index| values[index].clone()).collect();
        prop_assert_eq!(projected, written(&reader, &text(&reader, &kept_values)));
        let view = projection.view(&bytes).unwrap();
        for (position, &index) in kept.iter().enumerate() {
            prop_assert_eq!(view.at(position).unwrap(), RecordView::new(&schema, &bytes).unwrap().at(index).unwrap());
        }
    }

    #[test]
    fn damaged_records_never_panic(
        (schema, values) in schema_and_record(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<proptest::sample::Index>(),
    ) {
        let mut bytes = written(&schema, &text(&schema, &values));
        read_everything(&schema, &bytes[..cut.index(bytes.len() + 1)]);
        if !bytes.is_empty() {
            for (index, byte) in damage {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            read_everything(&schema, &bytes);
        }
    }

    #[test]
    fn any_bytes_never_panic(schema in schema(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read_everything(&schema, &bytes);
    }

    #[test]
    fn any_text_never_panics(schema in schema(), text in "\\PC*") {
        let _ = text.parse::<Schema>();
        let _ = text.parse::<FieldType>();
        let _ = RecordWriter::new(&schema).write_json(&text, &mut Vec::new());
    }

    #[test]
    fn canonical_text_is_the_schema(schema in schema()) {
        let again: Schema = schema.canonical().parse().unwrap();
        prop_assert_eq!(again.canonical(), schema.canonical());
        prop_assert_eq!(again.fields(), schema.fields());
    }

    #[test]
    fn readers_of_a_compatible_schema_read_old_records((old, values) in schema_and_record(), new in schema()) {
        if compatible(&old, &new).is_ok() {
            let projection = Projection::resolve(&old, &new).unwrap();
            let (bytes, mut out) = (written(&old, &text(&old, &values)), Vec::new());
            projection.write(&bytes, &mut out).unwrap();
            RecordView::new(&new, &out).unwrap().verify().unwrap();
        }
    }
}
