//! Steps that change the graph.

use super::{
    Given, Kind, MergeMaps, PropertyGiven,
    arguments::{Arguments, given},
    calls::Call,
};
use crate::{
    bytecode::Instruction,
    error::{GremlinError, Result},
    value::{Cardinality, Merge, Symbol, Value},
};

pub(super) fn compile(call: &Call<'_>) -> Result<Option<Vec<Kind>>> {
    let mut arguments = Arguments::of(call.instruction)?;
    let kinds = match call.name() {
        "addV" => {
            call.allow(&["property"])?;
            vec![Kind::AddVertex { label: label(&mut arguments, "vertex")?, properties: folded(call)? }]
        }
        "addE" => {
            call.allow(&["property", "from", "to"])?;
            let (from, to) = (end(call, "from")?, end(call, "to")?);
            vec![Kind::AddEdge { label: label(&mut arguments, "edge")?, from, to, properties: folded(call)? }]
        }
        "property" => {
            call.allow(&[])?;
            properties(call.instruction)?.into_iter().map(Kind::SetProperty).collect()
        }
        "drop" => {
            call.allow(&[])?;
            vec![Kind::Drop]
        }
        "mergeV" => vec![Kind::MergeVertex(merge(call, &mut arguments)?)],
        "mergeE" => vec![Kind::MergeEdge(merge(call, &mut arguments)?)],
        _ => return Ok(None),
    };
    if call.name() != "property" {
        arguments.end()?;
    }
    Ok(Some(kinds))
}

fn label(arguments: &mut Arguments<'_>, default: &str) -> Result<Given> {
    if arguments.is_empty() { Ok(Given::Value(default.into())) } else { arguments.given("a label") }
}

fn end(call: &Call<'_>, name: &'static str) -> Result<Option<Given>> {
    let Some(modulator) = call.modulators(name).last() else { return Ok(None) };
    let mut arguments = Arguments::of(modulator.instruction)?;
    let end = match arguments.given("a vertex")? {
        Given::Value(Value::String(label)) => Given::Label(label),
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
    if let (1, Some(Value::Map(map))) = (arguments.len(), arguments.peek()) {
        let one = |(key, value): (&Value, &Value)| property(cardinality, key, value);
        return map.iter().map(one).collect();
    }
    let (key, value) = (arguments.required("a key")?, arguments.required("a value")?);
    if !arguments.is_empty() {
        return Err(GremlinError::unsupported("a property of a property"));
    }
    Ok(vec![property(cardinality, key, value)?])
}

fn property(cardinality: Option<Cardinality>, key: &Value, value: &Value) -> Result<PropertyGiven> {
    match key {
        Value::String(_) | Value::Symbol(Symbol::Token(_)) | Value::Traversal(_) => {}
        other => {
            let found = other.type_name();
            return Err(GremlinError::bad(format!(
                "a key of a property is a string, not a value of type {found}"
            )));
        }
    }
    let (cardinality, value) = match value {
        Value::CardinalityValue { cardinality, value } => (Some(*cardinality), &**value),
        value => (cardinality, value),
    };
    Ok(PropertyGiven { cardinality, key: given(key)?, value: given(value)? })
}

fn merge(call: &Call<'_>, arguments: &mut Arguments<'_>) -> Result<MergeMaps> {
    call.allow(&["option"])?;
    let search = match arguments.next() {
        None => Given::Traversal(super::compile::traversal(vec![Kind::Identity])),
        Some(value) => map_or_traversal(value)?,
    };
    let mut maps = MergeMaps { search, on_create: None, on_match: None, out_vertex: None, in_vertex: None };
    for modulator in call.modulators("option") {
        match &*modulator.instruction.arguments {
            [Value::Symbol(Symbol::Merge(key)), value] => put(&mut maps, *key, value, None)?,
            [Value::Symbol(Symbol::Merge(key)), value, Value::Symbol(Symbol::Cardinality(cardinality))] => {
                put(&mut maps, *key, value, Some(*cardinality))?;
            }
            _ => {
                let name = call.name();
                return Err(GremlinError::bad(format!(
                    "option() of {name}() takes Merge.onCreate and others, and a map"
                )));
            }
        }
    }
    Ok(maps)
}

fn put(maps: &mut MergeMaps, key: Merge, value: &Value, cardinality: Option<Cardinality>) -> Result<()> {
    let value = match key {
        Merge::OnCreate | Merge::OnMatch => map_or_traversal(value)?,
        Merge::OutV | Merge::InV => given(value)?,
    };
    match key {
        Merge::OnCreate => maps.on_create = Some(value),
        Merge::OnMatch => maps.on_match = Some((value, cardinality)),
        Merge::OutV => maps.out_vertex = Some(value),
        Merge::InV => maps.in_vertex = Some(value),
    }
    Ok(())
}

fn map_or_traversal(value: &Value) -> Result<Given> {
    match value {
        Value::Map(_) | Value::Null | Value::Traversal(_) => given(value),
        other => {
            let found = other.type_name();
            Err(GremlinError::bad(format!("a map or a traversal is needed, not a value of type {found}")))
        }
    }
}
