//! The fields of records as properties of vertices.

use super::ids::number_id;
use kith_gremlin::{
    GremlinError,
    value::{Map, Value, Vertex, VertexProperty, time},
};
use kith_schema::{ElementType, FieldView, RecordView, Scalar, VectorView};
use kith_traversal::evaluate::of_properties;
use kith_types::ErrorCode;
use std::sync::Arc;

/// The properties of a vertex: the fields of its record that are not null, in the order of the schema.
///
/// # Errors
/// The record is damaged, or has a time that no value of Gremlin can express.
pub(super) fn properties_of(
    record: RecordView<'_>,
    vertex: &Arc<Vertex>,
) -> Result<Vec<Arc<VertexProperty>>, GremlinError> {
    let fields = record.schema().fields().iter().enumerate();
    let property = |(index, field): (usize, &kith_schema::Field)| {
        let value = match record.at(index) {
            Ok(Some(view)) => value_of(&view).map_err(|why| unreadable(vertex, field.name(), &why))?,
            Ok(None) => return Ok(None),
            Err(error) => return Err(unreadable(vertex, field.name(), &error.to_string())),
        };
        Ok(Some(property(vertex, field.name().into(), value)))
    };
    fields.filter_map(|field| property(field).transpose()).collect()
}

/// The memory that the properties of a record of this length take, found out before they are made. Fields that are damaged become no
/// property.
pub(super) fn size_of(record: RecordView<'_>, length: usize) -> u64 {
    let (mut count, mut members) = (0, 0);
    for index in 0..record.schema().fields().len() {
        let Ok(Some(view)) = record.at(index) else { continue };
        count += 1;
        match view {
            FieldView::Scalar(_) => {}
            FieldView::Vector(vector) => members += vector.dimensions(),
            FieldView::List(list) => members += list.len(),
            FieldView::Map(map) => members += 2 * map.len(),
        }
    }
    of_properties(count, members, length)
}

/// A property of a vertex. Its id is the text `VERTEX>KEY`.
pub(super) fn property(vertex: &Arc<Vertex>, key: Arc<str>, value: Value) -> Arc<VertexProperty> {
    Arc::new(VertexProperty {
        id: Value::text(format!("{}>{key}", vertex.id)),
        key,
        value,
        vertex: Some(Arc::clone(vertex)),
        properties: Vec::new(),
    })
}

fn unreadable(vertex: &Vertex, field: &str, why: &str) -> GremlinError {
    let message = format!("the field {field:?} of vertex {} cannot be a property: {why}", vertex.id);
    GremlinError::new(ErrorCode::Damaged, message)
}

/// The value of a field: `i32` is an `Int`, `i64` a `Long`, `u64` a `Long` or from 2⁶³ a `BigInteger`, `f32` a `Float`, `f64` a
/// `Double`, a timestamp a `DateTime` in UTC, bytes are `Binary`, and a vector is a list of `Float`, or of `Byte` for `i8`.
///
/// # Errors
/// The reason why the bytes are no such value.
pub(super) fn value_of(view: &FieldView<'_>) -> Result<Value, String> {
    match view {
        FieldView::Scalar(scalar) => scalar_of(*scalar),
        FieldView::Vector(vector) => Ok(vector_of(vector)),
        FieldView::List(list) => {
            let items = list.iter().map(|item| scalar_of(item?)).collect::<Result<Vec<_>, _>>()?;
            Ok(Value::list(items))
        }
        FieldView::Map(map) => {
            let entry = |entry: Result<(&str, Scalar<'_>), &str>| -> Result<(Value, Value), String> {
                let (key, value) = entry?;
                Ok((Value::text(key), scalar_of(value)?))
            };
            Ok(Value::Map(Arc::new(map.iter().map(entry).collect::<Result<Map, _>>()?)))
        }
    }
}

fn scalar_of(scalar: Scalar<'_>) -> Result<Value, String> {
    Ok(match scalar {
        Scalar::Bool(value) => Value::Bool(value),
        Scalar::I32(value) => Value::Int(value),
        Scalar::I64(value) => Value::Long(value),
        Scalar::U64(value) => number_id(value),
        Scalar::F32(value) => Value::Float(value),
        Scalar::F64(value) => Value::Double(value),
        Scalar::Text(value) => Value::text(value),
        Scalar::Bytes(value) => Value::Binary(value.to_vec().into()),
        Scalar::Timestamp(millis) => time::instant_of_millis(millis).map_err(|error| error.to_string())?,
    })
}

fn vector_of(vector: &VectorView<'_>) -> Value {
    let element = |number: f32| match vector.element() {
        // Exact: the vector holds whole numbers from -128 to 127.
        #[allow(clippy::cast_possible_truncation, reason = "the number is whole and in range")]
        ElementType::I8 => Value::Byte(number as i8),
        ElementType::F32 | ElementType::F16 => Value::Float(number),
    };
    Value::list(vector.iter().map(element).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_schema::{RecordWriter, Schema};

    const SCHEMA: &str = r#"{"fields":[
        {"name":"yes","type":"bool"}, {"name":"small","type":"i32"}, {"name":"large","type":"i64"},
        {"name":"id","type":"u64"}, {"name":"huge","type":"u64"}, {"name":"single","type":"f32"},
        {"name":"double","type":"f64"}, {"name":"name","type":"text"}, {"name":"raw","type":"bytes"},
        {"name":"at","type":"timestamp"}, {"name":"tags","type":"list<text>"}, {"name":"marks","type":"map<text,i32>"},
        {"name":"near","type":"vector<i8,2>"}, {"name":"none","type":"text","nullable":true}
    ]}"#;

    #[test]
    fn each_type_of_field_has_its_type_of_value() {
        let schema: Schema = SCHEMA.parse().unwrap();
        let row = r#"{"yes": true, "small": -5, "large": 7, "id": 9, "huge": 18446744073709551615, "single": 0.5,
            "double": 0.1, "name": "Ada", "raw": "AQI=", "at": 1500, "tags": ["a", "b"], "marks": {"x": 1},
            "near": [-128, 127], "none": null}"#;
        let mut record = Vec::new();
        RecordWriter::new(&schema).write_json(row, &mut record).unwrap();
        let vertex = Arc::new(Vertex::reference(Value::Long(3), "member"));
        let all = properties_of(RecordView::new(&schema, &record).unwrap(), &vertex).unwrap();
        let shown: Vec<String> =
            all.iter().map(|it| format!("{} {} {}", it.key, it.value.type_name(), it.value)).collect();
        assert_eq!(
            shown,
            [
                "yes Boolean true",
                "small Int -5",
                "large Long 7",
                "id Long 9",
                "huge BigInteger 18446744073709551615",
                "single Float 0.5",
                "double Double 0.1",
                "name String Ada",
                "raw Binary AQI=",
                "at DateTime 1970-01-01T00:00:01.500Z",
                "tags List [a, b]",
                "marks Map {x=1}",
                "near List [-128, 127]",
            ]
        );
        let size = size_of(RecordView::new(&schema, &record).unwrap(), record.len());
        assert!((13 * 256..6_000).contains(&size), "{size}");
        assert_eq!(all[0].id, Value::text("3>yes"));
        assert_eq!(all[0].vertex.as_ref(), Some(&vertex));
    }
}
