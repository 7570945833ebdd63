//! The text form of values, as `toString` of Java gives it: `v[1]`, `{name=marko}`, `1.0E10`. `asString()` and the results of
//! `-stringd` serializers are such texts. Binary values differ: they are printed in base64, not as the name of a Java class.

use super::{Edge, Path, Property, Value, VertexProperty, duration, numbers, time};
use crate::{
    bytecode::{Bytecode, Instruction},
    predicate::Predicate,
};
use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use std::fmt::{self, Display, Formatter, Write};

/// The value of a property is cut to this many characters within the property's text, as in TinkerPop.
const PROPERTY_VALUE_CHARS_MAX: usize = 20;

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Byte(value) => write!(f, "{value}"),
            Self::Short(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Long(value) => write!(f, "{value}"),
            Self::Float(value) => f.write_str(&numbers::float_text(*value)),
            Self::Double(value) => f.write_str(&numbers::double_text(*value)),
            Self::BigInteger(value) => write!(f, "{value}"),
            Self::BigDecimal(value) => f.write_str(&numbers::decimal_text(value)),
            Self::Char(value) => f.write_char(*value),
            Self::String(text) | Self::Class(text) => f.write_str(text),
            Self::Uuid(value) => write!(f, "{value}"),
            Self::DateTime(value) => f.write_str(&time::date_time_text(value)),
            Self::Duration { seconds, nanos } => f.write_str(&duration::text(*seconds, *nanos)),
            Self::Binary(bytes) => write!(f, "{}", Base64Display::new(bytes, &STANDARD)),
            Self::List(values) => list(f, values.iter()),
            Self::Set(values) => list(f, values.iter()),
            Self::Map(entries) => pairs(f, entries.iter()),
            Self::Entry(entry) => write!(f, "{}={}", entry.0, entry.1),
            Self::BulkSet(values) => pairs(f, values.iter().map(|(value, bulk)| (value, bulk))),
            Self::Vertex(vertex) => write!(f, "v[{}]", vertex.id),
            Self::Edge(edge) => edge.fmt(f),
            Self::VertexProperty(property) => property.fmt(f),
            Self::Property(property) => property.fmt(f),
            Self::Path(path) => path.fmt(f),
            Self::Symbol(symbol) => f.write_str(symbol.name()),
            Self::Predicate(predicate) => predicate.fmt(f),
            Self::Traversal(bytecode) => bytecode.fmt(f),
            Self::Traverser { value, .. } => value.fmt(f),
            Self::CardinalityValue { cardinality, value } => write!(f, "{cardinality}({value})"),
            Self::Strategy { name, .. } => f.write_str(name),
            Self::Lambda { language, .. } => write!(f, "lambda[{language}]"),
            Self::Metrics(metrics) => metrics.fmt(f),
            Self::TraversalMetrics(metrics) => metrics.fmt(f),
        }
    }
}

fn pairs<'a, T: Display + 'a>(
    f: &mut Formatter<'_>,
    pairs: impl Iterator<Item = (&'a Value, &'a T)>,
) -> fmt::Result {
    separated(f, "{", pairs, "}", |f, (key, value)| write!(f, "{key}={value}"))
}

impl Display for Edge {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "e[{}][{}-{}->{}]", self.id, self.out_vertex.id, self.label, self.in_vertex.id)
    }
}

impl Display for VertexProperty {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "vp[{}->{}]", self.key, abbreviated(&self.value))
    }
}

impl Display for Property {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "p[{}->{}]", self.key, abbreviated(&self.value))
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("path")?;
        list(f, self.objects.iter())
    }
}

impl Display for Predicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operator)?;
        let is_membership = matches!(&*self.operator, "within" | "without");
        let is_one_list = matches!(&self.operands[..], [Value::List(_) | Value::Set(_)]);
        if is_membership && !is_one_list {
            return separated(f, "([", self.operands.iter(), "])", |f, operand| operand.fmt(f));
        }
        separated(f, "(", self.operands.iter(), ")", |f, operand| operand.fmt(f))
    }
}

impl Display for Bytecode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, instruction) in self.sources.iter().chain(&self.steps).enumerate() {
            if 0 < index {
                f.write_char('.')?;
            }
            instruction.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        separated(f, "(", self.arguments.iter(), ")", |f, argument| argument.fmt(f))
    }
}

/// The values between brackets.
fn list<'a>(f: &mut Formatter<'_>, values: impl Iterator<Item = &'a Value>) -> fmt::Result {
    separated(f, "[", values, "]", |f, value| value.fmt(f))
}

/// The items between `open` and `close`, separated by commas.
fn separated<T>(
    f: &mut Formatter<'_>,
    open: &str,
    items: impl Iterator<Item = T>,
    close: &str,
    write: impl Fn(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    f.write_str(open)?;
    for (index, item) in items.enumerate() {
        if 0 < index {
            f.write_str(", ")?;
        }
        write(f, item)?;
    }
    f.write_str(close)
}

/// The text of the value of a property, cut to [`PROPERTY_VALUE_CHARS_MAX`] characters.
fn abbreviated(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().nth(PROPERTY_VALUE_CHARS_MAX).is_none() {
        return text;
    }
    let kept: String = text.chars().take(PROPERTY_VALUE_CHARS_MAX - "...".len()).collect();
    format!("{kept}...")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Map, Set, Token, Vertex};
    use std::sync::Arc;

    fn vertex(id: i64) -> Arc<Vertex> {
        Arc::new(Vertex::reference(Value::Long(id), "person"))
    }

    #[test]
    fn elements_have_the_texts_of_tinkerpop() {
        let edge = Edge {
            id: "1>knows>2".into(),
            label: "knows".into(),
            out_vertex: vertex(1),
            in_vertex: vertex(2),
            properties: None,
        };
        let name = VertexProperty {
            id: Value::Long(0),
            key: "name".into(),
            value: "a name of 24 characters.".into(),
            vertex: None,
            properties: vec![],
        };
        let weight = Property { key: "weight".into(), value: Value::Double(0.5), element: None };
        let path = Path {
            labels: vec![Set::new(), Set::new()],
            objects: vec![Value::Vertex(vertex(1)), Value::Vertex(vertex(2))],
        };
        assert_eq!(Value::Vertex(vertex(1)).to_string(), "v[1]");
        assert_eq!(Value::Edge(Arc::new(edge)).to_string(), "e[1>knows>2][1-knows->2]");
        assert_eq!(Value::VertexProperty(Arc::new(name)).to_string(), "vp[name->a name of 24 char...]");
        assert_eq!(Value::Property(Arc::new(weight)).to_string(), "p[weight->0.5]");
        assert_eq!(Value::Path(Arc::new(path)).to_string(), "path[v[1], v[2]]");
    }

    #[test]
    fn collections_nest() {
        let map: Map = [("name".into(), Value::list(["marko".into(), Value::Null]))].into_iter().collect();
        assert_eq!(Value::Map(Arc::new(map)).to_string(), "{name=[marko, null]}");
        let set: Set = [Value::Int(1), Value::Long(1)].into_iter().collect();
        assert_eq!(Value::Set(Arc::new(set)).to_string(), "[1, 1]");
        let bulks = Value::BulkSet(Arc::new(vec![("a".into(), 2), ("b".into(), 1)]));
        assert_eq!(bulks.to_string(), "{a=2, b=1}");
    }

    #[test]
    fn predicates_and_traversals_are_legible() {
        let within = Predicate { operator: "within".into(), operands: vec![1.into(), 2.into()] };
        assert_eq!(within.to_string(), "within([1, 2])");
        let step = Instruction::new("has", vec![Value::from(Token::Id), Value::Predicate(Arc::new(within))]);
        let traversal = Bytecode { sources: vec![], steps: vec![Instruction::new("V", vec![]), step] };
        assert_eq!(traversal.to_string(), "V().has(id, within([1, 2]))");
    }
}
