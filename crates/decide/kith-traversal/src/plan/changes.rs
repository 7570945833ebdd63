//! Steps that change the graph.

use super::{
    Kind, PropertyGiven, StepArgument,
    arguments::{Arguments, given},
    calls::Call,
    keys::{self, EDGE, VERTEX},
    merge_maps,
    merges::merge,
};
use crate::{
    bytecode::Instruction,
    error::{GremlinError, Result},
    value::{Cardinality, Symbol, Token, Value},
};

pub(super) fn compile(call: &Call<'_>) -> Result<Option<Vec<Kind>>> {
    let mut arguments = Arguments::of(call.instruction)?;
    let kinds = match call.name() {
        "addV" => {
            call.allow(&["property", "with"])?;
            let properties = folded(call)?;
            check_single(&properties)?;
            vec![Kind::AddVertex { label: label(&mut arguments, VERTEX, &properties)?, properties }]
        }
        "addE" => {
            call.allow(&["property", "from", "to", "with"])?;
            let (from, to) = (end(call, "from")?, end(call, "to")?);
            let properties = folded(call)?;
            check_edge(&properties)?;
            vec![Kind::AddEdge { label: label(&mut arguments, EDGE, &properties)?, from, to, properties }]
        }
        "property" => {
            call.allow(&["with"])?;
            set_properties(call.instruction)?
        }
        "drop" => {
            call.allow(&[])?;
            vec![Kind::Drop]
        }
        "mergeV" => vec![Kind::MergeVertex(merge(call, &mut arguments, false)?)],
        "mergeE" => vec![Kind::MergeEdge(merge(call, &mut arguments, true)?)],
        _ => return Ok(None),
    };
    if call.name() != "property" {
        arguments.end()?;
    }
    Ok(Some(kinds))
}

/// `property` of elements that exist: a step for each key.
fn set_properties(instruction: &Instruction) -> Result<Vec<Kind>> {
    let properties = properties(instruction)?;
    for property in &properties {
        if let StepArgument::Value(value) = &property.value {
            merge_maps::check_cardinality(value, property.cardinality)?;
        }
    }
    let kinds: Vec<Kind> = properties.into_iter().map(Kind::SetProperty).collect();
    Ok(if kinds.is_empty() { vec![Kind::Identity] } else { kinds })
}

/// Refuses a second value of a key of a new vertex. A value with the cardinality `single` takes the place of those before.
fn check_single(properties: &[PropertyGiven]) -> Result<()> {
    let key_of = |property: &PropertyGiven| match &property.key {
        StepArgument::Value(key @ Value::String(_)) => Some(key.clone()),
        _ => None,
    };
    for (at, property) in properties.iter().enumerate() {
        let Some(key) = key_of(property) else { continue };
        let is_known = properties[..at].iter().any(|before| key_of(before).as_ref() == Some(&key));
        if is_known && property.cardinality != Some(Cardinality::Single) {
            return Err(GremlinError::unsupported(format!("more than one value of a key ({key})")));
        }
    }
    Ok(())
}

/// Refuses several values of a key of a new edge.
fn check_edge(properties: &[PropertyGiven]) -> Result<()> {
    for property in properties {
        if matches!(property.cardinality, Some(Cardinality::List | Cardinality::Set)) {
            return Err(GremlinError::bad(
                "Multi-property cardinality can only be set for a Vertex but is being used for addE()",
            ));
        }
    }
    Ok(())
}

/// The label of a new element, as an argument or else as a property with the key `T.label`; not both.
fn label(arguments: &mut Arguments<'_>, default: &str, properties: &[PropertyGiven]) -> Result<StepArgument> {
    let given = match arguments.next() {
        None => return Ok(StepArgument::Value(default.into())),
        Some(Value::Null) if default == EDGE => return Ok(StepArgument::Value(default.into())),
        Some(label) => given(label)?,
    };
    let is_label = |it: &&PropertyGiven| {
        matches!(it.key, StepArgument::Value(Value::Symbol(Symbol::Token(Token::Label))))
    };
    if let StepArgument::Value(label) = &given {
        keys::check_label(label)?;
        if let Some(StepArgument::Value(other)) =
            properties.iter().find(is_label).map(|property| &property.value)
        {
            return Err(GremlinError::bad(format!(
                "Element T.label has already been set to [{label}] and cannot be overridden with [{other}]"
            )));
        }
    }
    Ok(given)
}

fn end(call: &Call<'_>, name: &'static str) -> Result<Option<StepArgument>> {
    let Some(modulator) = call.modulators(name).last() else { return Ok(None) };
    let mut arguments = Arguments::of(modulator.instruction)?;
    let end = match arguments.given("a vertex")? {
        StepArgument::Value(Value::String(label)) => StepArgument::Label(label),
        other => other,
    };
    arguments.end()?;
    Ok(Some(end))
}

/// The `property` calls after `addV` or `addE`.
fn folded(call: &Call<'_>) -> Result<Vec<PropertyGiven>> {
    let all: Vec<_> =
        call.modulators("property").map(|it| properties(it.instruction)).collect::<Result<_>>()?;
    Ok(all.into_iter().flatten().collect())
}

/// `property(cardinality?, key, value, …)` or `property(cardinality?, map)`.
fn properties(instruction: &Instruction) -> Result<Vec<PropertyGiven>> {
    let mut arguments = Arguments::of(instruction)?;
    let cardinality = match arguments.peek() {
        Some(Value::Symbol(Symbol::Cardinality(cardinality))) => {
            arguments.next();
            Some(*cardinality)
        }
        _ => None,
    };
    match (arguments.len(), arguments.peek()) {
        (1, Some(Value::Map(map))) => {
            let one = |(key, value): (&Value, &Value)| property(cardinality, key, value);
            return map.iter().map(one).collect();
        }
        // No map: there is nothing to set.
        (1, Some(Value::Null)) => return Ok(Vec::new()),
        _ => {}
    }
    let (key, value) = (arguments.required("a key")?, arguments.required("a value")?);
    if !arguments.is_empty() {
        return Err(GremlinError::unsupported("a property of a property"));
    }
    Ok(vec![property(cardinality, key, value)?])
}

fn property(cardinality: Option<Cardinality>, key: &Value, value: &Value) -> Result<PropertyGiven> {
    match key {
        Value::String(key) => keys::check_property(key)?,
        Value::Symbol(Symbol::Token(_)) | Value::Traversal(_) => {}
        Value::Null => return Err(GremlinError::bad("Property key can not be null")),
        other => {
            let found = other.type_name();
            return Err(GremlinError::bad(format!(
                "a key of a property is a string, not a value of type {found}"
            )));
        }
    }
    let (cardinality, value) = merge_maps::with_cardinality(value, cardinality);
    Ok(PropertyGiven { cardinality, key: given(key)?, value: given(value)? })
}
