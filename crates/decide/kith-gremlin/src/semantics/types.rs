//! The types that `typeOf` tells apart.

use crate::value::{GType, Value};

/// The names that TinkerPop registers for types, which are simple names of Java classes, and the packages of the classes.
const NAMES: &[(&str, &str, GType)] = &[
    ("java.math.", "BigDecimal", GType::BigDecimal),
    ("java.math.", "BigInteger", GType::BigInt),
    ("java.nio.", "ByteBuffer", GType::Binary),
    ("java.lang.", "Boolean", GType::Boolean),
    ("java.lang.", "Byte", GType::Byte),
    ("java.lang.", "Character", GType::Char),
    ("java.time.", "OffsetDateTime", GType::DateTime),
    ("java.lang.", "Double", GType::Double),
    ("java.time.", "Duration", GType::Duration),
    ("org.apache.tinkerpop.gremlin.structure.", "Edge", GType::Edge),
    ("java.lang.", "Float", GType::Float),
    ("org.apache.tinkerpop.gremlin.structure.", "Graph", GType::Graph),
    ("java.lang.", "Integer", GType::Int),
    ("java.util.", "List", GType::List),
    ("java.lang.", "Long", GType::Long),
    ("java.util.", "Map", GType::Map),
    ("java.lang.", "Number", GType::Number),
    ("org.apache.tinkerpop.gremlin.process.traversal.", "Path", GType::Path),
    ("org.apache.tinkerpop.gremlin.structure.", "Property", GType::Property),
    ("java.util.", "Set", GType::Set),
    ("java.lang.", "Short", GType::Short),
    ("java.lang.", "String", GType::String),
    ("org.apache.tinkerpop.gremlin.process.traversal.step.util.", "Tree", GType::Tree),
    ("java.util.", "UUID", GType::Uuid),
    ("org.apache.tinkerpop.gremlin.structure.", "Vertex", GType::Vertex),
    ("org.apache.tinkerpop.gremlin.structure.", "VertexProperty", GType::VertexProperty),
];

/// The type with this registered name, such as `Integer`.
pub(super) fn type_named(name: &str) -> Option<GType> {
    NAMES.iter().find(|&&(_, simple, _)| name == simple).map(|&(_, _, found)| found)
}

/// The type with this full name of a Java class, such as `java.lang.Integer`.
pub(super) fn type_of_class(name: &str) -> Option<GType> {
    let fits = |&&(package, simple, _): &&(&str, &str, GType)| name.strip_prefix(package) == Some(simple);
    NAMES.iter().find(fits).map(|&(_, _, found)| found)
}

/// The names that [`type_named`] knows, without packages.
pub(super) fn type_names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|&(_, simple, _)| simple)
}

/// Whether a value is of a type. `NUMBER` holds all numbers, and `PROPERTY` also the properties of vertices.
pub fn type_of(value: &Value, expected: GType) -> bool {
    match expected {
        GType::BigDecimal => matches!(value, Value::BigDecimal(_)),
        GType::BigInt => matches!(value, Value::BigInteger(_)),
        GType::Binary => matches!(value, Value::Binary(_)),
        GType::Boolean => matches!(value, Value::Bool(_)),
        GType::Byte => matches!(value, Value::Byte(_)),
        GType::Char => matches!(value, Value::Char(_)),
        GType::DateTime => matches!(value, Value::DateTime(_)),
        GType::Double => matches!(value, Value::Double(_)),
        GType::Duration => matches!(value, Value::Duration { .. }),
        GType::Edge => matches!(value, Value::Edge(_)),
        GType::Float => matches!(value, Value::Float(_)),
        GType::Int => matches!(value, Value::Int(_)),
        GType::List => matches!(value, Value::List(_)),
        GType::Long => matches!(value, Value::Long(_)),
        GType::Map => matches!(value, Value::Map(_)),
        GType::Null => matches!(value, Value::Null),
        GType::Number => value.is_number(),
        GType::Path => matches!(value, Value::Path(_)),
        GType::Property => matches!(value, Value::Property(_) | Value::VertexProperty(_)),
        GType::Set => matches!(value, Value::Set(_) | Value::BulkSet(_)),
        GType::Short => matches!(value, Value::Short(_)),
        GType::String => matches!(value, Value::String(_)),
        GType::Uuid => matches!(value, Value::Uuid(_)),
        GType::Vertex => matches!(value, Value::Vertex(_)),
        GType::VertexProperty => matches!(value, Value::VertexProperty(_)),
        // Kith has no values of these types.
        GType::Graph | GType::Tree => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantNames;

    #[test]
    fn types_have_simple_and_full_names() {
        assert_eq!(type_named("Integer"), Some(GType::Int));
        assert_eq!(type_of_class("java.lang.Integer"), Some(GType::Int));
        for unknown in ["java.lang.Integer", "integer", "INT", ""] {
            assert_eq!(type_named(unknown), None, "{unknown}");
        }
        for unknown in ["Integer", "java.util.Integer", ""] {
            assert_eq!(type_of_class(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn every_type_but_null_has_a_name() {
        for name in GType::VARIANTS {
            let token: GType = name.parse().unwrap();
            let names = NAMES.iter().filter(|(_, _, named)| *named == token).count();
            assert_eq!(names, usize::from(token != GType::Null), "{name}");
        }
    }

    #[test]
    fn a_value_is_of_its_own_type_and_of_those_that_include_it() {
        let types = |value: &Value| -> Vec<&str> {
            GType::VARIANTS.iter().copied().filter(|name| type_of(value, name.parse().unwrap())).collect()
        };
        assert_eq!(types(&Value::Null), ["NULL"]);
        assert_eq!(types(&Value::Int(1)), ["INT", "NUMBER"]);
        assert_eq!(types(&Value::Double(f64::NAN)), ["DOUBLE", "NUMBER"]);
        assert_eq!(types(&Value::text("1")), ["STRING"]);
        assert_eq!(types(&Value::BulkSet(Default::default())), ["SET"]);
        assert_eq!(types(&Value::list([])), ["LIST"]);
        assert!(types(&Value::Class("java.lang.String".into())).is_empty());
    }
}
