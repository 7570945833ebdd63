//! The common part of both codings when they put values together from the parts that drivers send.

use crate::{
    bytecode::{Bytecode, Instruction},
    error::{GremlinError, Result},
    predicate::Predicate,
    value::{Cardinality, Map, Metrics, Path, Property, Set, Symbol, Value, VertexProperty},
};
use std::sync::Arc;

/// The source instruction by which drivers send a value with its cardinality, as if it were a traversal.
const CARDINALITY_VALUE: &str = "CardinalityValueTraversal";

/// A predicate, with the operands that its operator has.
///
/// Drivers do not tell a list apart from several operands: gremlin-python sends `eq([1, 2])` as `eq` with two operands, and
/// Java sends `between(1, 2)` as one list. What `within` and `without` have becomes one list.
pub(crate) fn predicate(operator: Arc<str>, operands: Vec<Value>) -> Value {
    let operands = match (&*operator, &operands[..]) {
        ("eq" | "neq" | "lt" | "lte" | "gt" | "gte", several) if several.len() != 1 => {
            vec![Value::list(operands)]
        }
        ("within" | "without", _) => vec![Value::list(operands)],
        ("and" | "or" | "between" | "inside" | "outside", [Value::List(list)]) if 1 < list.len() => {
            list.to_vec()
        }
        _ => operands,
    };
    Value::Predicate(Arc::new(Predicate { operator, operands }))
}

/// A traversal, or the value with a cardinality that is sent as one.
pub(crate) fn traversal(mut bytecode: Bytecode) -> Value {
    if let ([source], []) = (&mut bytecode.sources[..], &bytecode.steps[..])
        && &*source.name == CARDINALITY_VALUE
        && let [Value::Symbol(Symbol::Cardinality(cardinality)), value] = &mut source.arguments[..]
    {
        return Value::CardinalityValue { cardinality: *cardinality, value: Arc::new(std::mem::take(value)) };
    }
    Value::Traversal(Arc::new(bytecode))
}

/// A value with a cardinality as the traversal that stands for it.
pub(crate) fn cardinality_value(cardinality: Cardinality, value: &Value) -> Bytecode {
    let arguments = vec![Value::from(cardinality), value.clone()];
    Bytecode { sources: vec![Instruction::new(CARDINALITY_VALUE, arguments)], steps: vec![] }
}

/// A strategy, named by the last part of the name of its class: drivers disagree about the package.
pub(crate) fn strategy(class: &str, configuration: Map) -> Value {
    let name = class.rsplit(['.', '$']).next().unwrap_or(class);
    Value::Strategy { name: name.into(), configuration: Arc::new(configuration) }
}

/// A path from the list of the sets of its labels and the list of its objects.
pub(crate) fn path(labels: &Value, objects: Value) -> Result<Value> {
    let (Value::List(labels), Value::List(objects)) = (labels, objects) else {
        return Err(GremlinError::bad("a path has no list of labels, or no list of objects"));
    };
    if labels.len() != objects.len() {
        let counts = format!("a path has {} objects, and labels for {}", objects.len(), labels.len());
        return Err(GremlinError::bad(counts));
    }
    let label_set = |value: &Value| match value {
        Value::Set(set) => Ok(Set::clone(set)),
        Value::List(list) => Ok(list.iter().cloned().collect()),
        other => Err(wanted("the labels of an object in a path", "a set", other)),
    };
    let labels = labels.iter().map(label_set).collect::<Result<_>>()?;
    Ok(Value::Path(Arc::new(Path { labels, objects: Arc::unwrap_or_clone(objects) })))
}

/// The property of a vertex that a value is.
pub(crate) fn vertex_property(value: Value) -> Result<Arc<VertexProperty>> {
    match value {
        Value::VertexProperty(property) => Ok(property),
        other => Err(wanted("a property of a vertex", "a VertexProperty", &other)),
    }
}

/// The property of an edge, or of a vertex property, that a value is.
pub(crate) fn property(value: Value) -> Result<Arc<Property>> {
    match value {
        Value::Property(property) => Ok(property),
        other => Err(wanted("a property", "a Property", &other)),
    }
}

/// The metrics of a step that a value is.
pub(crate) fn metrics(value: Value) -> Result<Metrics> {
    match value {
        Value::Metrics(metrics) => Ok(Arc::unwrap_or_clone(metrics)),
        other => Err(wanted("an entry of metrics", "Metrics", &other)),
    }
}

/// Counts by name, from a map.
pub(crate) fn counts(map: Map) -> Result<Vec<(String, i64)>> {
    let count = |(name, value): (Value, Value)| match value {
        Value::Long(count) => Ok((name.to_string(), count)),
        Value::Int(count) => Ok((name.to_string(), count.into())),
        other => Err(wanted("a count of metrics", "a Long", &other)),
    };
    map.into_iter().map(count).collect()
}

/// An error about a value of the wrong type.
pub(crate) fn wanted(what: &str, wanted: &str, got: &Value) -> GremlinError {
    GremlinError::bad(format!("{what} must be {wanted}, not {}", article(got.type_name())))
}

fn article(name: &str) -> String {
    match name.as_bytes().first() {
        _ if name == "null" => name.to_owned(),
        Some(b'A' | b'E' | b'I' | b'O') => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operands(operator: &str, operands: Vec<Value>) -> Vec<Value> {
        match predicate(operator.into(), operands) {
            Value::Predicate(predicate) => predicate.operands.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn operands_are_what_the_operator_takes() {
        let list = Value::list([1.into(), 2.into()]);
        assert_eq!(operands("eq", vec![1.into()]), [1.into()]);
        assert_eq!(operands("eq", vec![1.into(), 2.into()]), vec![list.clone()]);
        assert_eq!(operands("eq", vec![]), [Value::list([])]);
        assert_eq!(operands("between", vec![list.clone()]), [1.into(), 2.into()]);
        assert_eq!(operands("within", vec![1.into(), 2.into()]), vec![list.clone()]);
        assert_eq!(operands("within", vec![list.clone()]), [Value::list([list])], "a list as the only value");
        assert_eq!(operands("within", vec![]), [Value::list([])]);
    }

    #[test]
    fn a_value_with_a_cardinality_is_recognised() {
        let bytecode = cardinality_value(Cardinality::List, &"a".into());
        let value = Value::CardinalityValue { cardinality: Cardinality::List, value: Arc::new("a".into()) };
        assert_eq!(traversal(bytecode), value);
        let plain = Bytecode { sources: vec![], steps: vec![Instruction::new("V", vec![])] };
        assert_eq!(traversal(plain.clone()), Value::Traversal(Arc::new(plain)));
    }

    #[test]
    fn strategies_lose_their_package() {
        let value = strategy("org.apache.tinkerpop.gremlin.a.b.ReadOnlyStrategy", Map::new());
        assert_eq!(value.to_string(), "ReadOnlyStrategy");
    }
}
